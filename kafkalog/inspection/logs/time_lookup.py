"""The offset for a time, as `kafka-get-offsets --time` answers it. Rule: docs/format.md F99."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.columns.arrays import integers
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.index_lookup import first_offset_from, start_position
from kafkalog.storage.reading.renamed_files import opened_segment


def offset_for_time(log: PartitionLog, start_offset: int, timestamp_ms: int) -> int | None:
    """Return the first offset from `start_offset` on whose record has this timestamp or a later
    one.

    Reads batch headers, and records from the first batch on that may hold it. None if no record is
    as late. Damaged batches count for nothing.
    """
    for segment in log.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= start_offset:
            continue
        with opened_segment(segment) as file:
            # No batch below is as late, whatever state it is in.
            first = max(start_offset, first_offset_from(file.path, timestamp_ms))
            found = _in_segment(file, segment, first, timestamp_ms)
        if found is not None:
            return found
    return None


def _in_segment(
    file: InputFile, segment: SegmentFile, start_offset: int, timestamp_ms: int
) -> int | None:
    options = SegmentOptions.of(segment, first_offset=start_offset)
    options = replace(options, start_position=start_position(file.path, start_offset))
    late = _first_late_batch(SegmentHeaders(FileWindow(file), options), start_offset, timestamp_ms)
    if late is None:
        return None
    # A wrong length can hide batches from who looks at headers only: where one could have, all is
    # read. The header can also promise more than the records hold: then later ones are tried.
    first = start_offset if late.is_doubtful else max(start_offset, late.first_offset)
    batch = replace(options, first_offset=first, start_position=start_position(file.path, first))
    return _first_late_offset(FileWindow(file), batch, timestamp_ms)


@dataclass(frozen=True, slots=True)
class _LateBatch:
    """A batch that may hold the record; doubtful if damage or gaps lie before it."""

    first_offset: int
    is_doubtful: bool


def _first_late_batch(
    headers: SegmentHeaders, start_offset: int, timestamp_ms: int
) -> _LateBatch | None:
    is_doubtful = False
    for chunk in headers.chunks():
        table = chunk.table
        may_hold = (
            (table[:, column.FAULT] == 0)
            & (table[:, column.RECORDS_COUNT] != 0)
            & (table[:, column.MAX_TIMESTAMP] >= timestamp_ms)
            & (table[:, column.LAST_OFFSET] >= start_offset)
        )
        before = int(may_hold.argmax()) if may_hold.any() else len(table)
        is_doubtful = is_doubtful or bool(_is_odd(table[: before + 1]).any())
        if before < len(table):
            return _LateBatch(int(table[before, column.EXPECTED_OFFSET]), is_doubtful)
    # Nothing found, and something may be hidden: the whole segment is read.
    return _LateBatch(start_offset, True) if is_doubtful else None


def _is_odd(table: LongArray) -> NDArray[np.bool_]:
    """Return where something is damaged or offsets are missing, as they are if a length is
    wrong."""
    has_gap = (table[:, column.MAGIC] == 2) & (
        table[:, column.BASE_OFFSET] != table[:, column.EXPECTED_OFFSET]
    )
    odd: NDArray[np.bool_] = has_gap | (table[:, column.FAULT] != 0)
    return odd


def _first_late_offset(
    window: FileWindow, options: SegmentOptions, timestamp_ms: int
) -> int | None:
    columns = ("offset", "timestampMs")
    for batch in SegmentRecords(
        window, options, columns, {}, lambda fault: None, with_control_records=True
    ).rows():
        offsets, times = (integers(batch.column(name)) for name in columns)
        late = offsets[times >= timestamp_ms]
        if len(late):
            return int(late[0])
    return None
