"""Leader epochs and where each begins: the file `leader-epoch-checkpoint` and the broker's rules
for its entries. Rules: docs/format.md F107, F108, F790 and F929.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from kafkalog.format.side_files.checkpoints import (
    CheckpointRefusal,
    int64,
    read_checkpoint,
    refusal,
    write_checkpoint,
)

# A message names at most this many epochs.
_MOST_NAMED = 10


class EpochStart(NamedTuple):
    """The first offset written under a leader's epoch."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The offset after the last one that was written under a leader's epoch."""

    epoch: int
    end_offset: int


class CarriedEpoch(NamedTuple):
    """A leader's epoch in the headers of batches that follow each other: the first and the last of
    their offsets."""

    epoch: int
    start_offset: int
    last_offset: int


def read_leader_epochs(text: str) -> list[EpochStart]:
    """Return the entries in the order of the file. Raises CorruptDataError, its position the
    line."""
    return read_checkpoint(text, "epoch start-offset", _epoch_start)


def epochs_refusal(text: str) -> CheckpointRefusal | None:
    """Return why a broker refuses the file, None if it reads it. Rule: docs/format.md F1181."""
    found = refusal(text, 2)
    if found is None and text:
        lines = (line.split() for line in text.splitlines()[2:])
        below = next((words for words in lines if min(map(int, words)) < 0), None)
        if below is not None:
            return CheckpointRefusal(f"{' '.join(below)!r} has a number below 0", is_number=True)
    return found


def _epoch_start(words: list[str]) -> EpochStart:
    epoch, start_offset = words
    number = int(epoch)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{epoch} has more than 32 bits")
    return EpochStart(number, int64(start_offset))


def write_leader_epochs(entries: Sequence[EpochStart]) -> str:
    """Return the file's text, entries in the order given."""
    return write_checkpoint(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def with_epoch(entries: Sequence[EpochStart], added: EpochStart) -> list[EpochStart]:
    """Return the entries after a leader of the added epoch has written at the added offset, without
    those that it contradicts."""
    if (
        entries
        and entries[-1].epoch == added.epoch
        and entries[-1].start_offset <= added.start_offset
    ):
        return list(entries)
    kept = [
        entry
        for entry in entries
        if entry.epoch < added.epoch and entry.start_offset < added.start_offset
    ]
    return [*kept, added]


def without_end(entries: Sequence[EpochStart], end_offset: int) -> list[EpochStart]:
    """Return the entries once the log has been cut at `end_offset`."""
    return [entry for entry in entries if entry.start_offset < end_offset]


def without_start(entries: Sequence[EpochStart], start_offset: int) -> list[EpochStart]:
    """Return the entries once the log begins at `start_offset`: the epoch it lies in begins
    there."""
    later = [entry for entry in entries if entry.start_offset > start_offset]
    earlier = [entry for entry in entries if entry.start_offset <= start_offset]
    return [EpochStart(earlier[-1].epoch, start_offset), *later] if earlier else later


def rising(entries: Sequence[EpochStart]) -> list[EpochStart]:
    """Return the entries, which have any order, without those that others contradict."""
    kept: list[EpochStart] = []
    for entry in sorted(entries):
        kept = with_epoch(kept, entry)
    return kept


def epoch_end(entries: Sequence[EpochStart], requested: int, log_end: int) -> EpochEnd | None:
    """Return what a broker answers when it is asked where an epoch ends: the latest epoch that it
    knows up to the requested one, and where that ends. Where all its epochs are later, the
    requested one ends where the first begins. None for an epoch later than all. Rule: F790."""
    if entries and entries[-1].epoch == requested:
        return EpochEnd(requested, log_end)
    earlier = [entry.epoch for entry in entries if entry.epoch <= requested]
    later = [entry.start_offset for entry in entries if entry.epoch > requested]
    return EpochEnd(earlier[-1] if earlier else requested, later[0]) if later else None


def with_carried(found: list[CarriedEpoch], added: CarriedEpoch) -> None:
    """Add the epoch of the next batches of a log, which continues the last one or is later; an
    earlier one is damage to a field that no checksum covers, and is left out."""
    if not found or added.epoch > found[-1].epoch:
        found.append(added)
    elif added.epoch == found[-1].epoch:
        found[-1] = found[-1]._replace(last_offset=added.last_offset)


def carried_below(carried: Sequence[CarriedEpoch], end_offset: int) -> list[CarriedEpoch]:
    """Return what is left of the epochs of batches once the log has been cut at `end_offset`."""
    return [
        each._replace(last_offset=min(each.last_offset, end_offset - 1))
        for each in carried
        if each.start_offset < end_offset
    ]


def first_contradiction(
    entries: Sequence[EpochStart], carried: Sequence[CarriedEpoch], start_offset: int
) -> CarriedEpoch | None:
    """Return the first epoch of batches, from an offset on, that entries which rise do not give
    them; None where all have theirs. Entries without batches contradict nothing. Rule: F929."""
    for each in carried:
        offsets = max(each.start_offset, start_offset), each.last_offset
        if offsets[0] <= offsets[1] and any(
            _epoch_at(entries, offset) != each.epoch for offset in offsets
        ):
            return each
    return None


def _epoch_at(entries: Sequence[EpochStart], offset: int) -> int | None:
    number = bisect_right(entries, offset, key=attrgetter("start_offset"))
    return entries[number - 1].epoch if number else None


def by_batches(entries: Sequence[EpochStart], carried: Sequence[CarriedEpoch]) -> list[EpochStart]:
    """Return the epochs that batches carry, and of the entries those that are later than all."""
    if not carried:
        return list(entries)
    found = [EpochStart(each.epoch, each.start_offset) for each in carried]
    last = carried[-1]
    later = [
        entry
        for entry in entries
        if entry.epoch > last.epoch and entry.start_offset > last.last_offset
    ]
    return [*found, *later]


def epochs_text(entries: Sequence[EpochStart | CarriedEpoch]) -> str:
    """Return the epochs in words, for messages."""
    named = [f"{entry.epoch} from offset {entry.start_offset}" for entry in entries]
    if len(named) > _MOST_NAMED:
        named = [*named[:_MOST_NAMED], f"{len(entries) - _MOST_NAMED} more"]
    return "epoch " + ", ".join(named) if named else "no epoch"
