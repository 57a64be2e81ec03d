"""Records of a segment as Arrow record batches of the asked columns: the fast reader's second half.

Names and types of the columns: schemas/tables/records.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import Constant, integers, record_batch
from kafkalog.columns.batch_table import FAULT, RECORDS_COUNT, SIZE, UNCOMPRESSED_SIZE
from kafkalog.columns.compiled import IntArray, LongArray
from kafkalog.columns.fill import FIELDS_SIZE, fill_rows
from kafkalog.columns.message_kernels import slicing_tables
from kafkalog.columns.payloads import (
    ALL_SEEN,
    BEGIN,
    COMPRESSION_ID,
    END,
    GAPS_SEEN,
    MOST_RECORDS,
    PAYLOAD_WIDTH,
    TIMES_SEEN,
    Scratch,
    ScratchFullError,
    group_end,
    most_records,
    place_payloads,
)
from kafkalog.columns.record_arrays import LEAST_MS, RECORDS, new_cursor
from kafkalog.columns.record_buffers import RecordBuffers
from kafkalog.columns.record_metadata import METADATA_COLUMNS, record_schema
from kafkalog.columns.segment_batches import TABLE_ROWS, Chunk
from kafkalog.columns.segment_options import SegmentOptions
from kafkalog.columns.transaction_outcomes import TransactionOutcomes
from kafkalog.storage.read_counts import read_counts

# About the batch size at which Spark takes Arrow data fastest (docs/decisions).
OUTPUT_BYTES = 4 * 1024 * 1024
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
                yield from self._filled(chunk, payloads[start:end])
            start = end

    def _compressed(self, chunk: Chunk, payloads: LongArray) -> Iterator[pa.RecordBatch]:
        """Decompress as much as an Arrow batch holds, fill from it, and so on."""
        stored = chunk.data.data
        scratch = self._scratch
        ready: list[tuple[int, ...]] = []
        for row, begin, end, compression_id, magic, _ in payloads.tolist():
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
            ready.append((row, used, scratch.used, compression_id, magic, most))
            if scratch.used >= OUTPUT_BYTES:
                yield from self._from_scratch(chunk, ready)
        yield from self._from_scratch(chunk, ready)

    def _from_scratch(self, chunk: Chunk, ready: list[tuple[int, ...]]) -> Iterator[pa.RecordBatch]:
        """Use what is decompressed, and begin anew."""
        if ready:
            yield from self._filled(chunk, np.array(ready, dtype=np.int64))
        ready.clear()
        self._scratch.used = 0

    def _filled(self, chunk: Chunk, payloads: LongArray) -> Iterator[pa.RecordBatch]:
        table = chunk.table
        payload_bytes = int((payloads[:, END] - payloads[:, BEGIN]).sum())
        arrays = self._buffers.allocate(int(payloads[:, MOST_RECORDS].sum()), payload_bytes)
        cursor = new_cursor()
        fill_rows(
            chunk.data,
            self._scratch.data,
            table,
            payloads,
            self._options.first_offset,
            self._options.end_offset,
            self._first_ms,
            self._last_ms,
            self._options.check_crcs,
            self._buffers.wanted,
            arrays,
            cursor,
            self._before,
            self._fields,
            self._crc_tables,
        )
        count = int(cursor[RECORDS])
        if count:
            batch = self._record_batch(table, arrays.row[:count], cursor)
            # One Kafka batch can hold millions of records.
            for start in range(0, count, _MOST_ROWS):
                yield batch.slice(start, _MOST_ROWS)

    def _record_batch(self, table: LongArray, rows: IntArray, cursor: LongArray) -> pa.RecordBatch:
        columns = self._buffers.columns(cursor)
        asked_metadata = [name for name in self.schema.names if name in METADATA_COLUMNS]
        if asked_metadata:
            offsets = integers(columns["offset"])
            for name in asked_metadata:
                columns[name] = METADATA_COLUMNS[name](table, rows, offsets)
        for name, constant in self._constants.items():
            columns[name] = constant.of(len(rows))
        return record_batch(columns, self.schema, len(rows))


def _payloads_seen(columns: set[str]) -> int:
    if columns & _PAYLOAD_COLUMNS:
        return ALL_SEEN
    return TIMES_SEEN if columns & _TIME_COLUMNS else GAPS_SEEN
