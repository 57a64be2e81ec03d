"""What the replicas of a partition have in common and which of them counts: rules on plain values.

Rules: docs/format.md F171 to F176.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkalog.format.offsets import OffsetSpan, add_offsets, subtract
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.wire.checksums import crc32c

NO_EPOCH = -1


class BatchFact(NamedTuple):
    """A sound batch: its offsets, both inclusive, its checksum and its size in the file.

    Where a header does not have the base offset (old compressed messages) it is the one expected.
    """

    base_offset: int
    last_offset: int
    crc: int
    size: int

    def is_same(self, other: BatchFact) -> bool:
        """Return whether both are one batch, in files of different replicas (F176)."""
        return self[1:] == other[1:]


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """What a replica's files say. `epochs` are its leader epochs by their starts, empty if not
    known; `tail` are the sound batches of its last segment, in order, and `tail_base` is where that
    begins. `earlier` are those of the segments before it that lie where another replica's tail has
    a gap. `is_empty` is True without a segment, `ends_soundly` False with damage after the last
    sound batch. `differs_at` is the first offset that it has with other bytes than the best replica
    (F927), None if there is none."""

    log_start: int
    log_end: int
    epochs: tuple[EpochStart, ...] = ()
    tail_base: int = 0
    tail: tuple[BatchFact, ...] = ()
    earlier: tuple[BatchFact, ...] = ()
    is_empty: bool = False
    ends_soundly: bool = True
    differs_at: int | None = None

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1].epoch if self.epochs else NO_EPOCH


def believed_end(replica: ReplicaFacts, others: Sequence[ReplicaFacts]) -> int:
    """Return where a replica's log ends, not counting batches that lie elsewhere in another
    replica.

    No checksum covers a batch's base offset. One after a gap that another replica has with the
    same bytes where the gap begins has a damaged offset.
    """
    known = {
        (fact.base_offset, fact.crc, fact.size)
        for other in others
        for fact in (*other.earlier, *other.tail)
    }
    for start, fact in gaps(replica):
        if (start, fact.crc, fact.size) in known:
            return start
    return replica.log_end


def gaps(replica: ReplicaFacts) -> Iterator[tuple[int, BatchFact]]:
    """Yield where gaps begin in the replica's last segment, each with the batch after it."""
    expected = replica.tail_base
    for fact in replica.tail:
        if fact.base_offset != expected:
            yield expected, fact
        expected = fact.last_offset + 1


def by_lineage(replicas: Sequence[ReplicaFacts]) -> list[int]:
    """Return the numbers of the replicas, the best first: of the latest leader epoch, of those the
    one that ends last, of those the one that begins first. One without a segment comes after all
    others: a broker always has one, so it has lost its log."""

    def rank(number: int) -> tuple[bool, int, int, int, int]:
        replica = replicas[number]
        others = [other for index, other in enumerate(replicas) if index != number]
        end = believed_end(replica, others)
        return (replica.is_empty, -replica.last_epoch, -end, replica.log_start, number)

    return sorted(range(len(replicas)), key=rank)


def epoch_divergence(replica: ReplicaFacts, best: ReplicaFacts) -> int | None:
    """Return the first offset that a replica has under another leader epoch than the best one; None
    if there is none, or if epochs of either are not known. Up to the last epoch that both have they
    are of one history, wherever its followers have seen an epoch begin (F1215)."""
    if not replica.epochs or not best.epochs:
        return None
    of_best = {entry.epoch for entry in best.epochs}
    shared = max((each.epoch for each in replica.epochs if each.epoch in of_best), default=NO_EPOCH)
    for span, epoch in _epoch_spans(replica):
        for best_span, best_epoch in _epoch_spans(best, is_open=True):
            low, high = max(span.start, best_span.start), min(span.end, best_span.end)
            if low < high and epoch != best_epoch and max(epoch, best_epoch) > shared:
                return low
    return None


def _epoch_spans(
    replica: ReplicaFacts, *, is_open: bool = False
) -> Iterator[tuple[OffsetSpan, int]]:
    """Yield the offsets of each leader epoch; the last one's reach to the log end, or beyond
    all."""
    last_end = 2**63 if is_open else replica.log_end
    ends = [*(entry.start_offset for entry in replica.epochs[1:]), last_end]
    for entry, end in zip(replica.epochs, ends, strict=True):
        yield OffsetSpan(max(entry.start_offset, replica.log_start), end), entry.epoch


@dataclass(slots=True)
class ReplicaComparison:
    """What a replica has of what the best one has.

    `equal` are offsets of batches that are the same in both, with a CRC-32C over their checksums
    in order; `different` where both are sound and not the same; `missing` what only the best one
    has; `extra` what only this one has.
    """

    equal: list[tuple[OffsetSpan, int]] = field(default_factory=list)
    different: list[OffsetSpan] = field(default_factory=list)
    missing: list[OffsetSpan] = field(default_factory=list)
    extra: list[OffsetSpan] = field(default_factory=list)


def compare(replica: Sequence[BatchFact], best: Sequence[BatchFact]) -> ReplicaComparison:
    """Compare the sound batches of two replicas, each in the order of its offsets."""
    found = ReplicaComparison()
    for mine, theirs in paired(replica, best):
        one = None if mine is None else replica[mine]
        other = None if theirs is None else best[theirs]
        if other is None and one is not None:
            add_offsets(found.extra, one.base_offset, one.last_offset)
        elif one is None and other is not None:
            add_offsets(found.missing, other.base_offset, other.last_offset)
        elif one is not None and other is not None and one.is_same(other):
            _add_equal(found.equal, one)
        elif one is not None and other is not None:
            add_offsets(
                found.different,
                min(one.base_offset, other.base_offset),
                max(one.last_offset, other.last_offset),
            )
    return _without_overlaps(found)


def paired(
    replica: Sequence[BatchFact], best: Sequence[BatchFact]
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the numbers of the batches of two replicas that have offsets in common, each in the
    order of its offsets; None in place of a batch that the other one has nothing of."""
    mine = theirs = 0
    while mine < len(replica) and theirs < len(best):
        one, other = replica[mine], best[theirs]
        if one.is_same(other):
            yield mine, theirs
            mine, theirs = mine + 1, theirs + 1
        elif one.last_offset < other.base_offset:
            yield mine, None
            mine += 1
        elif other.last_offset < one.base_offset:
            yield None, theirs
            theirs += 1
        else:
            yield mine, theirs
            mine += one.last_offset <= other.last_offset
            theirs += other.last_offset <= one.last_offset
    yield from ((number, None) for number in range(mine, len(replica)))
    yield from ((None, number) for number in range(theirs, len(best)))


def _without_overlaps(found: ReplicaComparison) -> ReplicaComparison:
    """Return what is different in part is not missing or extra besides."""
    found.missing = subtract(found.missing, found.different)
    found.extra = subtract(found.extra, found.different)
    return found


def _add_equal(spans: list[tuple[OffsetSpan, int]], fact: BatchFact) -> None:
    stored = fact.crc.to_bytes(4, "big")
    if spans and fact.base_offset == spans[-1][0].end:
        span, crc = spans[-1]
        spans[-1] = OffsetSpan(span.start, fact.last_offset + 1), crc32c(stored, crc)
    else:
        spans.append((OffsetSpan(fact.base_offset, fact.last_offset + 1), crc32c(stored)))
