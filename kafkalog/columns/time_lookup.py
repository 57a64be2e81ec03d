"""The offset for a time, as `kafka-get-offsets --time` answers it. Rule: docs/format.md F99."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafkalog.columns.batch_table import EXPECTED_OFFSET, FAULT, LAST_OFFSET, MAX_TIMESTAMP
from kafkalog.columns.segment_batches import SegmentHeaders, SegmentOptions
from kafkalog.columns.segment_reader import read_records
from kafkalog.columns.window import FileWindow
from kafkalog.storage.files import InputFile
from kafkalog.storage.log_dir import PartitionLog, SegmentFile


def offset_for_time(log: PartitionLog, start_offset: int, timestamp_ms: int) -> int | None:
    """The first offset from `start_offset` on whose record has this timestamp or a later one.

    Reads batch headers, and the records of the first batch that may hold it. None if no record is
    as late. Damaged batches count for nothing.
    """
    for segment in log.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= start_offset:
            continue
        with InputFile(segment.path) as file:
            found = _in_segment(file, segment, start_offset, timestamp_ms)
        if found is not None:
            return found
    return None


def _in_segment(
    file: InputFile, segment: SegmentFile, start_offset: int, timestamp_ms: int
) -> int | None:
    options = SegmentOptions(segment.base_offset, segment.next_base_offset)
    for chunk in SegmentHeaders(FileWindow(file), options).chunks():
        table = chunk.table
        late = table[
            (table[:, FAULT] == 0)
            & (table[:, MAX_TIMESTAMP] >= timestamp_ms)
            & (table[:, LAST_OFFSET] >= start_offset)
        ]
        for first, last in late[:, (EXPECTED_OFFSET, LAST_OFFSET)].tolist():
            # The header can promise more than the records hold: then the next batch is tried.
            batch = replace(options, first_offset=max(first, start_offset), end_offset=last + 1)
            found = _first_late_offset(FileWindow(file), batch, timestamp_ms)
            if found is not None:
                return found
    return None


def _first_late_offset(
    window: FileWindow, options: SegmentOptions, timestamp_ms: int
) -> int | None:
    columns = ("offset", "timestampMs")
    for batch in read_records(
        window, options, columns, {}, lambda fault: None, with_control_records=True
    ):
        offsets, times = (
            np.frombuffer(batch.column(name).buffers()[1], dtype=np.int64)[: batch.num_rows]
            for name in columns
        )
        late = offsets[times >= timestamp_ms]
        if len(late):
            return int(late[0])
    return None
