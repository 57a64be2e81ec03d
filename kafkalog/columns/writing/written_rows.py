"""Rows of a DataFrame on their way into a log: Arrow's columns as the arrays that kernels read.

Rules: docs/writing.md F560 to F565.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafkalog.columns.arrays import binaries, integers
from kafkalog.columns.jit.compiled import BoolArray, IntArray, LongArray
from kafkalog.columns.writing.encoding_kernels import RowArrays
from kafkalog.errors import RowError
from kafkalog.format.batch_header import CREATE_TIME, LOG_APPEND_TIME, NO_VALUE
from kafkalog.storage.writing.partition_output import ORDER

# What view `records` calls the fields that are written, in the types that Spark gives them.
HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_NO_HEADERS = pa.nulls(0, HEADERS_TYPE.value_type)


def partitions_of(rows: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield topic, partition and rows of each run of rows of the same. Raises RowError for
    nulls."""
    topic, partition = rows.column("topic"), rows.column("partition")
    if topic.null_count or partition.null_count:
        raise RowError("a row without a topic or a partition")
    changes = np.zeros(max(rows.num_rows - 1, 0), dtype=np.bool_)
    for column in (topic, partition):
        changed = pc.not_equal(column.slice(1), column.slice(0, max(len(column) - 1, 0)))
        changes |= integers(changed.cast(pa.int8())) != 0
    first = 0
    for end in [*(np.flatnonzero(changes) + 1).tolist(), rows.num_rows]:
        if end > first:
            yield topic[first].as_py(), partition[first].as_py(), rows.slice(first, end - first)
        first = end


class WrittenRows:
    """The rows of one partition, as they follow each other in the task.

    `next_offset` is what the first one gets where rows have no column `offset`. Raises RowError
    for a row that no log can have.
    """

    def __init__(self, rows: pa.RecordBatch, next_offset: int) -> None:
        self._rows = rows
        self.count = rows.num_rows
        self.offset = self._offsets(next_offset)
        self.timestamp_type = self._numbers("timestampType", CREATE_TIME)
        self.timestamp_ms = self._timestamps_ms()
        self.leader_epoch = self._numbers("leaderEpoch", 0, if_null=NO_VALUE)
        self.producer_id = self._numbers("producerId", NO_VALUE)
        self.producer_epoch = self._numbers("producerEpoch", NO_VALUE)
        self.sequence = self._numbers("sequence", NO_VALUE)

    def run_ends(self) -> list[int]:
        """Return where the batch has to end, whatever its size: rows before and after differ in
        what a batch has one of for all its records."""
        first_sequence = (self.sequence - self.offset) & 0x7FFFFFFF
        # Of a batch with the broker's time all records have the same.
        append_time = np.where(self.timestamp_type == LOG_APPEND_TIME, self.timestamp_ms, 0)
        facts = (
            self.timestamp_type == LOG_APPEND_TIME,
            append_time,
            self.leader_epoch,
            self.producer_id,
            self.producer_epoch,
            self.sequence == NO_VALUE,
            np.where(self.sequence == NO_VALUE, 0, first_sequence),
        )
        changes = np.zeros(max(self.count - 1, 0), dtype=np.bool_)
        for fact in facts:
            changes |= fact[1:] != fact[:-1]
        return [*(np.flatnonzero(changes) + 1).tolist(), self.count]

    def arrays(self) -> RowArrays:
        """Return the arrays that kernels read."""
        key, key_ends, key_valid = self._bytes("key")
        value, value_ends, value_valid = self._bytes("value")
        starts, counts, headers = self._headers()
        name, name_ends, name_valid = _binaries(headers.field("key"))
        if not bool(name_valid[_used(starts, counts, len(headers))].all()):
            raise RowError("a header without a key, which Kafka does not have")
        header_value, header_value_ends, header_value_valid = _binaries(headers.field("value"))
        arrays = RowArrays(
            offset=self.offset,
            timestamp_ms=self.timestamp_ms,
            key=key,
            key_ends=key_ends,
            key_valid=key_valid,
            value=value,
            value_ends=value_ends,
            value_valid=value_valid,
            header_starts=starts,
            header_counts=counts,
            name=name,
            name_ends=name_ends,
            header_value=header_value,
            header_value_ends=header_value_ends,
            header_value_valid=header_value_valid,
        )
        for array in arrays:
            # Kernels are compiled for arrays that can be written or for those that cannot.
            array.flags.writeable = False
        return arrays

    def _offsets(self, next_offset: int) -> LongArray:
        column = self._column("offset")
        if column is None:
            return np.arange(next_offset, next_offset + self.count, dtype=np.int64)
        if column.null_count:
            raise RowError("a row without an offset: leave the column out to have them counted")
        offsets: LongArray = integers(column).astype(np.int64, copy=True)
        if self.count and int(offsets.min()) < 0:
            raise RowError(f"offset {int(offsets.min())}: offsets begin at 0")
        before = np.concatenate((np.array([next_offset - 1]), offsets[:-1]))
        for row in np.flatnonzero(offsets <= before)[:1]:
            raise RowError(f"offset {offsets[row]} after {before[row]}: {ORDER}")
        return offsets

    def _timestamps_ms(self) -> LongArray:
        exact, column = self._column("timestampMs"), self._column("timestamp")
        if exact is not None:
            return self._numbers("timestampMs", NO_VALUE)
        if column is None:
            return np.full(self.count, NO_VALUE, dtype=np.int64)
        times = integers(column.view(pa.int64()).fill_null(NO_VALUE * 1000))
        return times.astype(np.int64) // 1000

    def _numbers(self, name: str, default: int, *, if_null: int | None = None) -> LongArray:
        column = self._column(name)
        if column is None:
            return np.full(self.count, default, dtype=np.int64)
        filled = column.fill_null(default if if_null is None else if_null)
        return integers(filled).astype(np.int64, copy=True)

    def _bytes(self, name: str) -> tuple[NDArray[np.uint8], IntArray, BoolArray]:
        column = self._column(name)
        return _binaries(pa.nulls(self.count, pa.binary()) if column is None else column)

    def _headers(self) -> tuple[LongArray, LongArray, pa.StructArray]:
        """Return where the headers of each row begin among all, how many they are, and all."""
        column = self._column("headers")
        if column is None:
            nothing = np.zeros(self.count, dtype=np.int64)
            return nothing, nothing.copy(), _NO_HEADERS
        borders: NDArray[Any] = integers(column.offsets).astype(np.int64)
        is_there = integers(column.is_valid().cast(pa.uint8())) if column.null_count else 1
        headers = column.values
        starts, counts = borders[:-1].copy(), np.diff(borders) * is_there
        if headers.null_count and headers.slice(borders[0], borders[-1] - borders[0]).null_count:
            raise RowError("a header that is null")
        return starts, counts, headers

    def _column(self, name: str) -> pa.Array | None:
        index = self._rows.schema.get_field_index(name)
        return None if index < 0 else self._rows.column(index)


def _binaries(array: pa.Array) -> tuple[NDArray[np.uint8], IntArray, BoolArray]:
    if len(array) == 0:
        empty = np.zeros(1, dtype=np.uint8), np.zeros(1, dtype=np.int32)
        return *empty, np.zeros(1, dtype=np.bool_)
    return binaries(array)


def _used(starts: LongArray, counts: LongArray, count: int) -> BoolArray:
    """Return which of all headers belong to a row."""
    is_used = np.zeros(max(count, 1), dtype=np.bool_)
    filled = counts > 0
    edges = np.zeros(len(is_used) + 1, dtype=np.int64)
    np.add.at(edges, starts[filled], 1)
    np.add.at(edges, (starts + counts)[filled], -1)
    is_used[:] = np.cumsum(edges)[:-1] > 0
    return is_used
