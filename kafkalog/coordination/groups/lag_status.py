"""The status of a group's partition by what its log says, without samples.

Decided on records that can be read rather than on offsets, and on how long the next of them has
waited. Rules: docs/format.md F333 to F338. `kafkalog.inspection.lag.lag_statuses` does the same for
millions of commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kafkalog.words import sentence


class LagStatus(Enum):
    """What becomes of a group's reading of a partition."""

    OK = "OK"
    UNKNOWN = "UNKNOWN"
    WARN = "WARN"
    STOP = "STOP"
    STALL = "STALL"
    REWIND = "REWIND"
    LOST = "LOST"
    AHEAD = "AHEAD"
    ERR = "ERR"  # of a group: one of its partitions has one of the five before


LAG_ERRORS = frozenset(
    {LagStatus.STOP, LagStatus.STALL, LagStatus.REWIND, LagStatus.LOST, LagStatus.AHEAD}
)


class LagRule(Enum):
    """The rules that decide: a number, the status, and the reason with places for numbers."""

    NO_LOG = (0, LagStatus.UNKNOWN, "the log of the partition is not in the input")
    LOG_BEGINS_LATER = (1, LagStatus.UNKNOWN, "of the log as it was then nothing is left")
    DELETED_SINCE = (2, LagStatus.UNKNOWN, "the log now starts {0:offset} past the committed one")
    BEYOND_END = (3, LagStatus.UNKNOWN, "the log then is known up to {0:offset} before the commit")
    LOST = (4, LagStatus.LOST, "the log starts {0:offset} past the committed one")
    AHEAD = (5, LagStatus.AHEAD, "the commit is {0:offset} past the end of the log")
    HIDDEN = (6, LagStatus.UNKNOWN, "{0:record} left to read, besides {1:offset} hidden")
    HELD_BACK = (7, LagStatus.OK, "{0:record} left to read, besides {1:offset} held back")
    CAUGHT_UP = (8, LagStatus.OK, "{0:record} left to read, {1} allowed")
    STOPPED = (9, LagStatus.STOP, "{0:record} left to read for {1:ms}, no commit since")
    REWOUND = (10, LagStatus.REWIND, "went back from offset {0} to {1}, and not to {0} again")
    STALLED = (11, LagStatus.STALL, "{0:record} left to read for {1:ms}, all commits since of {2}")
    FALLS_BEHIND = (
        12,
        LagStatus.WARN,
        "{0:record} left to read, {1:record} at the first of {2:commit}",
    )
    KEEPS_UP = (13, LagStatus.OK, "{0:record} left to read, the next is {1:ms} old")

    def __init__(self, number: int, status: LagStatus, words: str) -> None:
        self.number = number
        self.status = status
        self.words = words


@dataclass(frozen=True, slots=True)
class LagSettings:
    """Thresholds: `intervals` is the number of commits looked back on, `allowed_records` how many
    records may be left to read, `no_progress_ms` how long a group may leave one unread; a consumer
    that does not poll for `max.poll.interval.ms`, 5 minutes by default, is put out of its group."""

    intervals: int = 10
    allowed_records: int = 0
    no_progress_ms: int = 300_000


class PastCommit(NamedTuple):
    """A commit, and how many records were left to read then; None where that is not known."""

    offset: int
    timestamp_ms: int
    readable_records: int | None


class LagFacts(NamedTuple):
    """What the account of a partition says of the commit in effect at a moment.

    `is_now` is true for the log as it is. `is_in_log` is false where the log ended then at or
    below what is its start now, `has_log` where it is not in the input at all. `hidden` are offsets
    in tiered storage and those that damage hides.
    """

    at_ms: int
    is_now: bool = False
    has_log: bool = True
    is_in_log: bool = True
    readable_records: int = 0
    beyond_last_stable: int = 0
    below_log_start: int = 0
    hidden: int = 0
    ahead_of_log: int = 0
    next_timestamp_ms: int | None = None


class LagVerdict(NamedTuple):
    """A rule and the numbers of its reason."""

    rule: LagRule
    numbers: tuple[int, ...] = ()

    @property
    def status(self) -> LagStatus:
        return self.rule.status

    @property
    def reason(self) -> str:
        return sentence(self.rule.words, self.numbers)


def lag_verdict(
    facts: LagFacts, commits: Sequence[PastCommit], settings: LagSettings
) -> LagVerdict:
    """The status at a moment, given all commits up to then since the last deletion, of which there
    is at least one. The first rule that holds decides."""
    return (
        _unknown(facts)
        or _out_of_range(facts)
        or _nothing_left(facts, settings)
        or _no_progress(facts, commits, settings)
    )


def _unknown(facts: LagFacts) -> LagVerdict | None:
    """F333"""
    if not facts.has_log:
        return LagVerdict(LagRule.NO_LOG)
    if not facts.is_in_log:
        return LagVerdict(LagRule.LOG_BEGINS_LATER)
    if facts.below_log_start and not facts.is_now:
        return LagVerdict(LagRule.DELETED_SINCE, (facts.below_log_start,))
    if facts.ahead_of_log and not facts.is_now:
        return LagVerdict(LagRule.BEYOND_END, (facts.ahead_of_log,))
    return None


def _out_of_range(facts: LagFacts) -> LagVerdict | None:
    """F334"""
    if facts.below_log_start:
        return LagVerdict(LagRule.LOST, (facts.below_log_start,))
    if facts.ahead_of_log:
        return LagVerdict(LagRule.AHEAD, (facts.ahead_of_log,))
    return None


def _nothing_left(facts: LagFacts, settings: LagSettings) -> LagVerdict | None:
    """F335"""
    left = facts.readable_records
    if left > settings.allowed_records:
        return None
    if facts.hidden:
        return LagVerdict(LagRule.HIDDEN, (left, facts.hidden))
    if facts.beyond_last_stable:
        return LagVerdict(LagRule.HELD_BACK, (left, facts.beyond_last_stable))
    return LagVerdict(LagRule.CAUGHT_UP, (left, settings.allowed_records))


def _no_progress(
    facts: LagFacts, commits: Sequence[PastCommit], settings: LagSettings
) -> LagVerdict:
    """F336, F337"""
    left, last = facts.readable_records, commits[-1]
    # Since when it could have been read: not before it was there.
    there_ms = last.timestamp_ms if facts.next_timestamp_ms is None else facts.next_timestamp_ms
    silent_ms = facts.at_ms - max(there_ms, last.timestamp_ms)
    if silent_ms > settings.no_progress_ms:
        return LagVerdict(LagRule.STOPPED, (left, silent_ms))
    window = commits[-settings.intervals :]
    highest = max(commit.offset for commit in window)
    if last.offset < highest:
        return LagVerdict(LagRule.REWOUND, (highest, last.offset))
    stuck_ms = facts.at_ms - max(there_ms, _same_since_ms(commits))
    if stuck_ms > settings.no_progress_ms:
        return LagVerdict(LagRule.STALLED, (left, stuck_ms, last.offset))
    first, at_first = window[0], window[0].readable_records
    is_late = facts.next_timestamp_ms is not None and there_ms < first.timestamp_ms
    if is_late and len(window) > 1 and at_first is not None and left >= at_first:
        return LagVerdict(LagRule.FALLS_BEHIND, (left, at_first, len(window)))
    return LagVerdict(LagRule.KEEPS_UP, (left, facts.at_ms - there_ms))


def _same_since_ms(commits: Sequence[PastCommit]) -> int:
    """The time of the first commit of those at the end that are all of the same offset."""
    since_ms = commits[-1].timestamp_ms
    for commit in reversed(commits):
        if commit.offset != commits[-1].offset:
            break
        since_ms = commit.timestamp_ms
    return since_ms


def group_lag_status(partitions: Iterable[LagStatus]) -> LagStatus:
    """The status of a group: the worst of its partitions. F338"""
    found = set(partitions)
    if found & LAG_ERRORS:
        return LagStatus.ERR
    worst = (status for status in (LagStatus.WARN, LagStatus.UNKNOWN) if status in found)
    return next(worst, LagStatus.OK)
