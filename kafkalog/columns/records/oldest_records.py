"""View `records` of a file of the oldest layout: by the plain reader, for there are few such files.

Rules: docs/format.md F154 to F157.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width, of_values, record_batch
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records.segment_reader import Constants, OnFault
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.faults import Fault, Severity
from kafkalog.storage.reading.oldest_log import OldestRange, is_unfinished, read_oldest_file
from kafkalog.storage.recovery.framing import Readable
from kafkalog.wire.compression import CompressionType

_ROWS = 4096
_BYTES = 16 * 1024 * 1024
_Rows = list[tuple[OldestRange, int, bytes]]
# Columns with the same value in every row of these files.
_SAME = {"timestampType": NO_VALUE, "timestampMs": NO_VALUE, "isTransactional": False}


@dataclass
class OldestRecords:
    """The records of a file of the oldest layout, as `SegmentRecords` has those of the others."""

    file: Readable
    options: SegmentOptions
    columns: Sequence[str]
    constants: Constants
    on_fault: OnFault
    log_end: int = field(default=0, init=False)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the records, in the order of the file."""
        options = self.options
        base_offset = options.base_offset or 0
        rows: _Rows = []
        size = 0
        self.log_end = base_offset + self.file.size
        for found in read_oldest_file(
            self.file,
            base_offset,
            first_offset=options.first_offset,
            end_offset=options.end_offset,
            check_crcs=options.check_crcs,
            max_message_bytes=options.max_batch_bytes,
        ):
            if found.fault is not Fault.NONE:
                if found.entry is None and found.fault is not Fault.TOO_LARGE:
                    self.log_end = base_offset + found.position
                is_last = options.next_base_offset is None
                self.on_fault(_faulty(found, base_offset, is_last=is_last))
            for record in found.records:
                rows.append((found, record.offset, record.value or b""))
                size += len(record.value or b"")
            if len(rows) >= _ROWS or size >= _BYTES:
                yield _batch(rows, self.columns, self.constants)
                rows, size = [], 0
        if rows:
            yield _batch(rows, self.columns, self.constants)


def _faulty(found: OldestRange, base_offset: int, *, is_last: bool) -> FaultyRange:
    offset = base_offset + found.position
    severity = found.fault.severity
    if is_last and is_unfinished(found):
        severity = Severity.INFORMATION
    has_entry = found.entry is not None
    return FaultyRange(
        position=found.position,
        length=found.size,
        fault=found.fault,
        severity=severity,
        detail=found.detail,
        expected_offset=offset,
        base_offset=offset if has_entry else None,
        last_offset=offset if has_entry else None,
        stored_crc=found.entry.crc if found.entry else None,
    )


def _batch(rows: _Rows, columns: Sequence[str], constants: Constants) -> pa.RecordBatch:
    schema = arrow_schema("records", tuple(columns))
    arrays = {field.name: _column(field, rows, constants) for field in schema}
    return record_batch(arrays, schema, len(rows))


def _column(field: pa.Field, rows: _Rows, constants: Constants) -> pa.Array:
    if field.name == "value":
        return _binary([value for _, _, value in rows])
    if field.name in ("offset", "batchBaseOffset"):
        return fixed_width(np.array([offset for _, offset, _ in rows]), field.type)
    if field.name == "position":
        return fixed_width(np.array([found.position for found, _, _ in rows]), field.type)
    entries = [found.entry for found, _, _ in rows if found.entry]
    if field.name == "magic":
        return fixed_width(np.array([entry.magic for entry in entries]), field.type)
    if field.name == "compression":
        names = [CompressionType(entry.compression_id).name.lower() for entry in entries]
        return of_values(names, field.type)
    same = _SAME.get(field.name, constants.get(field.name))
    if same is None:
        return pa.nulls(len(rows), field.type)
    return of_values([same] * len(rows), field.type)


def _binary(values: list[bytes]) -> pa.Array:
    ends = np.zeros(len(values) + 1, dtype=np.int32)
    ends[1:] = np.cumsum([len(value) for value in values])
    data = pa.py_buffer(b"".join(values))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), data])
