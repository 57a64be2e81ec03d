"""One partition as a server hands it out: from its best replica, what is damaged in that one from
the others, up to the end that it had at a time.

Rules: docs/format.md F95 to F99, F140 to F148, F171 to F175 and F210 to F214.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Generic, TypeVar

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.fault_details import FaultyRange, faulty_range
from kafkalog.columns.transactions.transaction_outcomes import transaction_outcomes
from kafkalog.columns.transactions.transaction_walk import StableOffset, stable_offset
from kafkalog.errors import OffsetOutOfRangeError
from kafkalog.format.batch_header import CONTROL_BIT
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.format.record_batch import read_batch
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.inspection.logs.log_offsets import (
    TimedOffset,
    earliest_local_offset,
    earliest_offset,
    offset_of_max_timestamp,
)
from kafkalog.inspection.logs.replica_facts import (
    known_leader_epochs,
    leader_epochs,
    replica_facts,
    replica_sets,
)
from kafkalog.inspection.logs.replica_time_lookup import (
    offset_for_time_in_replicas,
    time_answer_in_replicas,
)
from kafkalog.server.logs.batch_runs import SMALL_BYTES, BatchRuns
from kafkalog.server.logs.fetched_batches import batches_in
from kafkalog.server.logs.file_ranges import FileRanges, Range
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile, segment_base_offsets
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.log_snapshots import newest_snapshot
from kafkalog.storage.reading.offset_ranges import LARGEST_TIME_MS, TimeRule
from kafkalog.storage.reading.replica_reads import ReplicaSet
from kafkalog.storage.recovery.framing import Frame, frames
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers

NO_EPOCH = -1
# Of a batch, or of the end of a leader epoch, that does not exist.
UNDEFINED = -1

_Value = TypeVar("_Value")

OnFault = Callable[[str, FaultyRange], None]
OnFilled = Callable[[str, OffsetSpan, str], None]
# Keeps the runs of a segment for the next fetch; the second argument makes them.
KeepRuns = Callable[[tuple[str, str], Callable[[], BatchRuns]], BatchRuns]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch gives: raw batches, and of each producer with an aborted transaction in them the
    first of its offsets."""

    data: FileRanges
    aborted: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Reports:
    """What is called with what a reader has to know, and where runs are kept."""

    on_fault: OnFault
    on_filled: OnFilled
    keep_runs: KeepRuns


@dataclass
class _Outcomes:
    """The transactions of a segment, for readers of committed records.

    `aborted` are first offset, last offset and producer of aborted batches, `unknown` the first
    and last offsets of those whose outcome damage hides. A response must not go on over one of
    `stops`: there a producer's next transaction begins, and the marker that aborted the one before
    is lost, so that a client would take it for aborted as well.
    """

    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    unknown: list[tuple[int, int]] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)


class _ReadOnce(Generic[_Value]):
    """A property that is computed once. That of functools holds one lock for all partitions before
    Python 3.12, so that a large one would delay the others."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Any, owner_type: type | None = None) -> _Value:
        value = owner.__dict__[self._compute.__name__] = self._compute(owner)
        return value


class ServedLog:
    """A partition with its replicas. Nothing is read before it is needed. Who reads holds `lock`,
    so that nothing is read twice."""

    def __init__(
        self,
        logs: Sequence[PartitionLog],
        reports: Reports,
        *,
        as_of_ms: int | None = None,
        now_ms: int = LARGEST_TIME_MS,
        is_deep: bool = False,
    ) -> None:
        """At a past time `now_ms` is the clock by which records are of the future (F930)."""
        self.logs = tuple(logs)
        self.topic, self.partition = logs[0].topic or "", logs[0].partition or 0
        self._reports = reports
        self._as_of_ms = as_of_ms
        self._time_rule = TimeRule(now_ms, passes_over=True)
        self._is_deep = is_deep
        self._outcomes_of: dict[str, _Outcomes] = {}
        self.lock = Lock()

    @property
    def name(self) -> str:
        return self.logs[0].name

    @_ReadOnce
    def replicas(self) -> ReplicaSet:
        """The replicas, the best first."""
        return replica_sets(self.logs)[0]

    @_ReadOnce
    def _bases(self) -> Sequence[int]:
        return segment_base_offsets(self.replicas.best.segments)

    @_ReadOnce
    def start_offset(self) -> int:
        """The first offset that can be fetched."""
        return log_bounds(self.replicas.best, EndRule.LOG_END).start_offset

    @property
    def earliest_offset(self) -> int:
        """Where the log starts by its checkpoint, in tiered storage if that is given."""
        return min(self.start_offset, earliest_offset(self.replicas.best))

    @property
    def earliest_local_offset(self) -> int:
        """Where the segments on a disk begin."""
        log = self.replicas.best
        if log.tiered_topic_id is None:
            return self.start_offset
        own = tuple(segment for segment in log.segments if not segment.is_cut)
        return earliest_local_offset(replace(log, segments=own)) if own else UNDEFINED

    @_ReadOnce
    def end_offset(self) -> int:
        """The high watermark, up to which clients read: the log end where none is known. At a past
        time, where the first batch begins that has a record of later whose time is not doubtful."""
        replicas = self.replicas
        best = replicas.best
        if not best.segments:
            return self.start_offset
        alone = len(replicas.logs) == 1
        end = replica_facts(best).log_end if alone else replicas.lineage_end
        high_watermark = log_bounds(best, EndRule.HIGH_WATERMARK).end_offset
        end = end if high_watermark is None else min(end, high_watermark)
        if self._is_deep:
            end = min(end, self._readable_end())
        end = max(end, self.start_offset)
        if self._as_of_ms is None:
            return end
        later = time_answer_in_replicas(
            replicas, self.start_offset, self._as_of_ms + 1, self._time_rule
        ).offset
        if later is None or later >= end:
            return end
        return max(self._batch_start(later), self.start_offset)

    def _readable_end(self) -> int:
        """Return the offset after the last batch whose records can be read."""
        for segment in reversed(self.replicas.best.segments):
            last = self._runs(segment).last_offset()
            if last is not None:
                return last + 1
        return self.start_offset

    @_ReadOnce
    def stable_offset(self) -> int:
        """The last stable offset, up to which clients read committed records."""
        return min(self._stable.read_end, self.end_offset)

    @_ReadOnce
    def _stable(self) -> StableOffset:
        return stable_offset(self._at_time(), looks_for_damage=False)

    def _at_time(self) -> PartitionLog:
        """Return the best replica as it was at the past time, by its high watermark."""
        best = self.replicas.best
        if self._as_of_ms is None or best.topic_partition is None:
            return best
        marks = {best.topic_partition: self.end_offset}
        log_dir = replace(best.log_dir, is_clean_shutdown=True, high_watermarks=marks)
        return replace(best, log_dir=log_dir)

    @_ReadOnce
    def epochs(self) -> tuple[EpochStart, ...]:
        """The leader epochs by their starts; none if they are not known."""
        return known_leader_epochs(self.replicas.best)

    @_ReadOnce
    def leader_epoch(self) -> int:
        """The last leader epoch of all replicas. Where none is known it is 0: clients that get none
        ask for that one."""
        # Answers about all partitions have it: their logs are opened only where the file has none.
        known = (leader_epochs(log) or known_leader_epochs(log) for log in self.logs)
        return max((epochs[-1].epoch for epochs in known if epochs), default=0)

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of an offset, -1 if it is not known."""
        number = bisect_right(self.epochs, offset, key=lambda each: each.start_offset)
        return self.epochs[number - 1].epoch if number else NO_EPOCH

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest known leader epoch that is not above the given one, and where it
        ends; UNDEFINED twice for one that this log has not seen, as a broker answers.

        Without known epochs nothing was truncated: the given one ends where the log does.
        """
        if not self.epochs or epoch == self.epochs[-1].epoch:
            return epoch, self.end_offset
        if epoch < 0 or epoch > self.epochs[-1].epoch:
            return UNDEFINED, UNDEFINED
        number = bisect_right(self.epochs, epoch, key=lambda each: each.epoch)
        found = self.epochs[number - 1].epoch if number else epoch
        return found, min(self.epochs[number].start_offset, self.end_offset)

    def fetch(self, offset: int, max_bytes: int, *, read_committed: bool = False) -> Fetched:
        """Return whole batches from the one on that has the offset, or the next one there is, as
        many as fit into `max_bytes`, and one at least.

        Damaged batches are left out. Raises OffsetOutOfRangeError for an offset outside the log.
        """
        end = self.stable_offset if read_committed else self.end_offset
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(self.name, offset, self.start_offset, self.end_offset)
        first = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self.replicas.best.segments[first:]:
            if (segment.base_offset or 0) > end:
                break
            if offset >= end and segment.size > SMALL_BYTES:
                break  # who waits at the end of a log does not have it read
            runs = self._runs(segment)
            span = OffsetSpan(offset, end)
            for part in self._readable(segment, runs, span) if read_committed else [span]:
                ranges = batches_in(runs, part, max_bytes)
                if not ranges:
                    continue
                aborted = self._aborted(segment, ranges) if read_committed else ()
                return Fetched(FileRanges(each for each, _ in ranges), aborted)
        return Fetched(FileRanges(()))

    def offset_for_time(self, timestamp_ms: int) -> TimedOffset | None:
        """Return the first record with this timestamp or a later one; None if there is none."""
        found = offset_for_time_in_replicas(self.replicas, self.start_offset, timestamp_ms)
        if found is None or found >= self.end_offset:
            return None
        return TimedOffset(found, self._timestamp_ms(found))

    def offset_of_max_timestamp(self) -> TimedOffset | None:
        """Return the first record with the largest timestamp; None if no record has one."""
        return offset_of_max_timestamp(self._at_time())

    def producers(self) -> list[ProducerEntry]:
        """Return what a broker knows of the producers at the end: from the newest sound snapshot,
        and the batches after it."""
        best, end = self.replicas.best, self.end_offset
        taken = newest_snapshot(best, self.start_offset, end)
        offset, entries = taken or (self.start_offset, [])
        state = ProducerState(entries)
        first = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in best.segments[first:]:
            for run in self._runs(segment).from_offset(offset):
                with InputFile(run.path) as file:
                    for frame in frames(file, run.position, run.end):
                        if offset <= frame.header.last_offset < end:
                            add_to_producers(file, frame, state)
        return sorted(state.producers.values())

    def _timestamp_ms(self, offset: int) -> int:
        found = self._batch_of(offset)
        if found is None:
            return UNDEFINED
        path, frame = found
        with InputFile(path) as file:
            data = file.read(frame.position, frame.header.size)
        records = read_batch(data, 0, expected_offset=offset)
        return next((each.timestamp_ms for each in records if each.offset == offset), UNDEFINED)

    def _batch_start(self, offset: int) -> int:
        """Return the first offset of the batch that has an offset."""
        found = self._batch_of(offset)
        return offset if found is None else min(found[1].header.base_offset, offset)

    def batch_epoch(self, offset: int) -> int:
        """Return the leader epoch in the batch that has an offset, -1 if it has none."""
        found = self._batch_of(offset)
        return NO_EPOCH if found is None else found[1].header.leader_epoch

    def _batch_of(self, offset: int) -> tuple[str, Frame] | None:
        """Return the batch that has an offset, and its file."""
        number = max(bisect_right(self._bases, offset) - 1, 0)
        run = next(self._runs(self.replicas.best.segments[number]).from_offset(offset), None)
        if run is None or run.first_offset > offset:
            return None
        with InputFile(run.path) as file:
            for frame in frames(file, run.position, run.end):
                if frame.header.last_offset >= offset:
                    return run.path, frame
        return None

    def _runs(self, segment: SegmentFile) -> BatchRuns:
        alone = len(self.replicas.logs) == 1

        def make() -> BatchRuns:
            return BatchRuns(
                segment,
                None if alone else self.replicas.filling(segment),
                self._reports.on_fault,
                self._reports.on_filled,
                is_deep=self._is_deep,
            )

        return self._reports.keep_runs((self.replicas.best.path, segment.path), make)

    def _readable(
        self, segment: SegmentFile, runs: BatchRuns, span: OffsetSpan
    ) -> Iterator[OffsetSpan]:
        """Yield the parts of a span that a reader of committed records may get in one response
        each: none goes on over a stop, and none has a batch of unknown outcome."""
        outcomes = self._outcomes(segment, runs)
        start = span.start
        ends = sorted(
            [(first, last + 1) for first, last in outcomes.unknown]
            + [(stop, stop) for stop in outcomes.stops]
        )
        for first, after in ends:
            if after > span.start and first < span.end:
                if start < first:
                    yield OffsetSpan(start, first)
                start = max(start, after)
        if start < span.end:
            yield OffsetSpan(start, span.end)

    def _aborted(
        self, segment: SegmentFile, ranges: Sequence[tuple[Range, OffsetSpan]]
    ) -> tuple[tuple[int, int], ...]:
        """Return producer and first offset of the aborted transactions that the ranges have."""
        first, end = ranges[0][1].start, ranges[-1][1].end
        return tuple(
            (producer_id, start)
            for start, last, producer_id in self._outcomes_of[segment.path].aborted
            if last >= first and start < end
        )

    def _outcomes(self, segment: SegmentFile, runs: BatchRuns) -> _Outcomes:
        if segment.path not in self._outcomes_of:
            self._outcomes_of[segment.path] = self._find_outcomes(segment, runs)
        return self._outcomes_of[segment.path]

    def _find_outcomes(self, segment: SegmentFile, runs: BatchRuns) -> _Outcomes:
        """Return the outcomes of a segment's transactions, each by its first aborted batch."""
        table = runs.transactional()
        found = _Outcomes()
        if not len(table):
            return found
        end = segment.next_base_offset or LARGEST_OFFSET
        with transaction_outcomes(
            self.replicas.logs_and_ends,
            OffsetSpan(segment.base_offset or 0, end),
            self._stable.end_offset,
            check_crcs=True,
        ) as outcomes:
            is_aborted = outcomes.is_aborted(table, 0, self.stable_offset).tolist()
        open_aborted: dict[int, int] = {}
        for row, aborted in zip(table.tolist(), is_aborted, strict=True):
            first, last, producer_id = (
                row[index] for index in (column.BASE_OFFSET, column.LAST_OFFSET, column.PRODUCER_ID)
            )
            if row[column.ATTRIBUTES] & CONTROL_BIT:
                open_aborted.pop(producer_id, None)
            elif row[column.FAULT] == Fault.TRANSACTION:
                found.unknown.append((first, last))
                fault = faulty_range(row, UnreadableRanges(), ends_log=False)
                self._reports.on_fault(segment.path, fault)
            elif aborted:
                number = open_aborted.get(producer_id)
                if number is None:
                    open_aborted[producer_id] = len(found.aborted)
                    found.aborted.append((first, last, producer_id))
                else:
                    found.aborted[number] = (found.aborted[number][0], last, producer_id)
            elif open_aborted.pop(producer_id, None) is not None:
                found.stops.append(first)
        return found
