"""The status of a group's partition, and of a group, by plain values: what the product's kernels
and tables are compared with. Rules: docs/format.md F333 to F338.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafkalog.coordination.groups.lag_status import LAG_ERRORS, LagRule, LagSettings, LagStatus
from tests.support.sentences import sentence


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
