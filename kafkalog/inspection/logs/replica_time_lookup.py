"""The offset for a time in a log that has several replicas. Rules: docs/format.md F99 and
F174.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.filled_records import FilledRecords
from kafkalog.inspection.logs.time_lookup import offset_for_time
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replica_reads import ReplicaSet


def offset_for_time_in_replicas(
    replicas: ReplicaSet, start_offset: int, timestamp_ms: int
) -> int | None:
    """Return the first offset from `start_offset` on whose record, be it filled from another
    replica, has this timestamp or a later one; None if there is none.

    Where no other replica has such a record earlier than the best one, it is the best one's.
    """
    found, *others = (offset_for_time(log, start_offset, timestamp_ms) for log in replicas.logs)
    agreed = [
        offset
        for number, offset in enumerate(others, start=1)
        if offset is not None and offset < replicas.agreed_ends[number]
    ]
    earliest = min(agreed, default=found)
    if earliest is None or (found is not None and found <= earliest):
        return found
    for segment in replicas.best.segments:
        if segment.next_base_offset is None or segment.next_base_offset > earliest:
            offset = _first_late_offset(replicas, segment, earliest, timestamp_ms)
            if offset is not None:
                return offset
    return None


def _first_late_offset(
    replicas: ReplicaSet, segment: SegmentFile, start_offset: int, timestamp_ms: int
) -> int | None:
    """Return the first offset of a late record as the segment is read, what is missing filled."""
    options = SegmentOptions.of(segment, first_offset=start_offset)
    earliest: list[int] = []
    with opened_segment(segment) as file:
        for batch in FilledRecords(
            FileWindow(file),
            options,
            ("offset", "timestampMs"),
            {},
            replicas.filling(segment),
            on_fault=lambda fault: None,
            on_filled=lambda span, path: None,
            with_control_records=True,
        ).rows():
            offsets, times = (np.asarray(batch.column(name)) for name in batch.schema.names)
            late = offsets[times >= timestamp_ms]
            if len(late):
                earliest.append(int(late.min()))
    return min(earliest, default=None)
