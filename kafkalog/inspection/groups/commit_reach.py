"""How far the commits in the input tell what was, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.words import counted, time_text


class LogCompleteness(Protocol):
    """From when on a partition of `__consumer_offsets` has all that counted; of ZooKeeper's commits
    there is no internal_partition."""

    @property
    def internal_partition(self) -> int | None: ...
    @property
    def complete_from_ms(self) -> int | None: ...
    @property
    def damaged_ranges(self) -> int: ...


class CommitReach(NamedTuple):
    """Of one store of commits: from when on those of all groups are there, None for at all times;
    how many damaged places hide some; which partitions of `__consumer_offsets` the input lacks, as
    far as it shows."""

    is_zookeeper: bool
    complete_from_ms: int | None
    damaged_ranges: int
    missing: tuple[int, ...] = ()


def commit_reaches(logs: Sequence[LogCompleteness]) -> list[CommitReach]:
    """Of each store that there are logs of."""
    numbers = {log.internal_partition for log in logs if log.internal_partition is not None}
    missing = sorted(set(range(max(numbers, default=-1) + 1)) - numbers)
    in_kafka = [log for log in logs if log.internal_partition is not None]
    in_zookeeper = [log for log in logs if log.internal_partition is None]
    reaches = []
    if in_kafka:
        reaches.append(_reach(False, in_kafka, missing))
    if in_zookeeper:
        reaches.append(_reach(True, in_zookeeper, []))
    return reaches


def _reach(
    is_zookeeper: bool, logs: Sequence[LogCompleteness], missing: Sequence[int]
) -> CommitReach:
    times = [log.complete_from_ms for log in logs if log.complete_from_ms is not None]
    damaged = sum(log.damaged_ranges for log in logs)
    return CommitReach(is_zookeeper, max(times, default=None), damaged, tuple(missing))


def reach_words(reaches: Sequence[CommitReach], moment: int | None) -> str:
    """The same as lines, for an answer about a moment, None for what is there now."""
    return "\n".join(line for reach in reaches for line in _lines(reach, moment))


def expired_words(expired: int) -> str:
    """What it means that so many commits that count are older than a broker keeps them."""
    return (
        f"{counted(expired, 'commit')} would be dropped by a running broker by now, for nobody has "
        "used them for offsets.retention.minutes (--offsets-retention); they count here: of a copy "
        "made earlier give --as-of the time of the copy"
    )


def _lines(reach: CommitReach, moment: int | None) -> Iterator[str]:
    commits = "commits in ZooKeeper" if reach.is_zookeeper else "commits"
    yield f"{commits}: {_completeness(reach, moment)}"
    if reach.damaged_ranges and reach.is_zookeeper:
        yield (
            f"{commits}: {reach.damaged_ranges} damaged places in its files hide some perhaps: see "
            'view faults of format("zookeeper")'
        )
    elif reach.damaged_ranges:
        yield (
            f"{commits}: {reach.damaged_ranges} damaged places in {CONSUMER_OFFSETS} hide some, "
            "and with them whole groups perhaps: see jobs/validate_checksums.py"
        )
    if reach.missing:
        numbers = ", ".join(map(str, reach.missing))
        yield (
            f"{commits}: partitions {numbers} of {CONSUMER_OFFSETS} are not in the input, nor are "
            "the groups in them: give the log directories of all brokers"
        )


def _completeness(reach: CommitReach, moment: int | None) -> str:
    if reach.complete_from_ms is None:
        none = f"none has been removed {'with old logs' if reach.is_zookeeper else 'by cleaning'}"
        return none if moment is None else f"{none}, so none of {time_text(moment)} is missing"
    begin = f"complete from {time_text(reach.complete_from_ms)} on"
    if moment is None or moment >= reach.complete_from_ms:
        return begin
    return f"{begin}: of {time_text(moment)} older ones that were replaced since can be missing"
