"""From when on the commits in the input are complete, in numbers and in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from kafkalog.inspection.logs.missing_records import MissingRecords, missing_words
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.reading.offset_ranges import LARGEST_TIME_MS
from kafkalog.words import counted, time_text


class LogCompleteness(Protocol):
    """From when on a partition of `__consumer_offsets` has all commits that counted. ZooKeeper's
    commits have no internal_partition."""

    @property
    def internal_partition(self) -> int | None: ...
    @property
    def complete_from_ms(self) -> int | None: ...
    @property
    def damaged_ranges(self) -> int: ...
    @property
    def newest_ms(self) -> int | None: ...


class LogReach(NamedTuple):
    """The LogCompleteness of one log, and the largest timestamp of a batch there."""

    internal_partition: int | None
    complete_from_ms: int | None
    damaged_ranges: int
    newest_ms: int | None = None


class CommitReach(NamedTuple):
    """From when on a store has the commits of all groups, None for at all times; how many damaged
    places hide some; which partitions of `__consumer_offsets` the input is known to lack, and which
    records of others; from when on those copies have all that were cleaned least, where that is
    earlier, and up to when all of these go on, as far as others go on longer."""

    is_zookeeper: bool
    complete_from_ms: int | None
    damaged_ranges: int
    missing: tuple[int, ...] = ()
    missing_records: tuple[MissingRecords, ...] = ()
    least_cleaned_ms: int | None = None
    least_cleaned_until_ms: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known to be hidden or missing, but for what was removed."""
        return not (self.damaged_ranges or self.missing or self.missing_records)


def commit_reaches(
    logs: Sequence[LogCompleteness], missing_records: Sequence[MissingRecords] = ()
) -> list[CommitReach]:
    """Return the reach of each store that has logs; `missing_records` are those of
    `__consumer_offsets`."""
    here = {log.internal_partition for log in logs if log.internal_partition is not None}
    named = {each.partition for each in missing_records}
    missing = sorted(set(range(max(here | named, default=-1) + 1)) - here - named)
    in_kafka = [log for log in logs if log.internal_partition is not None]
    in_zookeeper = [log for log in logs if log.internal_partition is None]
    reaches = []
    if in_kafka or missing_records:
        reaches.append(_reach(False, in_kafka, missing, missing_records))
    if in_zookeeper:
        reaches.append(_reach(True, in_zookeeper, [], []))
    return reaches


def _reach(
    is_zookeeper: bool,
    logs: Sequence[LogCompleteness],
    missing: Sequence[int],
    missing_records: Sequence[MissingRecords],
) -> CommitReach:
    times = [log.complete_from_ms for log in logs if log.complete_from_ms is not None]
    damaged = sum(log.damaged_ranges for log in logs)
    complete_ms = max(times, default=None)
    copies: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for log in logs:
        copies[log.internal_partition].append((log.complete_from_ms or 0, log.newest_ms or 0))
    least_ms, until_ms = 0, LARGEST_TIME_MS
    for found in copies.values():
        from_ms, newest_ms = min(found, key=lambda each: (each[0], -each[1]))
        least_ms = max(least_ms, from_ms)
        if newest_ms < max(newest for _, newest in found):
            until_ms = min(until_ms, newest_ms)
    has_more = not is_zookeeper and complete_ms is not None and least_ms < complete_ms
    return CommitReach(
        *(is_zookeeper, complete_ms, damaged, tuple(missing), tuple(missing_records)),
        *((least_ms, until_ms) if has_more else (None, None)),
    )


def reach_words(reaches: Sequence[CommitReach], moment: int | None) -> str:
    """Return the reach in lines of text, for an answer about a past time, or about now if it is
    None."""
    return "\n".join(line for reach in reaches for line in _lines(reach, moment))


def limit_words(reaches: Sequence[CommitReach], moment: int | None) -> list[str]:
    """Return the lines about those stores whose commits are not all here: what is not, or what
    cleaning has removed, leaves lag unknown."""
    limited = [each for each in reaches if not each.is_whole or each.complete_from_ms is not None]
    return reach_words(limited, moment).splitlines()


def expired_words(expired: int) -> str:
    """Return a sentence about commits that count although a broker would have dropped them."""
    return (
        f"a running broker would have dropped {counted(expired, 'commit')} by now, unused for "
        "offsets.retention.minutes (--offsets-retention); they count here: for an older copy give "
        "the time of the copy with --as-of"
    )


def _lines(reach: CommitReach, moment: int | None) -> Iterator[str]:
    commits = "commits in ZooKeeper" if reach.is_zookeeper else "commits"
    here = "" if reach.is_whole else ", as far as they are here"
    yield f"{commits}{here}: {_completeness(reach, moment)}"
    if reach.damaged_ranges and reach.is_zookeeper:
        yield (
            f"{commits}: {reach.damaged_ranges} damaged places in its files may hide some: see "
            'view faults of format("zookeeper")'
        )
    elif reach.damaged_ranges:
        yield (
            f"{commits}: {reach.damaged_ranges} damaged places in {CONSUMER_OFFSETS} hide some, "
            "perhaps whole groups: see jobs/validate_checksums.py"
        )
    if reach.missing_records:
        yield (
            f"{commits}: {missing_words(reach.missing_records)}: commits in them, perhaps whole "
            "groups, are not known"
        )
    if reach.missing:
        numbers = ", ".join(map(str, reach.missing))
        yield (
            f"{commits}: partitions {numbers} of {CONSUMER_OFFSETS} are not in the input, nor are "
            "the groups in them: give the log directories of all brokers"
        )


def _completeness(reach: CommitReach, moment: int | None) -> str:
    if reach.complete_from_ms is None:
        by = "with old logs" if reach.is_zookeeper else "by cleaning"
        none = f"none has been removed {by}"
        if moment is None or not reach.is_whole:
            return none
        return f"{none}, so none of {time_text(moment)} is missing"
    begin = f"complete from {time_text(reach.complete_from_ms)} on"
    if moment is not None and moment >= reach.complete_from_ms:
        return begin
    older = ""
    if moment is not None:
        older = f": of {time_text(moment)} older ones that were replaced since can be missing"
    least_ms = reach.least_cleaned_ms
    if least_ms is None or (moment is not None and moment < least_ms):
        return begin + older
    # A copy does not know what came after it was taken. F1294
    if moment is not None and moment > (reach.least_cleaned_until_ms or 0):
        return begin + older
    since = f"them from {time_text(least_ms)} on" if least_ms else "all"
    return (
        f"{begin}{older}; copies that were cleaned less have {since}: give one broker's disks alone"
    )
