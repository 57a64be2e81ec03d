"""The records that are lost with a choice of a leader, in one Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import pyarrow as pa

from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.command_line.terminal import print_note
from kafkalog.inspection.partitions.lost_tails import LostTail
from kafkalog.lake.table_writer import parquet_writer
from kafkalog.schemas import table_fields
from kafkalog.storage.files.output_files import whole_file
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replica_reads import overlaps
from kafkalog.views.parallel import in_order

LOST_RECORDS = "lost_records.parquet"


def write_lost_records(tails: Sequence[LostTail], scratch: str, target: str, processes: int) -> int:
    """Write the records of tails, which lie in `scratch` and get to `target`, with the columns of
    view `records`; each record once, from the first broker that has it. Return how many there
    are."""
    columns = tuple(str(each["name"]) for each in table_fields("records"))
    parts = in_order(
        partial(_parts, scratch=scratch, target=target, columns=columns), tails, processes=processes
    )
    count = 0
    with (
        whole_file(os.path.join(scratch, LOST_RECORDS)) as output,
        parquet_writer(output, record_schema(columns), data_page_version="2.0") as writer,
        closing(parts),
    ):
        for part in parts:
            if isinstance(part, str):
                print_note(part)
            else:
                writer.write_batch(part)
                count += len(part)
    return count


def _parts(
    tail: LostTail, scratch: str, target: str, columns: Sequence[str]
) -> Iterator[pa.RecordBatch | str]:
    """Yield the records of a tail, and what is damaged in it."""
    (log,) = find_partitions([os.path.join(scratch, tail.directory)])
    found: list[str] = []
    for segment in log.segments:
        name = os.path.basename(segment.path)
        path = os.path.join(target, tail.directory, name)

        def on_fault(fault: FaultyRange, path: str = path) -> None:
            found.append(fault.line(path))

        constants: dict[str, str | int | None] = {
            "topic": tail.topic,
            "partition": tail.partition,
            "file": path,
            "brokerId": tail.broker_id,
        }
        for first, end in tail.owned:
            if overlaps(segment, first, end):
                options = replace(SegmentOptions.of(segment, first_offset=first), end_offset=end)
                with opened_segment(segment) as file:
                    window = FileWindow(file)
                    yield from SegmentRecords(window, options, columns, constants, on_fault).rows()
    yield from found
