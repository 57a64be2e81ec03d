"""Offset commits as columns of view `offset_commits`: their records become no Python objects."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import (
    Constant,
    binaries,
    booleans,
    chosen,
    fixed_width,
    integers,
    laid_out,
    record_batch,
    scalar,
)
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.jit.compiled import BoolArray, ByteArray, LongArray
from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.columns.keys.key_offsets import KeyOffsets
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.coordination.groups.offset_commits import Effect
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.groups import commit_kernels as column
from kafkalog.inspection.groups.commit_kernels import (
    ByteStrings,
    gather_parts,
    hash_commits,
    scan_commits,
)

_UUID_BYTES, _UUID_CHARACTERS = 16, 22
_SIZE_BYTES, _PARTITION_BYTES = 2, 4
_BASE64 = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8
)
_NO_NUMBER = scalar(NO_VALUE, pa.int64())
_NO_COLUMNS: Mapping[str, pa.Array] = MappingProxyType({})


class Commits:
    """The records of an Arrow batch of `__consumer_offsets`, scanned.

    `is_plain` marks commits and tombstones outside of transactions that were understood,
    `is_waiting` those in transactions, `is_unsure` what the interpreter of messages has to read,
    and `is_marker` the ends of transactions. The rest are not commits.
    """

    def __init__(self, records: pa.RecordBatch, keys: KeyOffsets | None = None) -> None:
        """With `keys`, the records have `hashes` of their own for these."""
        self.records = records
        self._keys = ByteStrings(*binaries(records.column("key")))
        self._values = ByteStrings(*binaries(records.column("value")))
        self.key_data, self.value_data = self._keys.data, self._values.data
        self._is_control = booleans(records.column(IS_CONTROL))
        self.offsets = integers(records.column("offset"))
        if keys is None:
            self.kinds = kind = self.numbers[:, column.COMMIT_KIND].copy()
        else:
            self.kinds = kind = np.empty(records.num_rows, dtype=np.int64)
            self.hashes = np.empty((records.num_rows, 2), dtype=np.int64)
            of_one = np.empty((1, column.COMMIT_WIDTH), dtype=np.int64)
            given = self._keys, self._values, self._is_control
            hash_commits(*given, keys.secret, of_one, kind, self.hashes)
        is_transactional = booleans(records.column("isTransactional"))
        is_known = (kind == column.COMMIT_RECORD) | (kind == column.TOMBSTONE)
        self.is_plain: BoolArray = is_known & ~is_transactional
        self.is_waiting: BoolArray = is_known & is_transactional
        self.is_unsure: BoolArray = kind == column.UNSURE
        self.is_marker: BoolArray = (kind == column.ABORT_MARKER) | (kind == column.COMMIT_MARKER)

    @cached_property
    def numbers(self) -> LongArray:
        """What `scan_commits` finds; what it leaves out of a row has no meaning."""
        found = np.empty((self.records.num_rows, column.COMMIT_WIDTH), dtype=np.int64)
        scan_commits(self._keys, self._values, self._is_control, found)
        return found

    def numbers_of(self, name: str) -> LongArray:
        """Return the numbers of a column of the records, NO_VALUE for null."""
        numbers = self.records.column(name)
        return integers(numbers.fill_null(_NO_NUMBER) if numbers.null_count else numbers)

    def keys(self, rows: LongArray) -> list[bytes]:
        """Return the bytes of keys that were understood, without their types: equal for one group,
        topic and partition."""
        begins = self.numbers[rows, column.GROUP] - _SIZE_BYTES
        topics = self.numbers[rows, column.COMMIT_TOPIC] + self.numbers[rows, column.TOPIC_SIZE]
        data, ends = self.key_data.data, topics + _PARTITION_BYTES
        return [
            data[begin:end].tobytes()
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]

    def group_ids(self, rows: LongArray) -> list[str]:
        """Return the distinct groups of records that were understood."""
        begins, sizes = (self.numbers[rows, index] for index in (column.GROUP, column.GROUP_SIZE))
        found: list[str] = _texts(self.key_data, begins, sizes, None).unique().to_pylist()
        return found

    def are_tombstones(self, rows: LongArray) -> list[bool]:
        """Return which records that were understood delete a commit."""
        found: list[bool] = (self.kinds[rows] == column.TOMBSTONE).tolist()
        return found

    def only(self, rows: Sequence[int] | LongArray) -> Commits:
        """Return some of the records, without the memory of the others."""
        return Commits(self.records.take(fixed_width(np.array(rows), pa.int64())))


class LastCommits:
    """Finds the plain records of a partition that can count at a past time: those that earlier
    ones, or others of their batch, replace are found by their keys' bytes, and never become
    columns. Memory grows with the distinct keys, 24 bytes of each."""

    def __init__(self, at_ms: int) -> None:
        self._at_ms = at_ms
        self.keys = commit_keys()

    def rows(self, commits: Commits) -> LongArray:
        """Return the numbers of these records, in their order. They have `hashes` for `keys`."""
        times = integers(commits.records.column("timestampMs"))
        # What has no time of its own counts by the commit's, and replaces nothing for certain.
        has_time = times != NO_VALUE
        rows = np.flatnonzero(commits.is_plain & has_time & (times <= self._at_ms))
        hashes, offsets = commits.hashes[rows], commits.offsets[rows]
        self.keys.put(hashes, offsets)
        is_last = commits.is_plain & ~has_time
        is_last[rows] = self.keys.highest(hashes) == offsets
        return np.flatnonzero(is_last)


def commit_keys() -> KeyOffsets:
    """Return what keeps the highest offset of each key."""
    return KeyOffsets(secrets.token_bytes(SECRET_BYTES))


class CommitColumns:
    """Makes the given columns of view `offset_commits` of records that were understood. `constants`
    are columns with one value for the whole partition."""

    def __init__(
        self,
        high_watermark: int | None,
        constants: Mapping[str, str | int | None],
        columns: tuple[str, ...],
    ) -> None:
        self._high_watermark = high_watermark
        self._schema = arrow_schema("offset_commits", columns)
        # What is neither known of the partition nor built is null.
        self._constants = {
            field.name: Constant(constants.get(field.name), field.type)
            for field in self._schema
            if field.name not in _BUILDERS and field.name != "is_confirmed"
        }

    def batch(
        self, commits: Commits, rows: LongArray, outcomes: Mapping[str, pa.Array] = _NO_COLUMNS
    ) -> pa.RecordBatch:
        """Return these records, in their order. What became of them is in `outcomes`; without, they
        are plain ones, applied at their own offset."""
        columns = {name: constant.of(len(rows)) for name, constant in self._constants.items()}
        columns |= outcomes
        for field in self._schema:
            if field.name in outcomes:
                continue
            if field.name == "is_confirmed":
                columns[field.name] = self._is_confirmed(commits.offsets[rows])
            elif field.name in _BUILDERS:
                columns[field.name] = _BUILDERS[field.name](commits, rows)
        return record_batch(columns, self._schema, len(rows))

    def _is_confirmed(self, offsets: LongArray) -> pa.Array:
        known = self._high_watermark
        if known is None:
            return pa.nulls(len(offsets), pa.bool_())
        return fixed_width(offsets < known, pa.bool_())


_Builder = Callable[[Commits, LongArray], pa.Array]


def _carried(name: str) -> _Builder:
    """Return a builder that takes a column of view `records`."""

    def build(commits: Commits, rows: LongArray) -> pa.Array:
        values = commits.records.column(name)
        return values if len(rows) == len(values) else values.take(fixed_width(rows, pa.int64()))

    return build


def _key_number(commits: Commits, rows: LongArray) -> pa.Array:
    return fixed_width(commits.numbers[rows, column.PARTITION], pa.int32())


def _value_number(index: int, data_type: pa.DataType, *, has_null: bool = False) -> _Builder:
    def build(commits: Commits, rows: LongArray) -> pa.Array:
        values = commits.numbers[rows, index]
        nulls = commits.kinds[rows] == column.TOMBSTONE
        if has_null:
            nulls |= values == NO_VALUE
        return fixed_width(np.where(nulls, 0, values), data_type, nulls)

    return build


def _key_text(begin: int, size: int) -> _Builder:
    def build(commits: Commits, rows: LongArray) -> pa.Array:
        numbers = commits.numbers
        return _texts(commits.key_data, numbers[rows, begin], numbers[rows, size], None)

    return build


def _metadata(commits: Commits, rows: LongArray) -> pa.Array:
    nulls = commits.kinds[rows] == column.TOMBSTONE
    sizes = np.where(nulls, 0, commits.numbers[rows, column.METADATA_SIZE])
    return _texts(commits.value_data, commits.numbers[rows, column.METADATA], sizes, nulls)


def _texts(
    data: ByteArray, begins: LongArray, sizes: LongArray, nulls: BoolArray | None
) -> pa.Array:
    ends = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=ends[1:])
    target = np.empty(max(int(ends[-1]), 1), dtype=np.uint8)
    gather_parts(data, begins, ends, target)
    return laid_out(ends, target, pa.string(), nulls)


def _topic_ids(commits: Commits, rows: LongArray) -> pa.Array:
    """Return topic ids as Kafka prints them: base64 for URLs, 22 characters (F193)."""
    places = commits.numbers[rows, column.TOPIC_ID]
    nulls = (commits.kinds[rows] == column.TOMBSTONE) | (places == NO_VALUE)
    ends = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(np.where(nulls, 0, _UUID_CHARACTERS), out=ends[1:])
    # Of 16 bytes, 18 make 6 groups of 3, each of 4 characters; the last two are padding.
    ids = np.zeros((int((~nulls).sum()), 18), dtype=np.int64)
    ids[:, :_UUID_BYTES] = commits.value_data[places[~nulls][:, None] + np.arange(_UUID_BYTES)]
    groups = ids[:, 0::3] << 16 | ids[:, 1::3] << 8 | ids[:, 2::3]
    digits = groups[:, :, None] >> np.array([18, 12, 6, 0]) & 63
    target = _BASE64[digits.reshape(len(ids), 24)[:, :_UUID_CHARACTERS]].reshape(-1)
    return laid_out(ends, target, pa.string(), nulls)


def _record_timestamp(commits: Commits, rows: LongArray) -> pa.Array:
    values = integers(commits.records.column("timestampMs"))[rows]
    return fixed_width(values, pa.int64(), values == NO_VALUE)


def _is_tombstone(commits: Commits, rows: LongArray) -> pa.Array:
    return fixed_width(commits.kinds[rows] == column.TOMBSTONE, pa.bool_())


def _is_transactional(commits: Commits, rows: LongArray) -> pa.Array:
    return fixed_width(np.zeros(len(rows), dtype=bool), pa.bool_())


def _effect(commits: Commits, rows: LongArray) -> pa.Array:
    return chosen([Effect.APPLIED.value], np.zeros(len(rows), dtype=np.int32))


# Columns that differ from record to record.
_BUILDERS: dict[str, _Builder] = {
    "broker_id": _carried("brokerId"),
    "file": _carried("file"),
    "record_offset": _carried("offset"),
    "record_timestamp_ms": _record_timestamp,
    "group_id": _key_text(column.GROUP, column.GROUP_SIZE),
    "topic": _key_text(column.COMMIT_TOPIC, column.TOPIC_SIZE),
    "partition": _key_number,
    "is_tombstone": _is_tombstone,
    "committed_offset": _value_number(column.COMMITTED_OFFSET, pa.int64()),
    "leader_epoch": _value_number(column.COMMIT_LEADER_EPOCH, pa.int32(), has_null=True),
    "metadata": _metadata,
    "commit_timestamp_ms": _value_number(column.COMMIT_TIMESTAMP, pa.int64()),
    "expire_timestamp_ms": _value_number(column.EXPIRE_TIMESTAMP, pa.int64(), has_null=True),
    "topic_id": _topic_ids,
    "version": _value_number(column.COMMIT_VERSION, pa.int16()),
    "is_transactional": _is_transactional,
    "effect": _effect,
    "effective_offset": _carried("offset"),
    "effective_timestamp_ms": _record_timestamp,
}
