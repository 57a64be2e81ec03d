"""Offset commits and what became of each: view `offset_commits`,
schemas/tables/offset_commits.json. Rules: docs/format.md F300 to F303.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from kafkalog.columns.record_metadata import IS_CONTROL
from kafkalog.columns.table_rows import TableRow
from kafkalog.coordination.offset_commits import CommitKey, Decision, OffsetCommitReplay
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.messages.internal_records import (
    InternalRecord,
    read_control_record,
    read_internal_record,
)
from kafkalog.messages.schema import ZERO_UUID
from kafkalog.storage.names import CONSUMER_OFFSETS

# By their order in `_Record`.
RECORD_COLUMNS = (
    "key",
    "value",
    IS_CONTROL,
    "offset",
    "timestampMs",
    "producerId",
    "isTransactional",
    "file",
    "brokerId",
)
# Record types of commits, the older one of a coordinator before Kafka 0.9 as well.
_COMMIT_TYPES = (0, 1)


class _Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    is_control: bool
    offset: int
    timestamp_ms: int
    producer_id: int
    is_transactional: bool
    file: str | None
    broker_id: int | None


class CommitRows:
    """Takes the records of one partition of `__consumer_offsets`, control records included, in the
    order of their offsets, and gives rows of the view as soon as their effect is known.

    `high_watermark` is that of the partition, None where it is not known. Memory grows with the
    keys that are committed, and with the commits of open transactions.
    """

    def __init__(self, high_watermark: int | None) -> None:
        self._high_watermark = high_watermark
        self._replay = OffsetCommitReplay()
        self._waiting: dict[int, dict[str, object]] = {}

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[TableRow]:
        """The rows that are decided by these records."""
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in RECORD_COLUMNS]
            for values in zip(*columns, strict=True):
                yield from self._taken(_Record(*values))

    def last_rows(self) -> Iterator[TableRow]:
        """At the end of the log: the commits whose transactions are open."""
        yield from self._decided(self._replay.still_open(), None)

    def _taken(self, record: _Record) -> Iterator[TableRow]:
        if record.is_control:
            marker = read_control_record(record.key, record.value)
            if marker.record_type in (ABORT, COMMIT):
                is_commit = marker.record_type == COMMIT
                ended = self._replay.marker(record.producer_id, record.offset, is_commit=is_commit)
                yield from self._decided(ended, record.timestamp_ms)
            return
        message = read_internal_record(CONSUMER_OFFSETS, record.key, record.value)
        if message.record_type not in _COMMIT_TYPES:
            return
        row = self._waiting[record.offset] = self._row(record, message)
        if message.key is None or (message.value is None and not message.is_tombstone):
            yield self._waiting.pop(record.offset)
            return
        key = CommitKey(row["group_id"], row["topic"], row["partition"])
        decisions = self._decisions(record, key, is_tombstone=message.is_tombstone)
        yield from self._decided(decisions, record.timestamp_ms)

    def _decisions(
        self, record: _Record, key: CommitKey, *, is_tombstone: bool
    ) -> Iterable[Decision]:
        if is_tombstone:
            return self._replay.tombstone(key, record.offset)
        if record.is_transactional:
            replaced = self._replay.transactional_commit(key, record.offset, record.producer_id)
            return [] if replaced is None else [replaced]
        return [self._replay.commit(key, record.offset)]

    def _decided(
        self, decisions: Iterable[Decision], timestamp_ms: int | None
    ) -> Iterator[TableRow]:
        """The rows that the record with a timestamp decides."""
        for decision in decisions:
            row = self._waiting.pop(decision.record_offset)
            row["effect"] = decision.effect.value
            row["effective_offset"] = decision.effective_offset
            if decision.effective_offset is not None:
                row["effective_timestamp_ms"] = _unless(timestamp_ms, NO_VALUE)
            yield row

    def _row(self, record: _Record, message: InternalRecord) -> dict[str, Any]:
        known = self._high_watermark
        key, value = message.key or {}, message.value or {}
        return {
            "broker_id": record.broker_id,
            "file": record.file,
            "record_offset": record.offset,
            "record_timestamp_ms": _unless(record.timestamp_ms, NO_VALUE),
            "group_id": key.get("group"),
            "topic": key.get("topic"),
            "partition": key.get("partition"),
            "is_tombstone": message.is_tombstone,
            "committed_offset": value.get("offset"),
            "leader_epoch": _unless(value.get("leaderEpoch"), NO_VALUE),
            "metadata": value.get("metadata"),
            "commit_timestamp_ms": value.get("commitTimestamp"),
            "expire_timestamp_ms": _unless(value.get("expireTimestamp"), NO_VALUE),
            "topic_id": _unless(value.get("topicId"), ZERO_UUID),
            "version": message.value_version,
            "is_transactional": record.is_transactional,
            "producer_id": record.producer_id if record.is_transactional else None,
            "is_confirmed": None if known is None else record.offset < known,
            "reason": message.reason,
            "detail": message.detail,
        }


def _unless(value: object, sentinel: object) -> object:
    return None if value == sentinel else value
