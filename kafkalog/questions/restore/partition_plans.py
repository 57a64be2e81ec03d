"""Where a partition is cut, from which copy, and what is open there. Rules: docs/restore.md F1039,
F1041 to F1046, F1050 and F1064.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import CONTROL_BIT, LOG_APPEND_TIME_BIT
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET, MAX_RELATIVE_OFFSET
from kafkalog.format.side_files.indexes import AbortedTransaction
from kafkalog.format.side_files.leader_epochs import EpochStart, without_end
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.format.transaction_marker import COMMIT, read_marker
from kafkalog.inspection.logs.replica_facts import known_leader_epochs, replica_facts, sound_rows
from kafkalog.inspection.metadata.data_facts import is_tiered, log_facts
from kafkalog.questions.restore.sources import Copy
from kafkalog.storage.files.files import InputFile, list_directory
from kafkalog.storage.names import segment_file_name
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_snapshots import newest_snapshot
from kafkalog.storage.reading.replicas import ReplicaFacts, by_lineage, epoch_divergence
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame, frames
from kafkalog.storage.recovery.producer_state import BrokerStartError, ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers

# Markers so long before the moment can belong to a decision after it: clocks of brokers differ.
_CLOCKS_MS = 60_000
_FOUND_DAMAGE = 100


@dataclass(frozen=True, slots=True)
class LostBytes:
    """Bytes of the chosen copy that form no sound batch."""

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


class Piece(NamedTuple):
    """Bytes of a file, from one position up to another."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """The sound bytes of a segment below the cut, and whether they are the whole file of one."""

    base_offset: int
    pieces: tuple[Piece, ...]
    is_whole: bool
    max_ms: int
    next_offset: int

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(each.end - each.start for each in self.pieces)

    @property
    def whole_path(self) -> str | None:
        """The log file that is kept as it is, None where parts of files are."""
        return self.pieces[0].path if self.is_whole else None


@dataclass
class PartitionPlan:
    """What of a partition is restored. Offsets from `cut` up to `old_end` were in some copy, and
    are not used again. `is_by_producers` says that producers' times made the cut; `is_united` that
    batches of several copies make the log, `is_cleaned_beyond` that the cleaner of each copy has
    looked at records after the cut: what these superseded can be gone. The offsets from
    `tiered_from` up to `start` are in tiered storage alone. `known_end` is the highest one that a
    checkpoint of high watermarks has."""

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
    is_united: bool = False
    is_cleaned_beyond: bool = False
    tiered_from: int | None = None
    known_end: int = 0

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
    """A partition to plan: its copies, the moment, whether its topic is compacted, and an offset
    that the cut is not above."""

    topic: str
    partition: int
    topic_id: str
    copies: Sequence[Copy]
    as_of_ms: int
    is_compacted: bool = False
    limit: int = LARGEST_OFFSET


def plan_partition(task: PlanTask) -> Iterator[PartitionPlan]:
    """Yield the plan of a partition. Raises OSError for files that cannot be read."""
    logs = [copy.log for copy in task.copies]
    facts = [replica_facts(log) for log in logs]
    order = by_lineage(facts)
    others = [log_facts(log) for log in logs]
    if task.is_compacted:
        plan = _united(task, facts, order)
    else:
        plan = _walked(task, facts, order[0])
    plan.covered_ms = max(
        (copy.covered_ms for copy in task.copies if copy.covered_ms is not None), default=None
    )
    plan.max_epoch = max(plan.max_epoch, *(each.last_epoch for each in others))
    plan.max_producer_id = max(plan.max_producer_id, *(each.producer_id for each in others))
    plan.known_end = max(log.log_dir.high_watermarks.get(plan.key, 0) for log in logs)
    plan.other_copies = [log.path for log in logs if log is not plan.log]
    _follow_producers(plan, task.as_of_ms)
    yield plan


def _new_plan(task: PlanTask, facts: Sequence[ReplicaFacts], number: int) -> PartitionPlan:
    log = task.copies[number].log
    end = max(each.log_end for each in facts)
    start = facts[number].log_start
    plan = PartitionPlan(
        task.topic, task.partition, task.topic_id, log, start, 0, end, covered_ms=None
    )
    if is_tiered(log):
        plan.tiered_from = log.log_start
    return plan


def _walked(task: PlanTask, facts: Sequence[ReplicaFacts], number: int) -> PartitionPlan:
    """Return the plan from one of the copies."""
    plan = _new_plan(task, facts, number)
    walk = _Walk(plan, task)
    for segment in plan.log.segments:
        walk.add(segment)
    walk.finish()
    return plan


_UNITED = (
    *(column.BASE_OFFSET, column.LAST_OFFSET, column.RECORDS_COUNT, column.POSITION),
    *(column.SIZE, column.MAX_TIMESTAMP, column.ATTRIBUTES),
)
_BASE, _LAST, _COUNT, _AT, _BYTES, _MS, _BITS, _FILE = range(8)
# As large as brokers make a segment.
_SEGMENT_BYTES = 1024**3


def _united(task: PlanTask, facts: Sequence[ReplicaFacts], order: Sequence[int]) -> PartitionPlan:
    """Return the plan from all copies of a compacted log, with the files that the cleaner has
    replaced: of a batch the one that has the most records. What was in force at the moment can be
    superseded, and removed in a copy that was made later."""
    plan = _new_plan(task, facts, order[0])
    plan.is_united = True
    walk = _Walk(plan, task)
    paths: list[str] = []
    tables: list[LongArray] = []
    cleaned_to: list[int] = []
    for number in order:
        divergence = epoch_divergence(facts[number], facts[order[0]])
        first_table = len(tables)
        for segment in _with_replaced(task.copies[number].log):
            for table in sound_rows(segment):
                rows = table[table[:, column.FAULT] == 0]
                if divergence is not None:
                    rows = rows[rows[:, column.LAST_OFFSET] < divergence]
                if len(rows):
                    walk.note(rows)
                    file = np.full((len(rows), 1), len(paths), dtype=np.int64)
                    tables.append(np.hstack((rows[:, _UNITED], file)))
            paths.append(segment.path)
        copy = task.copies[number]
        if copy.covered_ms is not None and copy.covered_ms >= task.as_of_ms:
            cleaned_to.append(_cleaned_to(copy.log, plan.start, tables[first_table:]))
    rows = np.concatenate(tables) if tables else np.zeros((0, 8), dtype=np.int64)
    end = int(rows[:, _LAST].max(initial=plan.start - 1)) + 1
    walk.set_cut(end)
    rows = rows[(rows[:, _LAST] < plan.cut) & (rows[:, _LAST] >= plan.start)]
    ordered = rows[np.lexsort((-rows[:, _COUNT], rows[:, _LAST]))]
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:, _LAST] != ordered[:-1, _LAST]
    kept = ordered[is_first]
    is_data = kept[:, _BITS] & CONTROL_BIT == 0
    plan.records = int(kept[is_data, _COUNT].sum())
    plan.last_ms = int(kept[:, _MS].max(initial=-1))
    plan.segments = list(_united_segments(kept, paths, plan.start))
    plan.is_cleaned_beyond = not any(end <= plan.cut for end in cleaned_to)
    plan.epochs = without_end(known_leader_epochs(plan.log), plan.cut)
    plan.bytes = sum(each.size for each in plan.segments)
    return plan


def _cleaned_to(log: PartitionLog, start: int, tables: Sequence[LongArray]) -> int:
    """Return the offset before which the cleaner of a copy has surely stopped: that of its
    checkpoint. A gap after it says that files were copied later than the checkpoint: then none is
    known."""
    end = max(log.log_dir.cleaner_checkpoints.get((log.topic or "", log.partition or 0), 0), start)
    rows = np.concatenate(tables) if tables else np.zeros((0, 8), dtype=np.int64)
    rows = rows[rows[:, _LAST] >= end]
    rows = rows[np.argsort(rows[:, _LAST], kind="stable")]
    # Records below the first offset of a batch, or between those of one, are gone.
    reached = np.maximum.accumulate(np.concatenate(([end - 1], rows[:, _LAST])))[:-1]
    is_gap = (rows[:, _BASE] > reached + 1) | (
        (rows[:, _COUNT] > 0) & (rows[:, _COUNT] < rows[:, _LAST] - rows[:, _BASE] + 1)
    )
    return LARGEST_OFFSET if is_gap.any() else end


def _united_segments(rows: LongArray, paths: Sequence[str], start: int) -> Iterator[SegmentPlan]:
    pieces: list[Piece] = []
    base, size, max_ms, next_offset = start, 0, -1, start
    for first, last, _, position, length, ms, _, file in rows.tolist():
        is_far = last - base > MAX_RELATIVE_OFFSET
        if pieces and (size + length > _SEGMENT_BYTES or is_far):
            yield SegmentPlan(base, tuple(pieces), False, max_ms, next_offset)
            pieces, size, max_ms = [], 0, -1
            base = first if is_far else next_offset
        if pieces and pieces[-1][0] == paths[file] and pieces[-1].end == position:
            pieces[-1] = pieces[-1]._replace(end=position + length)
        else:
            pieces.append(Piece(paths[file], position, position + length))
        size, max_ms, next_offset = size + length, max(max_ms, ms), last + 1
    if pieces:
        yield SegmentPlan(base, tuple(pieces), False, max_ms, next_offset)


def _with_replaced(log: PartitionLog) -> Iterator[SegmentFile]:
    """Yield the segments of a log, and those that the cleaner has replaced and not yet removed."""
    yield from log.segments
    yield from replaced_segments(log)


def replaced_segments(log: PartitionLog) -> Iterator[SegmentFile]:
    """Yield the segments that a broker has marked for deletion."""
    for entry in list_directory(log.path):
        name = segment_file_name(entry.name)
        if name is not None and name.kind == ".log" and name.mark == ".deleted":
            yield SegmentFile(entry.path, name.base_offset, None, entry.size, log.path)


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
            self.note(rows)
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

    def note(self, rows: LongArray) -> None:
        """Take note of sound batches, in any order."""
        self._note_times(rows)
        self._note_highest(rows)

    def _note_times(self, rows: LongArray) -> None:
        is_by_broker = rows[:, column.ATTRIBUTES] & (CONTROL_BIT | LOG_APPEND_TIME_BIT) != 0
        is_late = rows[:, column.MAX_TIMESTAMP] > self._task.as_of_ms
        first, after = first_offsets(rows), rows[:, column.LAST_OFFSET] + 1
        self._late_by_broker = min(self._late_by_broker, _least(first[is_late & is_by_broker]))
        self._late_by_producer = min(self._late_by_producer, _least(first[is_late & ~is_by_broker]))
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
        self.set_cut(max([plan.start, *ends]))
        for segment, runs, max_ms in self._runs:
            base = segment.base_offset or 0
            if base < plan.cut and (segment.size or not plan.segments):
                plan.segments.append(self._segment(segment, runs, max_ms))
        plan.epochs = without_end(known_leader_epochs(plan.log), plan.cut)
        plan.bytes = sum(each.size for each in plan.segments)

    def set_cut(self, end: int) -> None:
        """Set the cut of a log that ends at an offset."""
        plan = self._plan
        by_producer = max(self._late_by_producer, self._early_by_broker)
        cut = min(end, by_producer, self._late_by_broker, self._task.limit)
        plan.is_by_producers = cut < end and cut == self._late_by_producer
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
    last_base = plan.segments[-1].base_offset if plan.segments else plan.start
    first = plan.segments[0].base_offset if plan.segments else plan.start
    # The files of a log that is united do not begin where snapshots were taken.
    found = None if plan.is_united else newest_snapshot(plan.log, first, last_base)
    start, entries = found or (first, [])
    state = ProducerState(entries)
    plan.producers_from = start
    first_ms = {
        entry.producer_id: entry.timestamp_ms
        for entry in entries
        if entry.transaction_first_offset >= 0
    }
    for file, frame in _frames(plan.segments, start):
        header = frame.header
        if header.magic < LATEST_FORMAT or header.producer_id < 0:
            continue
        try:
            aborted = add_to_producers(file, frame, state)
        except (BrokerStartError, CorruptDataError):
            continue
        if aborted is not None:
            plan.aborted.append(aborted)
        producer = header.producer_id
        if producer in state.open_transactions:
            first_ms.setdefault(producer, header.max_timestamp_ms)
        else:
            first_ms.pop(producer, None)
        if header.is_control and header.max_timestamp_ms > as_of_ms - _CLOCKS_MS:
            is_commit = read_marker(file.read(frame.position, header.size)).type == COMMIT
            place = header.base_offset, header.max_timestamp_ms
            plan.markers.append(Marker(producer, header.producer_epoch, *place, is_commit))
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


def _frames(segments: Sequence[SegmentPlan], start: int) -> Iterator[tuple[InputFile, Frame]]:
    """Yield the batches that are kept from an offset on, each with its file."""
    for segment in segments:
        if segment.next_offset <= start:
            continue
        for piece in segment.pieces:
            with InputFile(piece.path) as file:
                for frame in frames(file, piece.start, piece.end):
                    if frame.header.base_offset >= start:
                        yield file, frame
