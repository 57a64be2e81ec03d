"""Offset commits and what became of each: view `offset_commits`,
schemas/tables/offset_commits.json. Rules: docs/format.md F300 to F303.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import chosen, fixed_width
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.columns.table_rows import TableRow, table_batch
from kafkalog.coordination.groups.offset_commits import Decision, Effect, OffsetCommitReplay
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.groups import commit_kernels as kinds
from kafkalog.inspection.groups.commit_columns import CommitColumns, Commits, LastCommits
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.messages.schema import ZERO_UUID
from kafkalog.storage.names import CONSUMER_OFFSETS

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
_EFFECTS = [effect.value for effect in Effect]
_EFFECT_NUMBERS = {effect: number for number, effect in enumerate(Effect)}
# Before the key's first part: its type.
_TYPE_BYTES = 2
# Effects of commits that count, or that may.
_COUNTING = (Effect.APPLIED, Effect.OPEN)


class _Waiting(NamedTuple):
    """A commit whose effect is not known yet: a row of `commits`, or `row`, which the interpreter
    of messages made."""

    key: bytes
    commits: Commits | None
    number: int
    row: TableRow | None = None


class _Decided(NamedTuple):
    commit: _Waiting
    decision: Decision
    # That of the record that decides.
    timestamp_ms: int | None


class CommitRows:
    """Takes the records of one partition of `__consumer_offsets`, control records included, in the
    order of their offsets, and gives Arrow batches of the view's `columns` as soon as the effect of
    commits is known; those of one batch of records in no certain order.

    `high_watermark` is that of the partition, None where it is not known; `constants` are columns
    with one value for all of it. With `last`, rows of commits that cannot count are left out.
    Memory grows with the commits of open transactions, and with the keys that are committed while
    there are any.
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
        self._names = columns
        self._columns = CommitColumns(high_watermark, constants, columns)
        self._replay = OffsetCommitReplay()
        self._waiting: dict[int, _Waiting] = {}
        self._decided: list[_Decided] = []
        # Rows of records that cannot be read.
        self._unread: list[TableRow] = []

    def batches(self, records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that these records decide."""
        for batch in records:
            last = self._last
            commits = Commits(batch, None if last is None else last.keys)
            plain = np.flatnonzero(commits.is_plain) if last is None else last.rows(commits)
            if len(plain):
                yield self._columns.batch(commits, plain)
            new = self._take(commits)
            yield from self._decided_batches()
            self._keep(commits, new)

    def last_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield, at the end of the log, the commits whose transactions are open."""
        self._decide(self._replay.still_open(), None)
        yield from self._decided_batches()

    def _take(self, commits: Commits) -> list[int]:
        """Take records that are not plain, and return the offsets of those that began to wait.
        Plain records affect others only while any waits."""
        done = 0
        new: list[int] = []
        places = np.flatnonzero(commits.is_waiting | commits.is_marker | commits.is_unsure)
        records = commits.records.take(fixed_width(places, pa.int64()))
        names = ("offset", "timestampMs", "producerId")
        numbers = (records.column(name).to_pylist() for name in names)
        own = places[commits.is_waiting[places]]
        keys = zip(commits.keys(own), commits.are_tombstones(own), strict=True)
        for number, (place, kind, offset, timestamp_ms, producer_id) in enumerate(
            zip(places.tolist(), commits.kinds[places].tolist(), *numbers, strict=True)
        ):
            self._pass(commits, done, place)
            done = place + 1
            if kind == kinds.UNSURE:
                (record,) = records.slice(number, 1).to_pylist()
                self._take_unsure(record)
                continue
            if kind in (kinds.ABORT_MARKER, kinds.COMMIT_MARKER):
                is_commit = kind == kinds.COMMIT_MARKER
                ended = self._replay.marker(producer_id, offset, is_commit=is_commit)
                self._decide(ended, timestamp_ms)
                continue
            new.append(offset)
            key, is_tombstone = next(keys)
            self._waiting[offset] = _Waiting(key, commits, place)
            if is_tombstone:
                self._decide(self._replay.tombstone(key, offset), timestamp_ms)
            else:
                self._wait(key, offset, producer_id)
        self._pass(commits, done, len(commits.is_plain))
        return new

    def _keep(self, commits: Commits, new: Iterable[int]) -> None:
        """Keep what waits of these records, and not the memory of all."""
        offsets = [offset for offset in new if offset in self._waiting]
        if not offsets:
            return
        kept = commits.only([self._waiting[offset].number for offset in offsets])
        for number, offset in enumerate(offsets):
            self._waiting[offset] = _Waiting(self._waiting[offset].key, kept, number)

    def _pass(self, commits: Commits, begin: int, end: int) -> None:
        """Decide waiting commits by the plain records between two places."""
        if begin == end or not self._replay.is_waiting:
            return
        places = begin + np.flatnonzero(commits.is_plain[begin:end])
        keys, tombstones = commits.keys(places), commits.are_tombstones(places)
        offsets = commits.offsets[places].tolist()
        for key, is_tombstone, offset in zip(keys, tombstones, offsets, strict=True):
            if not is_tombstone:
                self._replay.commit(key, offset)
                continue
            decisions = self._replay.tombstone(key, offset)
            self._decide((each for each in decisions if each.record_offset != offset), None)

    def _take_unsure(self, record: Mapping[str, Any]) -> None:
        """Take a record that needs the interpreter."""
        offset, timestamp_ms = record["offset"], record["timestampMs"]
        read = interpreted_commit(record, self._high_watermark)
        if read is None:
            return
        if read.key is None:
            self._unread.append(read.row)
            return
        self._waiting[offset] = _Waiting(read.key, None, 0, read.row)
        if read.row["is_tombstone"]:
            self._decide(self._replay.tombstone(read.key, offset), timestamp_ms)
        elif record["isTransactional"]:
            self._wait(read.key, offset, record["producerId"])
        else:
            self._decide([self._replay.commit(read.key, offset)], timestamp_ms)

    def _wait(self, key: bytes, offset: int, producer_id: int) -> None:
        replaced = self._replay.transactional_commit(key, offset, producer_id)
        if replaced is not None:
            self._decide([replaced], None)

    def _decide(self, decisions: Iterable[Decision], timestamp_ms: int | None) -> None:
        """Note what a record with this timestamp decides."""
        self._decided += (
            _Decided(self._waiting.pop(each.record_offset), each, timestamp_ms)
            for each in decisions
        )

    def _decided_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield what has been decided since the last call."""
        rows, self._unread = iter(self._unread), []
        decided, self._decided = self._that_count(self._decided), []
        if not decided and self._last:
            return
        by_interpreter = (each for each in decided if each.commit.commits is None)
        rows = chain(rows, map(_with_outcome, by_interpreter))
        while some := list(islice(rows, _ROWS_PER_BATCH)):
            yield table_batch("offset_commits", some, self._constants, self._names)
        of_columns: dict[int, list[_Decided]] = defaultdict(list)
        for each in decided:
            of_columns[id(each.commit.commits)].append(each)
        for found in of_columns.values():
            commits = found[0].commit.commits
            if commits is not None:
                numbers = np.array([each.commit.number for each in found], dtype=np.int64)
                yield self._columns.batch(commits, numbers, _outcomes(commits, numbers, found))

    def _that_count(self, decided: list[_Decided]) -> list[_Decided]:
        """Return, where others are left out, the commits that count or may."""
        if self._last is None:
            return decided
        return [each for each in decided if each.decision.effect in _COUNTING]


def _outcomes(
    commits: Commits, numbers: LongArray, decided: Sequence[_Decided]
) -> dict[str, pa.Array]:
    """Return what became of some records in transactions, as columns of the view."""
    codes = np.array([_EFFECT_NUMBERS[each.decision.effect] for each in decided])
    offsets = (each.decision.effective_offset for each in decided)
    both = (
        np.array([NO_VALUE if each is None else each for each in found], dtype=np.int64)
        for found in (offsets, map(_effective_ms, decided))
    )
    return outcome_columns(commits, numbers, codes, *both)


def outcome_columns(
    commits: Commits, numbers: LongArray, codes: LongArray, offsets: LongArray, times: LongArray
) -> dict[str, pa.Array]:
    """Return what became of some records in transactions, as columns of the view: the numbers of
    their effects in `Effect`, where and when they took effect, NO_VALUE for none."""
    return {
        "is_transactional": fixed_width(np.ones(len(numbers), dtype=np.bool_), pa.bool_()),
        "producer_id": commits.records.column("producerId").take(fixed_width(numbers, pa.int64())),
        "effect": chosen(_EFFECTS, codes),
        "effective_offset": fixed_width(offsets, pa.int64(), offsets == NO_VALUE),
        "effective_timestamp_ms": fixed_width(times, pa.int64(), times == NO_VALUE),
    }


def _with_outcome(decided: _Decided) -> TableRow:
    """Return a row of the interpreter with what became of the commit."""
    return {
        **(decided.commit.row or {}),
        "effect": decided.decision.effect.value,
        "effective_offset": decided.decision.effective_offset,
        "effective_timestamp_ms": _effective_ms(decided),
    }


def _effective_ms(decided: _Decided) -> int | None:
    is_effective = decided.decision.effective_offset is not None
    return decided.timestamp_ms if is_effective and decided.timestamp_ms != NO_VALUE else None


class InterpretedCommit(NamedTuple):
    """A commit or a tombstone that the interpreter of messages has read: its row, without what
    became of it, and its key, as `Commits.keys` gives it, None where it cannot be read."""

    row: TableRow
    key: bytes | None


def interpreted_commit(
    record: Mapping[str, Any], high_watermark: int | None
) -> InterpretedCommit | None:
    """Return what a record with COMMIT_RECORD_COLUMNS says, None if it is of another type."""
    message = read_internal_record(CONSUMER_OFFSETS, record["key"], record["value"])
    if message.record_type not in _COMMIT_TYPES:
        return None
    offset, is_transactional = record["offset"], record["isTransactional"]
    row = {
        "broker_id": record["brokerId"],
        "file": record["file"],
        "record_offset": offset,
        "record_timestamp_ms": _unless(record["timestampMs"], NO_VALUE),
        "is_transactional": is_transactional,
        "producer_id": record["producerId"] if is_transactional else None,
        "is_confirmed": None if high_watermark is None else offset < high_watermark,
        **_interpreted(message),
    }
    is_known = message.key is not None and (message.value is not None or message.is_tombstone)
    return InterpretedCommit(row, _key_of(record["key"]) if is_known else None)


def _key_of(key: bytes) -> bytes:
    """Return the bytes of a key that the interpreter has read, as `Commits.keys` does."""
    end = _TYPE_BYTES
    for _ in range(2):
        end += 2 + int.from_bytes(key[end : end + 2])
    return key[_TYPE_BYTES : end + 4]


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
