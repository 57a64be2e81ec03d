"""Offset commits and what became of each: view `offset_commits`,
schemas/tables/offset_commits.json. Rules: docs/format.md F300 to F303.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.columns.table_rows import TableRow, table_batch
from kafkalog.coordination.groups.offset_commits import CommitKey, Decision, OffsetCommitReplay
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.inspection.groups.commit_columns import CommitColumns, Commits, LastCommits
from kafkalog.messages.internal_records import (
    InternalRecord,
    read_control_record,
    read_internal_record,
)
from kafkalog.messages.schema import ZERO_UUID
from kafkalog.storage.names import CONSUMER_OFFSETS

# By their order in `_Record`.
COMMIT_RECORD_COLUMNS = (
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
_ROWS_PER_BATCH = 4096


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
    order of their offsets, and gives Arrow batches of the view's `columns` as soon as the effect of
    commits is known; those of one batch of records in no certain order.

    `high_watermark` is that of the partition, None where it is not known; `constants` are columns
    with one value for all of it. With `last`, rows of commits outside of transactions that cannot
    count are left out. Memory grows with the commits of open transactions, and with the
    keys that are committed while there are any.
    """

    def __init__(
        self,
        high_watermark: int | None,
        constants: Mapping[str, str | int | None],
        columns: tuple[str, ...],
        last: LastCommits | None = None,
    ) -> None:
        self._high_watermark = high_watermark
        self._last = last
        self._constants = constants
        self._columns = columns
        self._plain = CommitColumns(high_watermark, constants, columns)
        self._replay = OffsetCommitReplay()
        self._waiting: dict[int, dict[str, object]] = {}

    def batches(self, records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that these records decide."""
        for batch in records:
            commits = Commits(batch)
            plain = self._last.rows(commits) if self._last else np.flatnonzero(commits.is_plain)
            if len(plain):
                yield self._plain.batch(commits, plain)
            yield from self._batches_of(self._rows(commits))

    def last_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield, at the end of the log, the commits whose transactions are open."""
        yield from self._batches_of(self._decided(self._replay.still_open(), None))

    def _batches_of(self, rows: Iterator[TableRow]) -> Iterator[pa.RecordBatch]:
        while some := list(islice(rows, _ROWS_PER_BATCH)):
            yield table_batch("offset_commits", some, self._constants, self._columns)

    def _rows(self, commits: Commits) -> Iterator[TableRow]:
        """Yield the rows of records that are not plain, and of commits that waited for the end of a
        transaction. Plain records affect others only while any waits."""
        done = 0
        places = np.flatnonzero(commits.is_special)
        chosen = fixed_width(places, pa.int64())
        columns = [
            commits.records.column(name).take(chosen).to_pylist() for name in COMMIT_RECORD_COLUMNS
        ]
        for place, *values in zip(places.tolist(), *columns, strict=True):
            yield from self._passed(commits, done, place)
            record = _Record(*values)
            scanned = None if record.is_control else commits.scanned(place)
            yield from self._taken(record, scanned)
            done = place + 1
        yield from self._passed(commits, done, len(commits.is_plain))

    def _passed(self, commits: Commits, begin: int, end: int) -> Iterator[TableRow]:
        """Yield the waiting commits that the plain records between two places decide."""
        if begin == end or not self._replay.is_waiting:
            return
        for place in (begin + np.flatnonzero(commits.is_plain[begin:end])).tolist():
            key, offset = commits.key(place), int(commits.offsets[place])
            if not commits.is_tombstone(place):
                self._replay.commit(key, offset)
                continue
            decisions = self._replay.tombstone(key, offset)
            others = (each for each in decisions if each.record_offset != offset)
            yield from self._decided(others, None)

    def _taken(self, record: _Record, scanned: TableRow | None) -> Iterator[TableRow]:
        """Yield the rows that a record decides; `scanned` is what its key and value say, None where
        that needs the interpreter."""
        if record.is_control:
            marker = read_control_record(record.key, record.value)
            if marker.record_type in (ABORT, COMMIT):
                is_commit = marker.record_type == COMMIT
                ended = self._replay.marker(record.producer_id, record.offset, is_commit=is_commit)
                yield from self._decided(ended, record.timestamp_ms)
            return
        row = self._place(record)
        if scanned is not None:
            row |= scanned
        else:
            message = read_internal_record(CONSUMER_OFFSETS, record.key, record.value)
            if message.record_type not in _COMMIT_TYPES:
                return
            row |= _interpreted(message)
            if message.key is None or (message.value is None and not message.is_tombstone):
                yield row
                return
        self._waiting[record.offset] = row
        key = CommitKey(row["group_id"], row["topic"], row["partition"])
        decisions = self._decisions(record, key, is_tombstone=row["is_tombstone"])
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
        """Yield the rows that a record with this timestamp decides."""
        for decision in decisions:
            row = self._waiting.pop(decision.record_offset)
            row["effect"] = decision.effect.value
            row["effective_offset"] = decision.effective_offset
            if decision.effective_offset is not None:
                row["effective_timestamp_ms"] = _unless(timestamp_ms, NO_VALUE)
            yield row

    def _place(self, record: _Record) -> dict[str, Any]:
        """Return the columns about where a record is, and its transaction."""
        known = self._high_watermark
        return {
            "broker_id": record.broker_id,
            "file": record.file,
            "record_offset": record.offset,
            "record_timestamp_ms": _unless(record.timestamp_ms, NO_VALUE),
            "is_transactional": record.is_transactional,
            "producer_id": record.producer_id if record.is_transactional else None,
            "is_confirmed": None if known is None else record.offset < known,
        }


def _interpreted(message: InternalRecord) -> TableRow:
    """Return the columns about a commit's key and value."""
    key, value = message.key or {}, message.value or {}
    return {
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
        "reason": message.reason,
        "detail": message.detail,
    }


def _unless(value: object, sentinel: object) -> object:
    return None if value == sentinel else value
