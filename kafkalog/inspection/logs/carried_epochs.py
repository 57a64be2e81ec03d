"""The leader epochs that the batches of a log carry, whatever the file beside them says.

Rule: docs/format.md F929.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import (
    MAGIC_POSITION,
    NO_VALUE,
    V2_HEADER,
    BatchHeader,
    read_header,
)
from kafkalog.format.side_files.leader_epochs import CarriedEpoch, with_carried
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment


def carried_epochs(log: PartitionLog) -> list[CarriedEpoch]:
    """Return the epochs in the batches of a log, in order.

    Epochs rise: of a segment that begins with the same one as the next, only the first header is
    read; of all others each. A segment that was cleaned can begin with a later offset than its
    name says.
    """
    found: list[CarriedEpoch] = []
    headers = [_first_header(segment) for segment in log.segments]
    next_headers = [*headers[1:], None][: len(headers)]
    for segment, header, following in zip(log.segments, headers, next_headers, strict=True):
        if header is None or following is None or header.leader_epoch != following.leader_epoch:
            for each in _walked(segment):
                with_carried(found, each)
        elif header.leader_epoch != NO_VALUE:
            base, after = segment.base_offset or 0, segment.next_base_offset or 0
            first = header.base_offset if base <= header.base_offset < after else base
            with_carried(found, CarriedEpoch(header.leader_epoch, first, after - 1))
    return found


def table_epochs(table: LongArray) -> list[CarriedEpoch]:
    """Return the epochs in the sound batches of a batch table."""
    is_known = (table[:, column.FAULT] == 0) & (table[:, column.LEADER_EPOCH] != NO_VALUE)
    rows = table[is_known & (table[:, column.LEADER_EPOCH_FAULT] == 0)]
    epochs = rows[:, column.LEADER_EPOCH]
    bounds = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(rows)]
    starts, lasts = first_offsets(rows), rows[:, column.LAST_OFFSET]
    return [
        CarriedEpoch(int(epochs[start]), int(starts[start]), int(lasts[end - 1]))
        for start, end in pairwise(bounds)
        if start < end
    ]


def _first_header(segment: SegmentFile) -> BatchHeader | None:
    """Return the header of the first batch; None where there is none that can be read."""
    try:
        with opened_segment(segment) as file:
            data = file.read(0, V2_HEADER.size)
    except CorruptDataError:
        return None
    if len(data) < V2_HEADER.size or data[MAGIC_POSITION] > 2:
        return None
    return read_header(data, 0)


def _walked(segment: SegmentFile) -> list[CarriedEpoch]:
    found: list[CarriedEpoch] = []
    with opened_segment(segment) as file:
        for chunk in SegmentHeaders(FileWindow(file), SegmentOptions.of(segment)).chunks():
            for each in table_epochs(chunk.table):
                with_carried(found, each)
    return found
