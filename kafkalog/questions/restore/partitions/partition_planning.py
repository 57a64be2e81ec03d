"""What is planned of each partition, in a task of its own. Rules: docs/restore.md F1039 to F1046,
F1050 and F1064.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.indexes import AbortedTransaction
from kafkalog.format.transaction_marker import COMMIT, read_marker
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.inspection.logs.replica_facts import replica_facts
from kafkalog.inspection.metadata.data_facts import log_facts
from kafkalog.questions.restore.partitions.log_walk import LogWalk, new_plan
from kafkalog.questions.restore.partitions.partition_plans import (
    Marker,
    OpenTransaction,
    PartitionPlan,
    Piece,
    PlanTask,
    SegmentPlan,
)
from kafkalog.questions.restore.partitions.united_logs import united_plan
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.tiered_chunks import tiered_manifest_path
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_snapshots import newest_snapshot
from kafkalog.storage.reading.replicas import ReplicaFacts, by_lineage
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame, frames
from kafkalog.storage.recovery.producer_state import BrokerStartError, ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers

# Markers so long before the moment can belong to a decision after it: clocks of brokers differ.
_CLOCKS_MS = 60_000


def plan_partition(task: PlanTask) -> Iterator[PartitionPlan]:
    """Yield the plan of a partition. Raises OSError for files that cannot be read."""
    logs = [copy.log for copy in task.copies]
    facts = [replica_facts(log) for log in logs]
    order = by_lineage(facts)
    others = [log_facts(log) for log in logs]
    plan = united_plan(task, facts, order) if task.is_compacted else _walked(task, facts, order[0])
    if plan.lost and len(logs) > 1:
        plan = _mended(plan, united_plan(task, facts, order))
    plan.covered_ms = max(
        (copy.covered_ms for copy in task.copies if copy.covered_ms is not None), default=None
    )
    plan.max_epoch = max(plan.max_epoch, *(each.last_epoch for each in others))
    plan.max_producer_id = max(plan.max_producer_id, *(each.producer_id for each in others))
    plan.known_end = max(log.log_dir.high_watermarks.get(plan.key, 0) for log in logs)
    log = logs[order[0]]
    plan.cleaned_to = log.log_dir.cleaner_checkpoints.get(plan.key)
    plan.other_copies = tuple(each.path for each in logs if each is not log)
    _follow_producers(plan, log, task.as_of_ms)
    yield plan


def _mended(damaged: PartitionPlan, plan: PartitionPlan) -> PartitionPlan:
    """Return the plan of a log that is not cleaned from all copies, where the best one is damaged:
    what is damaged in one is taken from another. With offsets that are sound in none, the damage
    counts."""
    plan.is_cleaned_beyond = False
    plan.lost = damaged.lost if plan.offsets < plan.cut - plan.start else ()
    return plan


def _walked(task: PlanTask, facts: Sequence[ReplicaFacts], number: int) -> PartitionPlan:
    """Return the plan from one of the copies."""
    plan = new_plan(task, facts, number)
    log = task.copies[number].log
    walk = LogWalk(plan, log, task)
    for segment in log.segments:
        walk.add(segment)
    walk.finish()
    return plan


def _follow_producers(plan: PartitionPlan, log: PartitionLog, as_of_ms: int) -> None:
    """Set the producers at the cut, the transactions that are open there, those aborted since the
    snapshot that was begun with, and the markers shortly before the moment."""
    last_base = plan.segments[-1].base_offset if plan.segments else plan.start
    first = plan.segments[0].base_offset if plan.segments else plan.start
    # The files of a log that is united do not begin where snapshots were taken, and a segment in
    # compressed chunks has no index of aborted transactions beside it.
    is_chunked = any(tiered_manifest_path(piece.path) for piece in _pieces(plan))
    is_begun = not plan.is_united and not is_chunked
    found = newest_snapshot(log, first, last_base) if is_begun else None
    start, entries = found or (first, [])
    state = ProducerState(entries)
    plan.producers_from = start
    ended: list[AbortedTransaction] = []
    markers: list[Marker] = []
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
            ended.append(aborted)
        producer = header.producer_id
        if producer in state.open_transactions:
            first_ms.setdefault(producer, header.max_timestamp_ms)
        else:
            first_ms.pop(producer, None)
        if header.is_control and header.max_timestamp_ms > as_of_ms - _CLOCKS_MS:
            is_commit = read_marker(file.read(frame.position, header.size)).type == COMMIT
            place = header.base_offset, header.max_timestamp_ms
            markers.append(Marker(producer, header.producer_epoch, *place, is_commit))
    plan.aborted, plan.markers = tuple(ended), tuple(markers)
    plan.producers = tuple(state.producers.values())
    plan.open = tuple(
        OpenTransaction(
            producer,
            state.producers[producer].producer_epoch,
            offset,
            first_ms.get(producer, state.producers[producer].timestamp_ms),
        )
        for producer, offset in state.open_transactions.items()
    )


def _pieces(plan: PartitionPlan) -> Iterator[Piece]:
    return (piece for segment in plan.segments for piece in segment.pieces)


def _frames(segments: Sequence[SegmentPlan], start: int) -> Iterator[tuple[InputFile, Frame]]:
    """Yield the batches of producers with ids that are kept from an offset on, each with its file:
    others, which can be millions, say nothing about producers."""
    for segment in segments:
        if segment.next_offset <= start:
            continue
        for path, pieces in groupby(segment.pieces, lambda piece: piece.path):
            with InputFile(path) as file:
                for piece in pieces:
                    for position in _positions(file, piece, start):
                        yield file, next(frames(file, position))


def _positions(file: InputFile, piece: Piece, start: int) -> Iterator[int]:
    """Yield where the batches of producers with ids are in sound bytes of a file."""
    window = FileWindow(_SoundPart(file, piece))
    for chunk in SegmentHeaders(window, SegmentOptions()).chunks():
        rows = chunk.table
        is_from = (rows[:, column.PRODUCER_ID] >= 0) & (rows[:, column.BASE_OFFSET] >= start)
        chosen = rows[is_from & (rows[:, column.IS_BATCH] == 1), column.POSITION]
        yield from (chosen + piece.start).tolist()


class _SoundPart:
    """A part of a file as a file of its own. All of it was read before."""

    def __init__(self, file: InputFile, piece: Piece) -> None:
        self._file = file
        self._start = piece.start
        self.size = piece.end - piece.start
        self.unreadable = UnreadableRanges()

    def read_around(self, position: int, size: int) -> bytes:
        return self._file.read(self._start + position, min(size, self.size - position))

    def read_into(self, position: int, target: memoryview) -> None:
        target[:] = self.read_around(position, len(target))
