"""What is measured of kafkalog: each function reads a segment its own way, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from benchmarks.inputs.segments import HEADER_BYTES, Segment
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow, MemoryWindow, Window
from kafkalog.columns.records.segment_reader import SegmentBatchRows, SegmentRecords
from kafkalog.schemas import table_fields
from kafkalog.storage.files.files import InputFile

FULL = ("key", "value", "offset", "timestamp")
NARROW = ("offset", "timestamp")
# Columns that need the payload read or decompressed, or come from elsewhere, are not in a header.
_NOT_IN_HEADER = {"topic", "partition", "file", "computed_crc", "is_valid", "fault"}
_NOT_IN_HEADER.add("uncompressed_size")
HEADER = tuple(
    field["name"] for field in table_fields("batches") if field["name"] not in _NOT_IN_HEADER
)


def _fail(fault: FaultyRange) -> NoReturn:
    raise ValueError(f"the input is damaged: {fault}")


def _options(*, check_crcs: bool) -> SegmentOptions:
    return SegmentOptions(0, check_crcs=check_crcs)


def records(
    segment: Segment, columns: tuple[str, ...] = FULL, *, check_crcs: bool = True
) -> Iterator[pa.RecordBatch]:
    """The records, from memory."""
    return _records(MemoryWindow(segment.data), columns, check_crcs=check_crcs)


def records_of_file(path: Path, columns: tuple[str, ...] = FULL) -> Iterator[pa.RecordBatch]:
    """The records, from a file."""
    with InputFile(str(path)) as file:
        yield from _records(FileWindow(file), columns, check_crcs=True)


def _records(
    window: Window, columns: tuple[str, ...], *, check_crcs: bool
) -> Iterator[pa.RecordBatch]:
    return SegmentRecords(window, _options(check_crcs=check_crcs), columns, {}, _fail).rows()


def headers(segment: Segment) -> Iterator[pa.RecordBatch]:
    """All that batch headers say, from memory."""
    return _headers(MemoryWindow(segment.data))


def headers_of_file(path: Path) -> Iterator[pa.RecordBatch]:
    """The same from a file, of which only the headers are read where batches are large."""
    with InputFile(str(path)) as file:
        yield from _headers(FileWindow(file))


def _headers(window: Window) -> Iterator[pa.RecordBatch]:
    return SegmentBatchRows(window, _options(check_crcs=False), HEADER, {}).rows()


def payload_bytes(segment: Segment) -> int:
    """How many bytes all payloads have, decompressed; by kafkalog's own account of batches."""
    window = MemoryWindow(segment.data)
    found = SegmentBatchRows(window, _options(check_crcs=False), ("uncompressed_size",), {}).rows()
    sizes: int = sum(size for batch in found for size in batch.column(0).to_pylist())
    return sizes - HEADER_BYTES * len(segment.batches)
