"""One walk through the batches of a log: where it is cut, and what of it is sound. Rules:
docs/restore.md F1041, F1043 and F1064.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import CONTROL_BIT
from kafkalog.format.faults import Fault
from kafkalog.format.side_files.leader_epochs import EpochStart, without_end
from kafkalog.inspection.logs.past_ends import TimeCut
from kafkalog.inspection.logs.replica_facts import known_leader_epochs, sound_rows
from kafkalog.inspection.metadata.data_facts import is_tiered
from kafkalog.questions.restore.partitions.log_starts import (
    LogStart,
    epochs_with_beginning,
    log_start_at,
)
from kafkalog.questions.restore.partitions.partition_plans import (
    LATEST_MS,
    LostBytes,
    PartitionPlan,
    Piece,
    PlanTask,
    SegmentPlan,
)
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.replicas import ReplicaFacts

_FOUND_DAMAGE = 100


def new_plan(task: PlanTask, facts: Sequence[ReplicaFacts], number: int) -> PartitionPlan:
    """Return a plan from one of the copies, in which nothing is kept yet."""
    log = task.copies[number].log
    end = max(each.log_end for each in facts)
    start = LogStart(facts[number].log_start)
    if task.as_of_ms < LATEST_MS and not task.is_compacted:
        logs = [copy.log for copy in task.copies]
        start = log_start_at(logs, number, start.offset, task.as_of_ms)
    plan = PartitionPlan(
        task.topic, task.partition, task.topic_id, log.path, start.offset, 0, end, covered_ms=None
    )
    if is_tiered(log):
        plan.tiered_from = log.log_start
    plan.deleted_to, plan.deleted_ms = start.copied, start.deleted_ms
    return plan


def epochs_of(plan: PartitionPlan, log: PartitionLog) -> list[EpochStart]:
    """Return the leader epochs of what is restored of a log."""
    is_begun_earlier = plan.deleted_ms is not None
    epochs = epochs_with_beginning(log) if is_begun_earlier else known_leader_epochs(log)
    return without_end(epochs, plan.cut)


@dataclass
class _Run:
    """Sound batches that follow each other in a file."""

    start: int
    end: int
    next_offset: int
    records: int


class LogWalk:
    """One walk through the chosen copy: finds the cut, and what is sound."""

    def __init__(self, plan: PartitionPlan, log: PartitionLog, task: PlanTask) -> None:
        self._plan = plan
        self._log = log
        self._task = task
        self._times = TimeCut(task.as_of_ms)
        self._runs: list[tuple[SegmentFile, list[_Run], int]] = []

    def add(self, segment: SegmentFile) -> None:
        """Read the next segment."""
        runs: list[_Run] = []
        max_ms = -1
        for table in sound_rows(segment):
            self._note_lost(segment, table)
            rows = own_rows(segment, table)
            if not len(rows):
                continue
            self.note(rows)
            max_ms = max(max_ms, int(rows[:, column.MAX_TIMESTAMP].max()))
            _added(runs, rows)
        self._runs.append((segment, runs, max_ms))
        end = runs[-1].next_offset if runs else segment.base_offset or 0
        if segment.is_cut and segment.next_base_offset is not None:
            self._note_missing(end, segment.next_base_offset)

    def _note_missing(self, start: int, end: int) -> None:
        """Tiered storage has whole logs: between its segments, and before the disk, no offset is
        missing."""
        if start < end:
            self._plan.missing += ((start, end),)

    def _note_lost(self, segment: SegmentFile, table: LongArray) -> None:
        faults = table[:, column.FAULT]
        for row in table[(faults != 0) & (faults != Fault.ZEROS)]:
            if len(self._plan.lost) < _FOUND_DAMAGE:
                place = int(row[column.POSITION]), int(row[column.SIZE])
                reason = Fault(int(row[column.FAULT])).label
                self._plan.lost += (LostBytes(segment.path, *place, reason),)

    def note(self, rows: LongArray) -> None:
        """Take note of sound batches, in any order."""
        self._times.note(rows)
        self._note_highest(rows)

    def _note_highest(self, rows: LongArray) -> None:
        plan = self._plan
        epochs = rows[rows[:, column.LEADER_EPOCH_FAULT] == 0, column.LEADER_EPOCH]
        plan.max_epoch = max(plan.max_epoch, int(epochs.max(initial=-1)))
        plan.max_producer_id = max(
            plan.max_producer_id, int(rows[:, column.PRODUCER_ID].max(initial=-1))
        )

    def finish(self) -> None:
        """Set the cut, and the segments below it."""
        plan = self._plan
        ends = [runs[-1].next_offset for _, runs, _ in self._runs if runs]
        self.set_cut(max([plan.start, *ends]))
        kept: list[SegmentPlan] = []
        for segment, runs, max_ms in self._runs:
            base = segment.base_offset or 0
            if base < plan.cut and (segment.size or not kept):
                kept.append(self._segment(segment, runs, max_ms))
        plan.segments = tuple(kept)
        plan.epochs = tuple(epochs_of(plan, self._log))
        plan.bytes = sum(each.size for each in plan.segments)
        if plan.cut < max(ends, default=0):
            plan.lost = tuple(each for each in plan.lost if self._is_below_cut(each))

    def _is_below_cut(self, lost: LostBytes) -> bool:
        """Return whether damaged bytes are before the last batch that is kept, not the end of a
        batch that was being written."""
        below = [each for each, _, _ in self._runs if (each.base_offset or 0) < self._plan.cut]
        if not below or lost.path != below[-1].path:
            return any(each.path == lost.path for each in below)
        pieces = self._plan.segments[-1].pieces
        return not pieces or lost.position < pieces[-1].end

    def set_cut(self, end: int) -> None:
        """Set the cut of a log that ends at an offset."""
        plan = self._plan
        cut = min(self._times.offset(end), self._task.limit)
        plan.is_by_producers = cut < end and cut == self._times.late_by_producer
        plan.cut = max(cut, plan.start)
        plan.old_end = max(plan.old_end, end)

    def _segment(self, segment: SegmentFile, runs: list[_Run], max_ms: int) -> SegmentPlan:
        plan = self._plan
        if any(run.next_offset > plan.cut for run in runs):
            runs, max_ms = _cut_runs(segment, plan.cut)
        pieces = tuple(Piece(segment.path, run.start, run.end) for run in runs)
        plan.records += sum(run.records for run in runs)
        plan.last_ms = max(plan.last_ms, max_ms)
        base = segment.base_offset or 0
        next_offset = runs[-1].next_offset if runs else base
        is_whole = pieces == (Piece(segment.path, 0, segment.size),)
        return SegmentPlan(base, pieces, is_whole, max_ms, next_offset)


def _runs(rows: LongArray) -> Iterator[_Run]:
    """Yield the rows as runs of bytes without a gap."""
    starts = rows[:, column.POSITION]
    ends = starts + rows[:, column.SIZE]
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    after = rows[:, column.LAST_OFFSET] + 1
    is_data = rows[:, column.ATTRIBUTES] & CONTROL_BIT == 0
    records = np.where(is_data, rows[:, column.RECORDS_COUNT], 0)
    for low, high in zip([0, *breaks], [*breaks, len(rows)], strict=True):
        count = int(records[low:high].sum())
        yield _Run(int(starts[low]), int(ends[high - 1]), int(after[high - 1]), count)


def _added(runs: list[_Run], rows: LongArray) -> None:
    """Add the rows of the next batches of a file to its runs."""
    for run in _runs(rows):
        if runs and runs[-1].end == run.start:
            runs[-1].end, runs[-1].next_offset = run.end, run.next_offset
            runs[-1].records += run.records
        else:
            runs.append(run)


def _cut_runs(segment: SegmentFile, cut: int) -> tuple[list[_Run], int]:
    """Return the sound bytes of a segment below the cut, and the largest timestamp in them."""
    runs: list[_Run] = []
    max_ms = -1
    for rows in kept_rows(segment, cut):
        max_ms = max(max_ms, int(rows[:, column.MAX_TIMESTAMP].max()))
        _added(runs, rows)
    return runs, max_ms


def own_rows(segment: SegmentFile, table: LongArray) -> LongArray:
    """Return the sound batches of a batch table that are of a segment: an object in tiered storage
    can go on with offsets of the next one."""
    rows: LongArray = table[table[:, column.FAULT] == 0]
    if segment.is_cut and segment.next_base_offset is not None:
        rows = rows[rows[:, column.LAST_OFFSET] < segment.next_base_offset]
    return rows


def kept_rows(segment: SegmentFile, cut: int) -> Iterator[LongArray]:
    """Yield the rows of the sound batches that end below the cut."""
    for table in sound_rows(segment):
        rows = own_rows(segment, table)
        rows = rows[rows[:, column.LAST_OFFSET] < cut]
        if len(rows):
            yield rows
