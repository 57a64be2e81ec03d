"""Records of a segment as Arrow record batches: the second half of the fast reader.

Names and types of the columns: schemas/tables/records.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import Constant, integers, one_binary, record_batch
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import Chunk
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.segment_walk import TABLE_ROWS
from kafkalog.columns.jit.compiled import BoolArray, ByteArray, IntArray, LongArray
from kafkalog.columns.records.message_kernels import inner_messages
from kafkalog.columns.records.payload_pieces import find_record_fields, piece_end
from kafkalog.columns.records.payloads import (
    BEGIN,
    COMPRESSION_ID,
    END,
    MOST_RECORDS,
    NOT_WALKED,
    PAYLOAD_WIDTH,
    ROW,
    WALK_ALL,
    WALK_FOR_TIMES,
    WALK_WHERE_GAPS,
    Scratch,
    ScratchFullError,
    bound_records,
    group_end,
    place_payloads,
)
from kafkalog.columns.records.record_arrays import (
    LEAST_MS,
    RECORDS,
    Output,
    RequestedRange,
    new_cursor,
)
from kafkalog.columns.records.record_buffers import RecordBuffers
from kafkalog.columns.records.record_kernels import fill_rows
from kafkalog.columns.records.record_metadata import METADATA_COLUMNS, record_schema
from kafkalog.columns.transactions.transaction_outcomes import TransactionOutcomes
from kafkalog.storage.files.read_counts import read_counts

# About the batch size at which Spark takes Arrow data fastest (docs/decisions).
OUTPUT_BYTES = 4 * 1024 * 1024
# Larger payloads are turned into columns in pieces of this size (F57).
_PIECE_BYTES = 1024 * 1024
_MOST_ROWS = 64 * 1024
# Columns that are the same on every row of a segment.
_SEGMENT_COLUMNS = ("topic", "partition", "file", "brokerId")
PAYLOAD_COLUMNS = {"key", "value", "headers"}
_TIME_COLUMNS = {"timestamp", "timestampMs"}
_ALL_TIMES = (LEAST_MS, 2**63 - 1)
_NO_OFFSETS = np.zeros(0, dtype=np.int64)


class Sieve(Protocol):
    """Picks the payloads whose records are wanted with all columns. Those of the other payloads are
    yielded too, in batches that have `columns` only."""

    columns: Sequence[str]

    def chosen(self, source: ByteArray, begins: LongArray, ends: LongArray) -> BoolArray:
        """Return which of the payloads source[begin:end] are picked."""


class RecordColumns:
    """Turns chunks of batch tables into Arrow record batches with the given columns.

    `constants` are columns that have the same value on every row of the segment, null if it lacks
    one. With `outcomes`, batches of aborted transactions have no records. With `by_headers`,
    payloads are not read where checked headers have all that is wanted
    (docs/decisions/0017-rows-from-headers.md). A `sieve` is not asked about large payloads.
    """

    def __init__(
        self,
        options: SegmentOptions,
        columns: Sequence[str],
        constants: Mapping[str, str | int | None],
        *,
        with_control_records: bool = False,
        outcomes: TransactionOutcomes | None = None,
        by_headers: bool = False,
        sieve: Sieve | None = None,
    ) -> None:
        times = options.timestamps
        needed = {*columns, *(_TIME_COLUMNS if times else ())}
        self._walk = _payloads_to_walk(needed) if by_headers else WALK_ALL
        first_ms, last_ms = (times.first_ms, times.end_ms - 1) if times else _ALL_TIMES
        self._requested = RequestedRange(
            options.first_offset,
            options.end_offset,
            first_ms,
            last_ms,
            _NO_OFFSETS if options.chosen_offsets is None else options.chosen_offsets,
        )
        self.schema = record_schema(columns)
        self._constants = {
            name: Constant(constants.get(name), self.schema.field(name).type)
            for name in _SEGMENT_COLUMNS
            if name in columns
        }
        self._with_control_records = with_control_records
        self._outcomes = outcomes
        self._buffers = RecordBuffers(frozenset(columns), has_value_bytes=options.has_value_bytes)
        self._lean_buffers = RecordBuffers(frozenset(columns) - {"key", "value"})
        self._scratch = Scratch(options.max_batch_bytes)
        self._payloads = np.zeros((TABLE_ROWS, PAYLOAD_WIDTH), dtype=np.int64)
        self._inner = inner_messages(options.check_crcs)
        self._sieve = sieve
        # None, not this object: without a cycle the memory is free when a file has been read.
        self._others: RecordColumns | None = None
        if sieve is not None:
            self._others = RecordColumns(options, sieve.columns, constants)
            self._others._scratch = self._scratch
        # Of a chunk's last payload: row of the table and, if it is not compressed, end.
        self._last_row = self._last_end = 0

    def limit(self, first_offset: int, end_offset: int) -> None:
        """Read only records with these offsets from now on."""
        self._requested = self._requested._replace(first_offset=first_offset, end_offset=end_offset)

    def check(self, chunk: Chunk) -> None:
        """Read the records of a chunk's sound batches, and set FAULT of those that yield none."""
        for _ in self.batches(chunk):
            pass

    def batches(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """Yield the records of a chunk's sound batches. Set FAULT of batches that have none."""
        if self._outcomes is not None:
            requested = self._requested
            self._outcomes.leave_out_aborted(
                chunk.table, requested.first_offset, requested.end_offset
            )
        if len(self._payloads) < len(chunk.table):
            self._payloads = np.zeros((len(chunk.table), PAYLOAD_WIDTH), dtype=np.int64)
        payloads = self._payloads
        count = place_payloads(
            chunk.data,
            chunk.data_position,
            chunk.table,
            self._requested,
            self._with_control_records,
            self._walk,
            payloads,
        )
        if count:
            self._last_row, self._last_end = payloads[count - 1, [ROW, END]].tolist()
        read_counts.batches += len(chunk.table)
        read_counts.batches_read += int(count)
        start = 0
        while start < count:
            end = group_end(payloads, start, count, OUTPUT_BYTES)
            if payloads[start, COMPRESSION_ID]:
                yield from self._compressed(chunk, payloads[start:end])
            else:
                yield from self._bounded(chunk, payloads[start:end])
            start = end

    def _compressed(self, chunk: Chunk, payloads: LongArray) -> Iterator[pa.RecordBatch]:
        """Decompress as much as an Arrow batch holds, fill from it, and so on."""
        scratch = self._scratch
        ready: list[tuple[int, ...]] = []
        for row, begin, end, compression_id, magic, _, count in payloads.tolist():
            # No name holds the stored bytes: `_single` lets go of those of a large record.
            try:
                used = scratch.used
                fault = scratch.decompress(chunk.data.data[begin:end], compression_id, magic)
            except ScratchFullError:
                yield from self._from_scratch(chunk, ready)
                used = scratch.used
                fault = scratch.decompress(chunk.data.data[begin:end], compression_id, magic)
            if fault:
                chunk.table[row, column.FAULT] = fault
                continue
            size = scratch.used - used
            read_counts.batches_decompressed += 1
            read_counts.bytes_decompressed += size
            chunk.table[row, column.UNCOMPRESSED_SIZE] = (
                chunk.table[row, column.SIZE] - (end - begin) + size
            )
            ready.append((row, used, scratch.used, compression_id, magic, 0, count))
            if scratch.used >= OUTPUT_BYTES:
                yield from self._from_scratch(chunk, ready)
        yield from self._from_scratch(chunk, ready)

    def _from_scratch(self, chunk: Chunk, ready: list[tuple[int, ...]]) -> Iterator[pa.RecordBatch]:
        """Use what is decompressed, and start again. Only the last payload can be a large one."""
        is_large = bool(ready) and ready[-1][END] - ready[-1][BEGIN] > OUTPUT_BYTES
        for some in (ready[:-1], ready[-1:]) if is_large else (ready,):
            if some:
                payloads = np.array(some, dtype=np.int64)
                bound_records(payloads, chunk.table)
                yield from self._bounded(chunk, payloads)
        ready.clear()
        self._scratch.used = 0
        if is_large:
            self._scratch.give_away()

    def _bounded(self, chunk: Chunk, payloads: LongArray) -> Iterator[pa.RecordBatch]:
        """Fill from a few small payloads at once, from a large one piece by piece."""
        row, begin, end, compression_id, magic, _, _ = payloads[0].tolist()
        if begin == NOT_WALKED or end - begin <= OUTPUT_BYTES:
            yield from self._sifted(chunk, payloads)
            return
        # No record of a batch is given away before all are checked.
        nothing = self._requested._replace(first_offset=0, end_offset=0)
        self._fill(chunk, payloads, nothing, _output(self._buffers, 0, 0))
        if chunk.table[row, column.FAULT]:
            return
        source = self._scratch.data if compression_id else chunk.data
        while begin < end:
            stop, records = piece_end(source, begin, end, magic, _PIECE_BYTES)
            if not records:
                return
            piece = row, begin, stop, compression_id, magic, records, records
            is_single = records == 1 and stop - begin > OUTPUT_BYTES
            fill = self._single if is_single else self._piece
            yield from fill(chunk, source, np.array([piece], dtype=np.int64))
            begin = stop

    def _sifted(self, chunk: Chunk, payloads: LongArray) -> Iterator[pa.RecordBatch]:
        sieve, others = self._sieve, self._others
        if sieve is None or others is None:
            yield from self._filled(chunk, payloads, self._buffers, {})
            return
        source = self._scratch.data if payloads[0, COMPRESSION_ID] else chunk.data
        is_chosen = sieve.chosen(source, payloads[:, BEGIN], payloads[:, END])
        for columns, some in ((others, payloads[~is_chosen]), (self, payloads[is_chosen])):
            if len(some):
                yield from columns._filled(chunk, some, columns._buffers, {})

    def _piece(self, chunk: Chunk, _: ByteArray, piece: LongArray) -> Iterator[pa.RecordBatch]:
        return self._filled(chunk, piece, self._buffers, {})

    def _single(
        self, chunk: Chunk, source: ByteArray, piece: LongArray
    ) -> Iterator[pa.RecordBatch]:
        """Yield one large record: its key and value are the decompressed bytes themselves, or those
        of the file, copied if more is read from the same memory."""
        row, _, end, compression_id, *_ = piece[0].tolist()
        ends_chunk = row == self._last_row and (compression_id or end == self._last_end)
        given = self._large_fields(source, piece, copied=not compression_id and not ends_chunk)
        filled = list(self._filled(chunk, piece, self._lean_buffers, given))
        if given and ends_chunk:
            # Of use only to those who write such a record, and need copies of it.
            chunk.give_away_data()
        del source
        yield from filled

    def _large_fields(
        self, source: ByteArray, piece: LongArray, *, copied: bool
    ) -> dict[str, pa.Array]:
        """Return key and value of a record, as far as they are wanted."""
        _, begin, end, _, magic, *_ = piece[0].tolist()
        key_start, key_size, value_start, value_size = find_record_fields(source, begin, end, magic)
        given: dict[str, pa.Array] = {}
        for name, start, size in (("key", key_start, key_size), ("value", value_start, value_size)):
            if name in self.schema.names:
                found = source[start : start + max(size, 0)]
                given[name] = one_binary(found.copy() if copied else found, size < 0)
        return given

    def _fill(
        self, chunk: Chunk, payloads: LongArray, requested: RequestedRange, output: Output
    ) -> None:
        fill_rows(
            chunk.data, self._scratch.data, chunk.table, payloads, requested, output, self._inner
        )

    def _filled(
        self,
        chunk: Chunk,
        payloads: LongArray,
        buffers: RecordBuffers,
        given: Mapping[str, pa.Array],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records, a bounded number at a time; `given` columns are not filled."""
        payload_bytes = int((payloads[:, END] - payloads[:, BEGIN]).sum())
        payload_bytes -= sum(each.buffers()[2].size for each in given.values())
        output = _output(buffers, int(payloads[:, MOST_RECORDS].sum()), payload_bytes)
        self._fill(chunk, payloads, self._requested, output)
        count, arrays = int(output.cursor[RECORDS]), output.arrays
        if count:
            columns = {**buffers.columns(output.cursor), **given}
            batch = self._record_batch(chunk.table, arrays.row[:count], columns)
            header_ends = arrays.headers_ends[: count + 1] if output.wanted.headers else None
            for start, end in _rows_at_once(count, header_ends):
                yield batch.slice(start, end - start)

    def _record_batch(
        self, table: LongArray, rows: IntArray, columns: dict[str, pa.Array]
    ) -> pa.RecordBatch:
        requested_metadata = [name for name in self.schema.names if name in METADATA_COLUMNS]
        if requested_metadata:
            offsets = integers(columns["offset"])
            for name in requested_metadata:
                columns[name] = METADATA_COLUMNS[name](table, rows, offsets)
        for name, constant in self._constants.items():
            columns[name] = constant.of(len(rows))
        return record_batch(columns, self.schema, len(rows))


def _output(buffers: RecordBuffers, records: int, payload_bytes: int) -> Output:
    """Return empty columns with room for `records` records of `payload_bytes` bytes in all."""
    arrays = buffers.allocate(records, payload_bytes)
    return Output(buffers.wanted, arrays, new_cursor(), new_cursor())


def _rows_at_once(count: int, header_ends: IntArray | None) -> Iterator[tuple[int, int]]:
    """Yield spans of rows with a bounded number of rows and headers: a batch can hold millions of
    either."""
    start = 0
    while start < count:
        end = min(start + _MOST_ROWS, count)
        if header_ends is not None:
            most = int(header_ends[start]) + _MOST_ROWS
            fitting = int(np.searchsorted(header_ends[: end + 1], most, side="right")) - 1
            end = max(fitting, start + 1)
        yield start, end
        start = end


def _payloads_to_walk(columns: set[str]) -> int:
    if columns & PAYLOAD_COLUMNS:
        return WALK_ALL
    return WALK_FOR_TIMES if columns & _TIME_COLUMNS else WALK_WHERE_GAPS
