"""The offset for a time in a log that has several replicas. Rules: docs/format.md F99, F174
and F930.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.filled_records import FilledRecords
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.inspection.logs.time_lookup import time_answer
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.offset_ranges import LARGEST_TIME_MS, TimeAnswer, TimeRule
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replica_reads import ReplicaSet


def offset_for_time_in_replicas(
    replicas: ReplicaSet, start_offset: int, timestamp_ms: int
) -> int | None:
    """Return the first offset from `start_offset` on whose record, be it filled from another
    replica, has this timestamp or a later one; None if there is none.

    Where no other replica has such a record earlier than the best one, it is the best one's.
    """
    return time_answer_in_replicas(replicas, start_offset, timestamp_ms, None).offset


def time_answer_in_replicas(
    replicas: ReplicaSet, start_offset: int, timestamp_ms: int, rule: TimeRule | None
) -> TimeAnswer:
    """Return the same as an answer; by a rule that passes over doubtful records, for the first
    record that is not doubtful (F930)."""
    found, *others = (time_answer(log, start_offset, timestamp_ms, rule) for log in replicas.logs)
    agreed = [
        answer
        for number, answer in enumerate(others, start=1)
        if answer.offset is not None and answer.offset < replicas.agreed_ends[number]
    ]
    earliest = min(agreed, key=_offset, default=found)
    if earliest.offset is None or (found.offset is not None and found.offset <= earliest.offset):
        return found
    latest_ms = LARGEST_TIME_MS
    if rule is not None and rule.passes_over:
        latest_ms = rule.now_ms + rule.max_future_ms
    for segment in replicas.best.segments:
        if segment.next_base_offset is None or segment.next_base_offset > earliest.offset:
            read = _FilledSegment(replicas, segment)
            offset = read.first_offset(earliest.offset, timestamp_ms, latest_ms)
            if offset is not None:
                return TimeAnswer(offset, earliest.doubtful)
    return TimeAnswer(None, earliest.doubtful)


def _offset(answer: TimeAnswer) -> int:
    return LARGEST_OFFSET if answer.offset is None else answer.offset


@dataclass(frozen=True, slots=True)
class _FilledSegment:
    """A segment of the best replica, what is missing filled from others."""

    replicas: ReplicaSet
    segment: SegmentFile

    def first_offset(self, start_offset: int, first_ms: int, last_ms: int) -> int | None:
        """Return the first offset from `start_offset` on whose record has one of these times."""
        options = SegmentOptions.of(self.segment, first_offset=start_offset)
        earliest: list[int] = []
        with opened_segment(self.segment) as file:
            for batch in FilledRecords(
                FileWindow(file),
                options,
                ("offset", "timestampMs"),
                {},
                self.replicas.filling(self.segment),
                on_fault=lambda fault: None,
                on_filled=lambda span, path: None,
                with_control_records=True,
            ).rows():
                offsets, times = (np.asarray(batch.column(name)) for name in batch.schema.names)
                late = offsets[(times >= first_ms) & (times <= last_ms)]
                if len(late):
                    earliest.append(int(late.min()))
        return min(earliest, default=None)
