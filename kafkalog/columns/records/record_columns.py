"""Records of a segment as Arrow record batches of the asked columns: the fast reader's second half.

Names and types of the columns: schemas/tables/records.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import Constant, integers, one_binary, record_batch
from kafkalog.columns.batches.batch_table import FAULT, RECORDS_COUNT, SIZE, UNCOMPRESSED_SIZE
from kafkalog.columns.batches.segment_batches import TABLE_ROWS, Chunk
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.jit.compiled import ByteArray, IntArray, LongArray
from kafkalog.columns.records.fill import FIELDS_SIZE, fill_rows
from kafkalog.columns.records.message_kernels import slicing_tables
from kafkalog.columns.records.payload_pieces import (
    KEY_START,
    VALUE_START,
    find_record_fields,
    piece_end,
)
from kafkalog.columns.records.payloads import (
    ALL_SEEN,
    BEGIN,
    COMPRESSION_ID,
    END,
    GAPS_SEEN,
    MOST_RECORDS,
    PAYLOAD_WIDTH,
    TIMES_SEEN,
    UNSEEN,
    Scratch,
    ScratchFullError,
    group_end,
    most_records,
    place_payloads,
)
from kafkalog.columns.records.record_arrays import (
    LEAST_MS,
    RECORDS,
    RecordArrays,
    Wanted,
    new_cursor,
)
from kafkalog.columns.records.record_buffers import RecordBuffers
from kafkalog.columns.records.record_metadata import METADATA_COLUMNS, record_schema
from kafkalog.columns.transactions.transaction_outcomes import TransactionOutcomes
from kafkalog.storage.files.read_counts import read_counts

# About the batch size at which Spark takes Arrow data fastest (docs/decisions).
OUTPUT_BYTES = 4 * 1024 * 1024
# Of a payload that is larger than this, so much is turned into columns at a time (F57).
_PIECE_BYTES = 1024 * 1024
_MOST_ROWS = 64 * 1024
# Columns that are the same on every row of a segment.
_SEGMENT_COLUMNS = ("topic", "partition", "file", "brokerId")
_PAYLOAD_COLUMNS = {"key", "value", "headers"}
_TIME_COLUMNS = {"timestamp", "timestampMs"}
_ALL_TIMES = (LEAST_MS, 2**63 - 1)


class RecordColumns:
    """Turns chunks of batch tables into Arrow record batches with the given columns.

    `constants` are columns that have the same value on every row of the segment; null what it does
    not name of them. With `outcomes`, batches of aborted transactions have no records. With
    `by_headers`, payloads are not looked into where checked headers say all that is asked
    (docs/decisions/0017-rows-from-headers.md).
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
    ) -> None:
        times = options.timestamps
        needed = {*columns, *(_TIME_COLUMNS if times else ())}
        self._seen = _payloads_seen(needed) if by_headers else ALL_SEEN
        self._first_ms, self._last_ms = (times.first_ms, times.end_ms - 1) if times else _ALL_TIMES
        self.schema = record_schema(columns)
        self._options = options
        self._constants = {
            name: Constant(constants.get(name), self.schema.field(name).type)
            for name in _SEGMENT_COLUMNS
            if name in columns
        }
        self._with_control_records = with_control_records
        self._outcomes = outcomes
        self._buffers = RecordBuffers(frozenset(columns))
        self._lean_buffers = RecordBuffers(frozenset(columns) - {"key", "value"})
        self._scratch = Scratch(options.max_batch_bytes)
        self._payloads = np.zeros((TABLE_ROWS, PAYLOAD_WIDTH), dtype=np.int64)
        self._before = new_cursor()
        self._fields = np.zeros(FIELDS_SIZE, dtype=np.int64)
        self._crc_tables = slicing_tables()

    def limit(self, first_offset: int, end_offset: int) -> None:
        """From now on, records with these offsets only."""
        self._options = replace(self._options, first_offset=first_offset, end_offset=end_offset)

    def batches(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """The records of a chunk's sound batches. Sets FAULT of batches that yield none."""
        if self._outcomes is not None:
            options = self._options
            self._outcomes.leave_out_aborted(chunk.table, options.first_offset, options.end_offset)
        if len(self._payloads) < len(chunk.table):
            self._payloads = np.zeros((len(chunk.table), PAYLOAD_WIDTH), dtype=np.int64)
        payloads = self._payloads
        count = place_payloads(
            chunk.data,
            chunk.data_position,
            chunk.table,
            self._options.first_offset,
            self._options.end_offset,
            self._first_ms,
            self._last_ms,
            self._with_control_records,
            self._seen,
            payloads,
            self._fields,
        )
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
        stored = chunk.data.data
        scratch = self._scratch
        ready: list[tuple[int, ...]] = []
        for row, begin, end, compression_id, magic, _, count in payloads.tolist():
            place = (stored[begin:end], compression_id, magic)
            try:
                used, fault = scratch.used, scratch.decompress(*place)
            except ScratchFullError:
                yield from self._from_scratch(chunk, ready)
                used, fault = scratch.used, scratch.decompress(*place)
            if fault:
                chunk.table[row, FAULT] = fault
                continue
            size = scratch.used - used
            read_counts.batches_decompressed += 1
            read_counts.bytes_decompressed += size
            chunk.table[row, UNCOMPRESSED_SIZE] = chunk.table[row, SIZE] - (end - begin) + size
            most = most_records(chunk.table[row, RECORDS_COUNT], size)
            ready.append((row, used, scratch.used, compression_id, magic, most, count))
            if scratch.used >= OUTPUT_BYTES:
                yield from self._from_scratch(chunk, ready)
        yield from self._from_scratch(chunk, ready)

    def _from_scratch(self, chunk: Chunk, ready: list[tuple[int, ...]]) -> Iterator[pa.RecordBatch]:
        """Use what is decompressed, and begin anew. Only the last payload can be a large one."""
        is_large = bool(ready) and ready[-1][END] - ready[-1][BEGIN] > OUTPUT_BYTES
        for some in (ready[:-1], ready[-1:]) if is_large else (ready,):
            if some:
                yield from self._bounded(chunk, np.array(some, dtype=np.int64))
        ready.clear()
        self._scratch.used = 0
        if is_large:
            self._scratch.give_away()

    def _bounded(self, chunk: Chunk, payloads: LongArray) -> Iterator[pa.RecordBatch]:
        """Fill from a few small payloads at once, from a large one piece by piece."""
        row, begin, end, compression_id, magic, _, _ = payloads[0].tolist()
        if begin == UNSEEN or end - begin <= OUTPUT_BYTES:
            yield from self._filled(chunk, payloads, self._buffers, {})
            return
        # No record of a batch is given away before all are judged.
        nothing = self._buffers.allocate(0, 0)
        self._fill(chunk, payloads, self._buffers.wanted, nothing, new_cursor(), (0, 0))
        if chunk.table[row, FAULT]:
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

    def _piece(self, chunk: Chunk, _: ByteArray, piece: LongArray) -> Iterator[pa.RecordBatch]:
        return self._filled(chunk, piece, self._buffers, {})

    def _single(
        self, chunk: Chunk, source: ByteArray, piece: LongArray
    ) -> Iterator[pa.RecordBatch]:
        """One large record: its key and value are the decompressed bytes themselves, or copied from
        those of the file."""
        _, begin, end, compression_id, magic, _, _ = piece[0].tolist()
        fields = np.zeros(FIELDS_SIZE, dtype=np.int64)
        find_record_fields(source, begin, end, magic, fields)
        given: dict[str, pa.Array] = {}
        for name, place in (("key", KEY_START), ("value", VALUE_START)):
            start, size = fields[place : place + 2].tolist()
            if name in self.schema.names:
                found = source[start : start + max(size, 0)]
                given[name] = one_binary(found if compression_id else found.copy(), size < 0)
        yield from self._filled(chunk, piece, self._lean_buffers, given)

    def _fill(
        self,
        chunk: Chunk,
        payloads: LongArray,
        wanted: Wanted,
        arrays: RecordArrays,
        cursor: LongArray,
        offsets: tuple[int, int],
    ) -> None:
        """Append the records with offsets in [offsets[0], offsets[1])."""
        fill_rows(
            chunk.data,
            self._scratch.data,
            chunk.table,
            payloads,
            *offsets,
            self._first_ms,
            self._last_ms,
            self._options.check_crcs,
            wanted,
            arrays,
            cursor,
            self._before,
            self._fields,
            self._crc_tables,
        )

    def _filled(
        self,
        chunk: Chunk,
        payloads: LongArray,
        buffers: RecordBuffers,
        given: Mapping[str, pa.Array],
    ) -> Iterator[pa.RecordBatch]:
        """The records, a bounded number at a time; columns that are given need not be filled."""
        payload_bytes = int((payloads[:, END] - payloads[:, BEGIN]).sum())
        payload_bytes -= sum(column.buffers()[2].size for column in given.values())
        arrays = buffers.allocate(int(payloads[:, MOST_RECORDS].sum()), payload_bytes)
        cursor = new_cursor()
        offsets = self._options.first_offset, self._options.end_offset
        self._fill(chunk, payloads, buffers.wanted, arrays, cursor, offsets)
        count = int(cursor[RECORDS])
        if count:
            columns = {**buffers.columns(cursor), **given}
            batch = self._record_batch(chunk.table, arrays.row[:count], columns)
            header_ends = arrays.headers_ends[: count + 1] if buffers.wanted.headers else None
            for start, end in _rows_at_once(count, header_ends):
                yield batch.slice(start, end - start)

    def _record_batch(
        self, table: LongArray, rows: IntArray, columns: dict[str, pa.Array]
    ) -> pa.RecordBatch:
        asked_metadata = [name for name in self.schema.names if name in METADATA_COLUMNS]
        if asked_metadata:
            offsets = integers(columns["offset"])
            for name in asked_metadata:
                columns[name] = METADATA_COLUMNS[name](table, rows, offsets)
        for name, constant in self._constants.items():
            columns[name] = constant.of(len(rows))
        return record_batch(columns, self.schema, len(rows))


def _rows_at_once(count: int, header_ends: IntArray | None) -> Iterator[tuple[int, int]]:
    """Spans of rows with a bounded number of rows and headers: one Kafka batch can hold millions
    of either."""
    start = 0
    while start < count:
        end = min(start + _MOST_ROWS, count)
        if header_ends is not None:
            most = int(header_ends[start]) + _MOST_ROWS
            fitting = int(np.searchsorted(header_ends[: end + 1], most, side="right")) - 1
            end = max(fitting, start + 1)
        yield start, end
        start = end


def _payloads_seen(columns: set[str]) -> int:
    if columns & _PAYLOAD_COLUMNS:
        return ALL_SEEN
    return TIMES_SEEN if columns & _TIME_COLUMNS else GAPS_SEEN
