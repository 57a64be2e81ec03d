"""The differences between replicas of a partition, from their small files and last segments.

Rules: docs/format.md F171, F172 and F927.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import (
    DELETE_HORIZON_BIT,
    LEGACY_CHECKSUM_START,
    V2_CHECKSUM_START,
)
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import OffsetSpan
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.format.side_files.leader_epochs import (
    CarriedEpoch,
    EpochStart,
    by_batches,
    epochs_text,
    first_contradiction,
    read_leader_epochs,
    rising,
)
from kafkalog.inspection.logs.carried_epochs import carried_epochs, table_epochs
from kafkalog.log_lines import warn_once
from kafkalog.storage.files.files import InputFile, read_text
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replica_reads import ReplicaSet, overlaps
from kafkalog.storage.reading.replicas import (
    BatchFact,
    ReplicaFacts,
    by_lineage,
    compare,
    epoch_divergence,
    gaps,
    paired,
)
from kafkalog.wire.checksums import crc32, crc32c


def replica_sets(logs: Sequence[PartitionLog]) -> list[ReplicaSet]:
    """Return the logs by partition, the best replica of each first. Those that are alone, or that
    no broker serves, are sets of one, and are not read."""
    alone = [[log] for log in logs if not _is_served(log)]
    return answers(_ordered, [*live_replicas(logs), *alone], lambda found: found[0].path)


def live_replicas(logs: Sequence[PartitionLog]) -> list[list[PartitionLog]]:
    """Return the logs that brokers serve, by partition."""
    found: dict[TopicPartition, list[PartitionLog]] = {}
    for log in logs:
        if log.topic_partition is not None and _is_served(log):
            found.setdefault(log.topic_partition, []).append(log)
    return list(found.values())


def best_logs(logs: Sequence[PartitionLog]) -> list[PartitionLog]:
    """Return the best replica of each partition that brokers serve, in layouts with batches."""
    served = [log for log in logs if log.is_live and not is_oldest_layout(log)]
    return [replicas.best for replicas in replica_sets(served)]


def _is_served(log: PartitionLog) -> bool:
    return log.is_live and log.topic_partition is not None


def _ordered(logs: Sequence[PartitionLog]) -> ReplicaSet:
    if len(logs) == 1:
        return ReplicaSet((logs[0],), (ReplicaFacts(0, 0),))
    ordered = _in_order(logs)
    facts = [ordered[0][1]]
    for log, each in ordered[1:]:
        found = difference(log, each, *ordered[0])
        if found is not None:
            warn_once(__name__, str(found))
        facts.append(replace(each, differs_at=None if found is None else found.offset))
    return ReplicaSet(tuple(log for log, _ in ordered), tuple(facts))


def _in_order(logs: Sequence[PartitionLog]) -> list[tuple[PartitionLog, ReplicaFacts]]:
    facts = _with_earlier(logs, [replica_facts(log) for log in logs])
    return [(logs[number], facts[number]) for number in by_lineage(facts)]


def replicated(logs: Sequence[PartitionLog]) -> list[list[PartitionLog]]:
    """Return the logs of the partitions that have several replicas, by partition, in layouts with
    batches."""
    found = live_replicas([log for log in logs if not is_oldest_layout(log)])
    return [replicas for replicas in found if len(replicas) > 1]


def replica_differences(logs: Sequence[PartitionLog]) -> Iterator[Difference]:
    """Yield the first difference of each replica from the best one of its partition (F927), of
    layouts with batches. Logs which partitions cannot be compared."""
    for found in replicated(logs):
        try:
            best, *others = _in_order(found)
            yield from filter(None, (difference(*each, *best) for each in others))
        except OSError as error:
            warn_once(__name__, f"{found[0].name}: its replicas are not compared: {error}")


class Difference(NamedTuple):
    """The first batch of a replica that has other bytes than the best one has at its offsets, and
    where it is. `leader_epochs` are those of the two batches."""

    log: PartitionLog
    best: PartitionLog
    offset: int
    path: str
    position: int
    size: int
    leader_epochs: tuple[int, int]

    @property
    def detail(self) -> str:
        """What differs, without the place."""
        mine, other = self.leader_epochs
        epochs = f"leader epoch {mine}" if mine == other else f"leader epochs {mine} and {other}"
        return f"from offset {self.offset} on other records than {self.best.path}, of {epochs}"

    def __str__(self) -> str:
        return (
            f"{self.log.name}: {self.log.path} has {self.detail}: the topic was deleted and "
            "created again while a broker was down, or files were mixed up. No broker notices it, "
            f"and nothing says which of them counts: {self.best.path} is read, and nothing of the "
            "other from there on"
        )


class Continuation(NamedTuple):
    """Where a later copy of a log stops being what an earlier one was: `until_offset`, and whether
    other records are there (F927), which leader epochs do not explain."""

    until_offset: int
    is_rewritten: bool


def continuation(before: PartitionLog, after: PartitionLog) -> Continuation | None:
    """Return where a later copy of a log does not continue an earlier one; None if it does. Both
    have segments with batches. Rule: F1151."""
    earlier, later = _with_earlier((before, after), [replica_facts(before), replica_facts(after)])
    found = difference(before, earlier, after, later)
    if found is not None:
        return Continuation(found.offset, is_rewritten=True)
    by_epoch = epoch_divergence(earlier, later)
    until = min(later.log_end, earlier.log_end if by_epoch is None else by_epoch)
    return Continuation(until, is_rewritten=False) if until < earlier.log_end else None


def difference(
    log: PartitionLog, facts: ReplicaFacts, best: PartitionLog, best_facts: ReplicaFacts
) -> Difference | None:
    """Return the first difference of a replica from the best one that its leader epochs do not
    explain; None without any. Rule: F927.

    Where the ends of both logs agree nothing else is read; where they differ, the headers of
    earlier segments, from the end up to one that agrees.
    """
    if facts.tail and facts.tail == best_facts.tail:
        return None
    tails = compare(facts.tail, best_facts.tail)
    if tails.equal and not tails.different:
        return None
    by_epoch = epoch_divergence(facts, best_facts)
    end = min(facts.log_end, best_facts.log_end, *([] if by_epoch is None else [by_epoch]))
    key = log.topic_partition or ("", -1)
    # Each broker cleans its own replica, and writes other batches then.
    start = max(each.log_dir.cleaner_checkpoints.get(key, 0) for each in (log, best))
    found: Difference | None = None
    for segment in reversed(log.segments):
        if (segment.base_offset or 0) >= end:
            continue
        earlier, agrees = _difference_in(log, segment, best, OffsetSpan(start, end))
        found = earlier or found
        if agrees or earlier is None or (segment.base_offset or 0) <= start:
            break
    return found


def _difference_in(
    log: PartitionLog, segment: SegmentFile, best: PartitionLog, span: OffsetSpan
) -> tuple[Difference | None, bool]:
    """Return the first difference in a segment, at these offsets, and whether batches before it
    are the same."""
    base = segment.base_offset or 0
    after = span.end if segment.next_base_offset is None else segment.next_base_offset
    others = [each for each in best.segments if overlaps(each, base, min(after, span.end))]
    mine, theirs = _uncleaned([segment], span), _uncleaned(others, span)
    places = [{fact[2:]: fact.last_offset for fact in each.facts} for each in (mine, theirs)]
    agrees = False
    for one, other in paired(mine.facts, theirs.facts):
        if one is None or other is None:
            continue
        facts = mine.facts[one], theirs.facts[other]
        if facts[0].is_same(facts[1]):
            agrees = True
            continue
        # No checksum covers a base offset: one that the other replica has elsewhere is damaged.
        is_moved = facts[0][2:] in places[1] or facts[1][2:] in places[0]
        if not is_moved and mine.is_sound(one) and theirs.is_sound(other):
            return mine.difference(one, log, best, theirs, other), agrees
    return None, agrees


class _Headers:
    """Batches of segments by their headers: `facts`, and of each its segment and its row."""

    def __init__(self) -> None:
        self.facts: list[BatchFact] = []
        self._rows: list[tuple[SegmentFile, LongArray]] = []

    def add(self, segment: SegmentFile, rows: LongArray) -> None:
        self.facts += batch_facts(rows)
        self._rows += [(segment, row) for row in rows]

    def is_sound(self, number: int) -> bool:
        segment, row = self._rows[number]
        with opened_segment(segment) as file:
            return is_sound(file, row)

    def difference(
        self, number: int, log: PartitionLog, best: PartitionLog, others: _Headers, other: int
    ) -> Difference:
        segment, row = self._rows[number]
        _, theirs = others._rows[other]
        return Difference(
            log,
            best,
            min(self.facts[number].base_offset, others.facts[other].base_offset),
            segment.path,
            int(row[column.POSITION]),
            int(row[column.SIZE]),
            (int(row[column.LEADER_EPOCH]), int(theirs[column.LEADER_EPOCH])),
        )


def _uncleaned(segments: Sequence[SegmentFile], span: OffsetSpan) -> _Headers:
    """Return the batches of these offsets that no cleaner has written again: those that have all
    their records, and no time when records are to be removed."""
    found = _Headers()
    for segment in segments:
        with opened_segment(segment) as file:
            rows, _ = _sound_and_damaged(file, segment)
        if not len(rows):
            continue
        first, last = first_offsets(rows), rows[:, column.LAST_OFFSET]
        is_whole = rows[:, column.RECORDS_COUNT] == last - first + 1
        has_horizon = rows[:, column.ATTRIBUTES] & DELETE_HORIZON_BIT != 0
        is_kept = (rows[:, column.MAGIC] < 2) | (is_whole & ~has_horizon)
        found.add(segment, rows[is_kept & (first >= span.start) & (first < span.end)])
    return found


def _with_earlier(
    logs: Sequence[PartitionLog], facts: Sequence[ReplicaFacts]
) -> list[ReplicaFacts]:
    """Return the facts, each with the batches before its tail that lie where another's tail has a
    gap: a replica that has lost its last segments ends where others have earlier ones."""
    starts = [[start for start, _ in gaps(each)] for each in facts]
    if not any(starts):
        return list(facts)
    requested = np.array(sorted({start for each in starts for start in each}), dtype=np.int64)
    return [
        replace(each, earlier=tuple(_batches_at(log, requested[requested < each.tail_base])))
        for log, each in zip(logs, facts, strict=True)
    ]


def _batches_at(log: PartitionLog, offsets: LongArray) -> Iterator[BatchFact]:
    """Yield the batches before the last segment that have these base offsets, by their headers."""
    for segment in log.segments[:-1]:
        start, end = segment.base_offset or 0, segment.next_base_offset or 0
        inside = offsets[(offsets >= start) & (offsets < end)]
        if not len(inside):
            continue
        with opened_segment(segment) as file:
            rows, _ = _sound_and_damaged(file, segment)
        if len(rows):
            yield from batch_facts(rows[np.isin(first_offsets(rows), inside)])


def replica_facts(log: PartitionLog) -> ReplicaFacts:
    """Return what a replica's files say. Of its last segment headers are read, and of the last
    batches as many checksums as it takes to find a sound one."""
    start = log_bounds(log, EndRule.LOG_END).start_offset
    epochs = leader_epochs(log)
    if not log.segments:
        return ReplicaFacts(start, start, epochs, start, is_empty=True)
    segment = log.segments[-1]
    base = segment.base_offset or 0
    rows, damaged_at = segment_tail(segment)
    tail = tuple(batch_facts(rows)) if len(rows) else ()
    end = tail[-1].last_offset + 1 if tail else base
    ends_soundly = damaged_at < (int(rows[-1, column.POSITION]) if len(rows) else 0)
    epochs = _known_epochs(log, epochs, table_epochs(rows) if len(rows) else [], start)
    return ReplicaFacts(start, max(start, end), epochs, base, tail, ends_soundly=ends_soundly)


def _known_epochs(
    log: PartitionLog, epochs: tuple[EpochStart, ...], of_tail: Sequence[CarriedEpoch], start: int
) -> tuple[EpochStart, ...]:
    """Return the leader epochs of a replica: those of the file, unless it does not have those of
    the last batches. Then those that all batches carry, which is logged. Rule: F929."""
    if first_contradiction(rising(epochs), of_tail, start) is None:
        return epochs
    carried = by_batches(epochs, carried_epochs(log))
    warn_once(
        __name__,
        f"{log.path}: {LEADER_EPOCHS} has {epochs_text(epochs)}, and the batches have "
        f"{epochs_text(carried)}: the epochs of the batches count",
    )
    return tuple(carried)


def segment_tail(segment: SegmentFile) -> tuple[LongArray, int]:
    """Return the rows of a segment's batches up to the last sound one, by their headers, and where
    the last damage begins, -1 for none."""
    with opened_segment(segment) as file:
        rows, damaged_at = _sound_and_damaged(file, segment)
        while len(rows) and not is_sound(file, rows[-1]):
            damaged_at, rows = file.size, rows[:-1]
    return rows, damaged_at


def _sound_and_damaged(file: InputFile, segment: SegmentFile) -> tuple[LongArray, int]:
    """Return the rows of the batches whose headers are sound, and where the last damage begins, -1
    for none. Zeros are room that a broker has made for what is to come."""
    tables: list[LongArray] = []
    damaged_at = -1
    for chunk in SegmentHeaders(FileWindow(file), SegmentOptions.of(segment)).chunks():
        faults = chunk.table[:, column.FAULT]
        tables.append(chunk.table[faults == 0].copy())
        is_damaged = (faults != 0) & (faults != Fault.ZEROS)
        damaged_at = max(damaged_at, int(chunk.table[is_damaged, column.POSITION].max(initial=-1)))
    rows: LongArray = np.concatenate(tables) if tables else np.zeros((0, 0), dtype=np.int64)
    return rows, damaged_at


def known_leader_epochs(log: PartitionLog) -> tuple[EpochStart, ...]:
    """Return a log's leader epochs by their starts: those of the file or, if it does not have those
    of the last segment's batches, those that all batches carry. Rule: F929."""
    epochs = leader_epochs(log)
    if not any(segment.size for segment in log.segments):
        return epochs
    rows, _ = segment_tail(log.segments[-1])
    start = log_bounds(log, EndRule.LOG_END).start_offset
    return _known_epochs(log, epochs, table_epochs(rows) if len(rows) else [], start)


def leader_epochs(log: PartitionLog) -> tuple[EpochStart, ...]:
    """Return the replica's leader epochs by their starts; none where the file is missing or
    damaged, or contradicts itself."""
    try:
        text = read_text(os.path.join(log.path, LEADER_EPOCHS))
        epochs = sorted(read_leader_epochs(text)) if text else []
    except CorruptDataError:
        return ()
    rise = all(one.start_offset <= other.start_offset for one, other in pairwise(epochs))
    return tuple(epochs) if rise else ()


def batch_facts(rows: LongArray) -> Iterator[BatchFact]:
    """Yield the facts of the sound batches of a batch table."""
    columns = (
        first_offsets(rows),
        *(rows[:, index] for index in (column.LAST_OFFSET, column.CRC, column.SIZE)),
    )
    for values in zip(*(values.tolist() for values in columns), strict=True):
        yield BatchFact(*values)


def sound_rows(segment: SegmentFile) -> Iterator[LongArray]:
    """Yield batch tables of a segment, checksums looked at, records not."""
    with opened_segment(segment) as file:
        for chunk in SegmentBatches(FileWindow(file), SegmentOptions.of(segment)).chunks():
            yield chunk.table


def is_sound(file: InputFile, row: LongArray) -> bool:
    """Return whether the checksum of the batch of this row is right; it is wrong where bytes cannot
    be read."""
    data = file.read_around(int(row[column.POSITION]), int(row[column.SIZE]))
    if row[column.MAGIC] == 2:
        return crc32c(data[V2_CHECKSUM_START:]) == int(row[column.CRC])
    return crc32(data[LEGACY_CHECKSUM_START:]) == int(row[column.CRC])
