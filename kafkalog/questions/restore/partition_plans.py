"""Where a partition is cut, from which copy, and what is open there. Rules: docs/restore.md R10,
R12 to R17, R21 and R35.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import CONTROL_BIT, LOG_APPEND_TIME_BIT, read_header
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.indexes import AbortedTransaction
from kafkalog.format.side_files.leader_epochs import EpochStart, without_end
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.format.transaction_marker import read_marker
from kafkalog.inspection.logs.replica_facts import (
    known_leader_epochs,
    replica_facts,
    sound_rows,
)
from kafkalog.inspection.metadata.data_facts import log_facts
from kafkalog.questions.restore.sources import Copy
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_snapshots import newest_snapshot
from kafkalog.storage.reading.replicas import ReplicaFacts, by_lineage, epoch_divergence
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.recovery.framing import Frame
from kafkalog.storage.recovery.producer_state import BrokerStartError, ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers

# Markers so long before the moment can belong to a decision after it: clocks of brokers differ.
_CLOCKS_MS = 60_000
_FOUND_DAMAGE = 100


@dataclass(frozen=True, slots=True)
class LostBytes:
    """Bytes of the chosen copy that are no sound batch."""

    path: str
    position: int
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction in a partition."""

    producer_id: int
    producer_epoch: int
    offset: int
    time_ms: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without a marker below the cut; `first_ms` is the time of its first batch that
    was seen."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    first_ms: int


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """The sound bytes of a segment below the cut: ranges of positions, and whether they are the
    whole file."""

    path: str
    base_offset: int
    ranges: tuple[tuple[int, int], ...]
    is_whole: bool
    max_ms: int
    next_offset: int

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(end - start for start, end in self.ranges)


@dataclass
class PartitionPlan:
    """What of a partition is restored. Offsets from `cut` up to `old_end` were in some copy, and
    are not used again. `is_by_producers` says that producers' times made the cut."""

    topic: str
    partition: int
    topic_id: str
    log: PartitionLog
    start: int
    cut: int
    old_end: int
    covered_ms: int | None
    last_ms: int = -1
    max_epoch: int = -1
    max_producer_id: int = -1
    records: int = 0
    bytes: int = 0
    is_by_producers: bool = False
    segments: list[SegmentPlan] = field(default_factory=list)
    epochs: list[EpochStart] = field(default_factory=list)
    lost: list[LostBytes] = field(default_factory=list)
    open: list[OpenTransaction] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    producers: list[ProducerEntry] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    producers_from: int = 0
    other_copies: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """TOPIC-PARTITION."""
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A partition to plan: its copies, the moment, and an offset that the cut is not above."""

    topic: str
    partition: int
    topic_id: str
    copies: Sequence[Copy]
    as_of_ms: int
    limit: int = LARGEST_OFFSET


def plan_partition(task: PlanTask) -> Iterator[PartitionPlan]:
    """Yield the plan of a partition. Raises OSError for files that cannot be read."""
    logs = [copy.log for copy in task.copies]
    facts = [replica_facts(log) for log in logs]
    order = by_lineage(facts)
    others = [log_facts(log) for log in logs]
    plan = _walked(task, facts, order[0])
    if logs[order[0]].is_compacted:
        number = _least_cleaned(task, facts, order, plan)
        if number != order[0]:
            plan = _walked(task, facts, number)
    plan.covered_ms = max(
        (copy.covered_ms for copy in task.copies if copy.covered_ms is not None), default=None
    )
    plan.max_epoch = max(plan.max_epoch, *(each.last_epoch for each in others))
    plan.max_producer_id = max(plan.max_producer_id, *(each.producer_id for each in others))
    plan.other_copies = [log.path for log in logs if log is not plan.log]
    _follow_producers(plan, task.as_of_ms)
    yield plan


def _walked(task: PlanTask, facts: Sequence[ReplicaFacts], number: int) -> PartitionPlan:
    """Return the plan from one of the copies."""
    log = task.copies[number].log
    plan = PartitionPlan(
        *(task.topic, task.partition, task.topic_id, log, facts[number].log_start, 0),
        max(each.log_end for each in facts),
        None,
    )
    walk = _Walk(plan, task)
    for segment in log.segments:
        walk.add(segment)
    walk.finish()
    return plan


def _least_cleaned(
    task: PlanTask, facts: Sequence[ReplicaFacts], order: Sequence[int], best: PartitionPlan
) -> int:
    """Return the copy that was made first of those that have all of the best one up to the moment:
    later ones can lack what the cleaner has removed since."""
    kept = max((each.next_offset for each in best.segments), default=0)
    chosen = order[0]
    for number in order[1:]:
        covered, least = task.copies[number].covered_ms, task.copies[chosen].covered_ms
        if covered is None or covered < task.as_of_ms or (least is not None and covered >= least):
            continue
        divergence = epoch_divergence(facts[number], facts[order[0]])
        if facts[number].log_end >= kept and (divergence is None or divergence >= kept):
            chosen = number
    return chosen


@dataclass
class _Run:
    """Sound batches that follow each other in a file."""

    start: int
    end: int
    next_offset: int
    records: int


class _Walk:
    """One walk through the chosen copy: finds the cut, and what is sound."""

    def __init__(self, plan: PartitionPlan, task: PlanTask) -> None:
        self._plan = plan
        self._task = task
        self._late_by_producer = LARGEST_OFFSET
        self._late_by_broker = LARGEST_OFFSET
        self._early_by_broker = 0
        self._runs: list[tuple[SegmentFile, list[_Run], int]] = []

    def add(self, segment: SegmentFile) -> None:
        runs: list[_Run] = []
        max_ms = -1
        for table in sound_rows(segment):
            self._note_lost(segment, table)
            rows = table[table[:, column.FAULT] == 0]
            if not len(rows):
                continue
            self._note_times(rows)
            self._note_highest(rows)
            max_ms = max(max_ms, int(rows[:, column.MAX_TIMESTAMP].max()))
            _added(runs, rows)
        self._runs.append((segment, runs, max_ms))

    def _note_lost(self, segment: SegmentFile, table: LongArray) -> None:
        faults = table[:, column.FAULT]
        for row in table[(faults != 0) & (faults != Fault.ZEROS)]:
            if len(self._plan.lost) < _FOUND_DAMAGE:
                place = int(row[column.POSITION]), int(row[column.SIZE])
                reason = Fault(int(row[column.FAULT])).label
                self._plan.lost.append(LostBytes(segment.path, *place, reason))

    def _note_times(self, rows: LongArray) -> None:
        is_by_broker = rows[:, column.ATTRIBUTES] & (CONTROL_BIT | LOG_APPEND_TIME_BIT) != 0
        is_late = rows[:, column.MAX_TIMESTAMP] > self._task.as_of_ms
        first, after = first_offsets(rows), rows[:, column.LAST_OFFSET] + 1
        self._late_by_broker = min(
            self._late_by_broker, _least(first[is_late & is_by_broker])
        )
        self._late_by_producer = min(
            self._late_by_producer, _least(first[is_late & ~is_by_broker])
        )
        early = after[~is_late & is_by_broker]
        self._early_by_broker = max(self._early_by_broker, int(early.max(initial=0)))

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
        end = max([plan.start, *ends])
        by_producer = max(self._late_by_producer, self._early_by_broker)
        cut = min(end, by_producer, self._late_by_broker, self._task.limit)
        plan.is_by_producers = cut < end and cut == self._late_by_producer
        plan.cut = max(cut, plan.start)
        plan.old_end = max(plan.old_end, end)
        for segment, runs, max_ms in self._runs:
            base = segment.base_offset or 0
            if base < plan.cut and (segment.size or not plan.segments):
                plan.segments.append(self._segment(segment, runs, max_ms))
        plan.epochs = without_end(known_leader_epochs(plan.log), plan.cut)
        plan.bytes = sum(each.size for each in plan.segments)

    def _segment(self, segment: SegmentFile, runs: list[_Run], max_ms: int) -> SegmentPlan:
        plan = self._plan
        if any(run.next_offset > plan.cut for run in runs):
            runs, max_ms = _cut_runs(segment, plan.cut)
        kept = tuple((run.start, run.end) for run in runs)
        plan.records += sum(run.records for run in runs)
        plan.last_ms = max(plan.last_ms, max_ms)
        base = segment.base_offset or 0
        next_offset = runs[-1].next_offset if runs else base
        is_whole = kept == ((0, segment.size),)
        return SegmentPlan(segment.path, base, kept, is_whole, max_ms, next_offset)


def _least(offsets: LongArray) -> int:
    return int(offsets.min(initial=LARGEST_OFFSET))


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


def kept_rows(segment: SegmentFile, cut: int) -> Iterator[LongArray]:
    """Yield the rows of the sound batches that end below the cut."""
    for table in sound_rows(segment):
        rows = table[(table[:, column.FAULT] == 0) & (table[:, column.LAST_OFFSET] < cut)]
        if len(rows):
            yield rows


def _follow_producers(plan: PartitionPlan, as_of_ms: int) -> None:
    """Set the producers at the cut, the transactions that are open there, those aborted since the
    snapshot that was begun with, and the markers shortly before the moment."""
    log = plan.log
    last_base = plan.segments[-1].base_offset if plan.segments else plan.start
    first = log.segments[0].base_offset or 0 if log.segments else 0
    found = newest_snapshot(log, first, last_base)
    start, entries = found if found is not None and found[0] <= last_base else (first, [])
    state = ProducerState(entries)
    plan.producers_from = start
    first_ms = {
        entry.producer_id: entry.timestamp_ms
        for entry in entries
        if entry.transaction_first_offset >= 0
    }
    for segment in log.segments:
        base = segment.base_offset or 0
        if base >= plan.cut or (segment.next_base_offset or LARGEST_OFFSET) <= start:
            continue
        with opened_segment(segment) as file:
            for rows in kept_rows(segment, plan.cut):
                rows = rows[(rows[:, column.PRODUCER_ID] >= 0) & (rows[:, column.MAGIC] == 2)]
                for row in rows[first_offsets(rows) >= start]:
                    position, size = int(row[column.POSITION]), int(row[column.SIZE])
                    is_control = int(row[column.ATTRIBUTES]) & CONTROL_BIT
                    header = read_header(file.read(position, size if is_control else 61), 0)
                    try:
                        aborted = add_to_producers(file, Frame(position, header), state)
                    except (BrokerStartError, CorruptDataError):
                        continue
                    if aborted is not None:
                        plan.aborted.append(aborted)
                    producer = header.producer_id
                    if producer in state.open_transactions:
                        first_ms.setdefault(producer, header.max_timestamp_ms)
                    else:
                        first_ms.pop(producer, None)
                    if is_control and header.max_timestamp_ms > as_of_ms - _CLOCKS_MS:
                        marker = read_marker(file.read(position, size))
                        plan.markers.append(
                            Marker(
                                producer,
                                header.producer_epoch,
                                header.base_offset,
                                header.max_timestamp_ms,
                                marker.type == 1,
                            )
                        )
    plan.producers = list(state.producers.values())
    plan.open = [
        OpenTransaction(
            producer,
            state.producers[producer].producer_epoch,
            offset,
            first_ms.get(producer, state.producers[producer].timestamp_ms),
        )
        for producer, offset in state.open_transactions.items()
    ]
