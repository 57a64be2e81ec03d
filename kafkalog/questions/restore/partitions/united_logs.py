"""A compacted log united from all of its copies. Rules: docs/restore.md F1041, F1201 and F1217."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import CONTROL_BIT
from kafkalog.format.offsets import MAX_RELATIVE_OFFSET
from kafkalog.inspection.logs.replica_facts import sound_rows
from kafkalog.questions.restore.partitions.log_walk import LogWalk, epochs_of, new_plan
from kafkalog.questions.restore.partitions.partition_plans import (
    PartitionPlan,
    Piece,
    PlanTask,
    SegmentPlan,
)
from kafkalog.storage.files.files import list_directory
from kafkalog.storage.names import segment_file_name
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replicas import ReplicaFacts, epoch_divergence

_UNITED = (
    *(column.BASE_OFFSET, column.LAST_OFFSET, column.RECORDS_COUNT, column.POSITION),
    *(column.SIZE, column.MAX_TIMESTAMP, column.ATTRIBUTES),
)
_BASE, _LAST, _COUNT, _AT, _BYTES, _MS, _BITS, _FILE = range(8)
# As large as brokers make a segment.
_SEGMENT_BYTES = 1024**3


def united_plan(
    task: PlanTask, facts: Sequence[ReplicaFacts], order: Sequence[int]
) -> PartitionPlan:
    """Return the plan from all copies of a compacted log, with the files that the cleaner has
    replaced: of a batch the one that has the most records. What was in force at the moment can be
    superseded, and removed in a copy that was made later."""
    plan = new_plan(task, facts, order[0])
    plan.is_united = True
    log = task.copies[order[0]].log
    walk = LogWalk(plan, log, task)
    sources: list[UnitedSource] = []
    cleaners: list[_Cleaner] = []
    end = plan.start
    for number in order:
        divergence = epoch_divergence(facts[number], facts[order[0]])
        copy = task.copies[number]
        cleaner = _Cleaner.of(copy.log, facts[number].log_start)
        for segment in _with_replaced(copy.log):
            source = UnitedSource(segment, len(sources), divergence)
            is_live = segment in copy.log.segments
            end = max(end, source.noted(walk, *([cleaner] if is_live else [])))
            sources.append(source)
        if copy.covered_ms is not None and copy.covered_ms >= task.as_of_ms:
            cleaners.append(cleaner)
    walk.set_cut(end)
    segments = _UnitedSegments(sources, plan.start)
    for rows in merged(sources):
        kept = rows[(rows[:, _LAST] < plan.cut) & (rows[:, _LAST] >= plan.start)]
        if not len(kept):
            continue
        is_data = kept[:, _BITS] & CONTROL_BIT == 0
        plan.offsets += int((kept[:, _LAST] - kept[:, _BASE] + 1).sum())
        plan.records += int(kept[is_data, _COUNT].sum())
        plan.last_ms = max(plan.last_ms, int(kept[:, _MS].max()))
        segments.add(kept)
    plan.segments = tuple(segments.ended())
    is_cut = plan.cut < plan.old_end
    plan.is_cleaned_beyond = is_cut and not any(each.stopped_before(plan.cut) for each in cleaners)
    plan.epochs = tuple(epochs_of(plan, log))
    plan.bytes = sum(each.size for each in plan.segments)
    return plan


class _Notes(Protocol):
    def note(self, rows: LongArray) -> None:
        """Take note of sound batches."""


@dataclass
class _Cleaner:
    """How far the cleaner of a copy has been: to its checkpoint. A gap after it says that files
    were copied later than the checkpoint (F1217)."""

    checkpoint: int
    _next_offset: int
    _has_gap: bool = False

    @classmethod
    def of(cls, log: PartitionLog, start_offset: int) -> _Cleaner:
        """Return the cleaner of a log, before the batches of its segments are noted in order."""
        key = log.topic or "", log.partition or 0
        checkpoint = log.log_dir.cleaner_checkpoints.get(key, 0)
        return cls(checkpoint, max(checkpoint, start_offset))

    def note(self, rows: LongArray) -> None:
        """Look for gaps after the checkpoint. Batches without records are none: they stand for
        what was never there."""
        rows = rows[rows[:, column.LAST_OFFSET] >= self._next_offset]
        if not len(rows):
            return
        first, last = first_offsets(rows), rows[:, column.LAST_OFFSET]
        counts = rows[:, column.RECORDS_COUNT]
        is_part = (counts > 0) & (counts < last - first + 1)
        starts = np.concatenate(([self._next_offset], last[:-1] + 1))
        self._has_gap |= bool((is_part | (first > starts)).any())
        self._next_offset = int(last[-1]) + 1

    def stopped_before(self, cut: int) -> bool:
        """Return whether it has surely not looked at records from the cut on."""
        return self.checkpoint <= cut and not self._has_gap


@dataclass
class UnitedSource:
    """A file of one of the copies, whose batches count up to the offset `divergence`. Of several
    with the same batch that with the lowest `number` counts."""

    segment: SegmentFile
    number: int
    divergence: int | None
    is_sound: bool = True

    def noted(self, *notes: _Notes) -> int:
        """Have others take note of the sound batches; return where they end, 0 without any."""
        end = 0
        for table in sound_rows(self.segment):
            rows = self._of_log(table)
            self.is_sound &= bool((table[:, column.FAULT] == 0).all())
            if len(rows):
                for each in notes:
                    each.note(rows)
                end = max(end, int(rows[:, column.LAST_OFFSET].max()) + 1)
        return end

    def _of_log(self, table: LongArray) -> LongArray:
        rows: LongArray = table[table[:, column.FAULT] == 0]
        if self.divergence is not None:
            rows = rows[rows[:, column.LAST_OFFSET] < self.divergence]
        return rows

    def rows(self) -> Iterator[LongArray]:
        """Yield the sound batches, a few at a time. Checksums are looked at again where one was
        wrong."""
        for table in self._tables():
            rows = self._of_log(table)
            if len(rows):
                file = np.full((len(rows), 1), self.number, dtype=np.int64)
                yield np.hstack((rows[:, _UNITED], file))

    def _tables(self) -> Iterator[LongArray]:
        if not self.is_sound:
            yield from sound_rows(self.segment)
            return
        with opened_segment(self.segment) as file:
            options = SegmentOptions.of(self.segment)
            for chunk in SegmentHeaders(FileWindow(file), options).chunks():
                yield chunk.table


@dataclass
class _Reading:
    """A file that is being read: its next batches, and those after them."""

    number: int
    rows: LongArray
    later: Iterator[LongArray]


def merged(sources: Sequence[UnitedSource]) -> Iterator[LongArray]:
    """Yield the batches of all files in the order of their last offsets, each once: the one that
    has the most records. Of each file a few are in memory, and of files that begin later none."""
    waiting = sorted(sources, key=lambda each: each.segment.base_offset or 0, reverse=True)
    reading: list[_Reading] = []
    while waiting or reading:
        if not reading:
            _open(waiting.pop(), reading)
            continue
        bound = min(int(each.rows[-1, _LAST]) for each in reading)
        if waiting and (waiting[-1].segment.base_offset or 0) <= bound:
            _open(waiting.pop(), reading)
            continue
        reading.sort(key=lambda each: each.number)
        parts = []
        for each in reading:
            is_now = each.rows[:, _LAST] <= bound
            parts.append(each.rows[is_now])
            each.rows = each.rows[~is_now]
            if not len(each.rows):
                each.rows = next(each.later, each.rows)
        reading = [each for each in reading if len(each.rows)]
        yield _once(np.concatenate(parts))


def _open(source: UnitedSource, reading: list[_Reading]) -> None:
    rows = source.rows()
    first = next(rows, None)
    if first is not None:
        reading.append(_Reading(source.number, first, rows))


def _once(rows: LongArray) -> LongArray:
    ordered = rows[np.lexsort((-rows[:, _COUNT], rows[:, _LAST]))]
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:, _LAST] != ordered[:-1, _LAST]
    return ordered[is_first]


@dataclass
class _UnitedSegments:
    """Makes segments of batches that come in the order of their offsets."""

    sources: Sequence[UnitedSource]
    base: int
    _segments: list[SegmentPlan] = field(default_factory=list)
    _pieces: list[Piece] = field(default_factory=list)
    _size: int = 0
    _max_ms: int = -1
    _next_offset: int = 0

    def add(self, rows: LongArray) -> None:
        """Add the next batches."""
        ends = rows[:, _AT] + rows[:, _BYTES]
        is_break = (rows[1:, _AT] != ends[:-1]) | (rows[1:, _FILE] != rows[:-1, _FILE])
        breaks = (np.flatnonzero(is_break) + 1).tolist()
        for low, high in zip([0, *breaks], [*breaks, len(rows)], strict=True):
            run = rows[low:high]
            path = self.sources[int(run[0, _FILE])].segment.path
            piece = Piece(path, int(run[0, _AT]), int(ends[high - 1]))
            self._add_run(piece, int(run[0, _BASE]), int(run[-1, _LAST]))
            self._max_ms = max(self._max_ms, int(run[:, _MS].max()))

    def _add_run(self, piece: Piece, first: int, last: int) -> None:
        """Add batches that follow each other in a file. They are never further from each other
        than an index can say: they are of one segment."""
        size = piece.end - piece.start
        is_far = last - self.base > MAX_RELATIVE_OFFSET
        if self._pieces and (self._size + size > _SEGMENT_BYTES or is_far):
            self._end_segment()
            self.base = first if is_far else self._next_offset
        before = self._pieces[-1] if self._pieces else None
        if before is not None and before.path == piece.path and before.end == piece.start:
            self._pieces[-1] = before._replace(end=piece.end)
        else:
            self._pieces.append(piece)
        self._size += size
        self._next_offset = last + 1

    def _end_segment(self) -> None:
        segment = (self.base, tuple(self._pieces), False, self._max_ms, self._next_offset)
        self._segments.append(SegmentPlan(*segment))
        self._pieces, self._size, self._max_ms = [], 0, -1

    def ended(self) -> list[SegmentPlan]:
        """Return the segments, after the last batch."""
        if self._pieces:
            self._end_segment()
        return self._segments


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
