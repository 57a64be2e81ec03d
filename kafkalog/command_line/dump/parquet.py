"""Dump batches or records to a Parquet file, with the columns of views `batches` and `records`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.columns.records.segment_reader import SegmentBatchRows, SegmentRecords
from kafkalog.command_line.dump.plan import Item, LogItem, planned
from kafkalog.command_line.dump.request import DumpRequest
from kafkalog.command_line.dump.run import Progress, ended, opened_output, record_filter
from kafkalog.command_line.terminal import print_note
from kafkalog.exit_codes import ExitCode
from kafkalog.format.faults import Severity
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.lake.layout import Compression, TableLayout
from kafkalog.lake.table_writer import PAYLOAD_COLUMNS, parquet_writer
from kafkalog.schemas import table_fields
from kafkalog.storage.files.output_files import is_written_directly
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.views.progress import progress_bar
from kafkalog.words import counted

# Of a file with a larger batch one process reads, and nothing is compressed (F57).
_LARGE_BATCH_BYTES = 32 * 1024 * 1024
# Rows, and findings.
_Part = tuple[pa.RecordBatch | None, tuple[str, ...]]


def run_parquet(request: DumpRequest, *, fail_on_findings: bool) -> ExitCode:
    """Write the requested rows to the output file. Raises what reading files raises."""
    items = planned(request)
    progress = Progress()
    size = sum(item.size for item in items)
    layout = TableLayout()
    # A part is larger than planned if one of its batches is: no copy more of that than needed.
    is_large = max((item.size for item in items), default=0) > _LARGE_BATCH_BYTES
    if is_large:
        layout = replace(layout, compression=Compression.NONE)
    left = LARGEST_OFFSET if request.limit is None else request.limit
    parts = in_order(
        partial(_parts, request=request),
        items,
        processes=1 if is_large or request.limit else processes_for(size, request.processes),
        on_done=lambda item: bar.update(item.size),
    )
    with (
        opened_output(request, [item.path for item in items]) as output,
        _arrow_sink(output, request) as sink,
        parquet_writer(sink, _schema(request), layout, data_page_version="2.0") as writer,
        progress_bar(size) as bar,
    ):
        for rows, findings in parts:
            if rows is not None:
                written = rows.slice(0, left)
                writer.write_batch(written)
                left -= len(written)
                progress.rows += len(written)
                if written.nbytes > _LARGE_BATCH_BYTES:
                    # Give it back before more is read.
                    del rows, written
                    pa.default_memory_pool().release_unused()
            for finding in findings:
                print_note(finding)
            progress.findings += len(findings)
            if not left:
                break
    parts.close()
    print_note(_written_words(progress.rows, request))
    return ended(progress, fail_on_findings=fail_on_findings)


def _arrow_sink(output: BinaryIO, request: DumpRequest) -> AbstractContextManager[Any]:
    """Return the output as Arrow writes it without a copy: what is a file of Python receives
    copies. An output that is open elsewhere stays as it is, for to open it again empties it."""
    if request.output is None or is_written_directly(request.output):
        return nullcontext(output)
    sink: AbstractContextManager[Any] = pa.OSFile(f"/dev/fd/{output.fileno()}", "wb")
    return sink


def _written_words(rows: int, request: DumpRequest) -> str:
    if request.is_deep:
        return f"{counted(rows, 'record')} written to {request.output}"
    return f"{counted(rows, 'batch')} written to {request.output}; --deep writes records"


def _columns(request: DumpRequest) -> tuple[str, ...]:
    names = tuple(
        str(field["name"]) for field in table_fields("records" if request.is_deep else "batches")
    )
    if request.is_deep and not request.payloads:
        return tuple(name for name in names if name not in PAYLOAD_COLUMNS)
    return names


def _schema(request: DumpRequest) -> pa.Schema:
    columns = _columns(request)
    return record_schema(columns) if request.is_deep else arrow_schema("batches", columns)


def _parts(item: Item, request: DumpRequest) -> Iterator[_Part]:
    """Yield the rows of a file, or of a part of one."""
    if not isinstance(item, LogItem):
        return
    read, columns = item.read, _columns(request)
    options = SegmentOptions.of_read(read, timestamps=request.timestamps)
    keep = record_filter(request)
    constants = {
        "topic": read.topic,
        "partition": read.partition,
        "file": read.path,
        "brokerId": read.broker_id,
    }
    found: list[str] = []

    def on_fault(fault: FaultyRange) -> None:
        if fault.severity > Severity.INFORMATION:
            found.append(fault.line(read.path))

    with opened_segment(read) as file:
        window = FileWindow(file)
        if request.is_deep:
            for records in SegmentRecords(window, options, columns, constants, on_fault).rows():
                yield (records if keep is None else keep(records)), ()
        else:
            for batches in SegmentBatchRows(window, options, columns, constants).rows():
                yield batches, ()
    yield None, tuple(found)
