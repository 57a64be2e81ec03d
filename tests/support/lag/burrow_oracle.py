"""Burrow's statuses of a partition and of a group by plain values, as its code computes them: what
the product's kernels are compared with. Rules: docs/format.md F330 to F332.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kafkalog.coordination.groups.burrow import (
    BURROW_ERRORS,
    MS_PER_SECOND,
    BurrowRule,
    BurrowSettings,
    BurrowStatus,
)
from tests.support.sentences import sentence


class HeldCommit(NamedTuple):
    """A commit in a window; `lag` is that of its arrival, None for one that came out of order."""

    order: int
    offset: int
    timestamp_ms: int
    lag: int | None


class CommitWindow:
    """The newest commits of a group for a partition, at most `intervals`, in their order. F330"""

    def __init__(self, settings: BurrowSettings) -> None:
        self._settings = settings
        self.held: list[HeldCommit] = []

    def add(
        self, order: int, offset: int, timestamp_ms: int, end_offset: int | None, now_ms: int
    ) -> None:
        """A commit arrives, `order` being its offset in `__consumer_offsets` and `end_offset` the
        end of the partition then, None where that is not known."""
        oldest_s = now_ms // MS_PER_SECOND - self._settings.expire_group_s
        if timestamp_ms < oldest_s * MS_PER_SECOND or not self._has_room(order):
            return
        place = sum(commit.order < order for commit in self.held)
        is_newest = place == len(self.held)
        lag = max(0, end_offset - offset) if is_newest and end_offset is not None else None
        if self._is_too_near(place, timestamp_ms):
            self.held[place - 1] = HeldCommit(order, offset, self.held[place - 1].timestamp_ms, lag)
            return
        self.held.insert(place, HeldCommit(order, offset, timestamp_ms, lag))
        del self.held[: -self._settings.intervals]

    def _is_too_near(self, place: int, timestamp_ms: int) -> bool:
        """To the commit before it, whose place it then takes; its time stays, or a group that
        commits often would never fill a window."""
        if place == 0 or (place == 1 < len(self.held) == self._settings.intervals):
            return False  # what comes out of order and next to the oldest of a full window
        nearest_ms = self._settings.min_distance_s * MS_PER_SECOND
        return timestamp_ms - self.held[place - 1].timestamp_ms < nearest_ms

    def _has_room(self, order: int) -> bool:
        """Not for a commit that is there already, nor for one before all of a full window."""
        is_full = len(self.held) == self._settings.intervals
        is_before = bool(self.held) and order < self.held[0].order
        return not (is_full and is_before) and all(commit.order != order for commit in self.held)


class PartitionStatus(NamedTuple):
    """What Burrow says of a group's partition; `numbers` are those of the rule's reason."""

    rule: BurrowRule
    numbers: tuple[int, ...]
    current_lag: int
    complete: float

    @property
    def status(self) -> BurrowStatus:
        return self.rule.status

    @property
    def reason(self) -> str:
        return sentence(self.rule.words, self.numbers)


def partition_status(
    held: Sequence[HeldCommit], end_offsets: Sequence[int], now_ms: int, settings: BurrowSettings
) -> PartitionStatus:
    """The status by the commits held and the ends of the partition last sampled, oldest first, of
    which there is at least one. F331"""
    if not held:
        return PartitionStatus(BurrowRule.NO_COMMITS, (), 0, 0.0)
    current_lag = max(0, end_offsets[-1] - held[-1].offset)
    complete = len(held) / settings.intervals
    if complete < settings.minimum_complete:
        few = (len(held), settings.intervals)
        return PartitionStatus(BurrowRule.INCOMPLETE, few, current_lag, complete)
    rule, numbers = _first_rule(held, current_lag, end_offsets, now_ms, settings)
    return PartitionStatus(rule, numbers, current_lag, complete)


def _first_rule(
    held: Sequence[HeldCommit],
    current_lag: int,
    end_offsets: Sequence[int],
    now_ms: int,
    settings: BurrowSettings,
) -> tuple[BurrowRule, tuple[int, ...]]:
    first, last, allowed = held[0], held[-1], settings.allowed_lag
    if current_lag <= allowed:
        return BurrowRule.LAG_ALLOWED, (current_lag, allowed)
    silence_ms = now_ms // MS_PER_SECOND * MS_PER_SECOND - last.timestamp_ms
    span_ms = last.timestamp_ms - first.timestamp_ms
    if silence_ms > span_ms and min(end_offsets) > last.offset:
        return BurrowRule.STOPPED, (silence_ms, len(held), span_ms)
    rewind = _rewind(held)
    if rewind is not None:
        return BurrowRule.REWOUND, rewind
    lags = [commit.lag for commit in held if commit.lag is not None]
    small = next((lag for lag in lags if lag <= allowed), None)
    if small is not None:
        return BurrowRule.LAG_WAS_ALLOWED, (current_lag, small, len(held))
    if all(commit.offset == last.offset for commit in held):
        return BurrowRule.STALLED, (len(held), last.offset, current_lag)
    fall = next(((a, b) for a, b in pairwise(lags) if b < a), None)
    if fall is None:
        return BurrowRule.LAG_NEVER_FELL, (len(held), current_lag)
    return BurrowRule.LAG_FELL, (current_lag, *fall)


def _rewind(held: Sequence[HeldCommit]) -> tuple[int, int] | None:
    """The first step back, if no later commit came up to where it began."""
    offsets = [commit.offset for commit in held]
    for place, (before, after) in enumerate(pairwise(offsets), 1):
        if after < before:
            return None if max(offsets[place:]) >= before else (before, after)
    return None


class GroupStatus(NamedTuple):
    """What Burrow says of a group: `complete` is the share of its partitions whose windows are
    full, `maxlag` the place of the partition with the greatest lag, None without partitions."""

    status: BurrowStatus
    complete: float
    maxlag: int | None
    total_lag: int


def group_status(
    partitions: Sequence[PartitionStatus],
    last_commit_ms: int,
    now_ms: int,
    settings: BurrowSettings,
) -> GroupStatus:
    """The status of a group whose newest commit is of `last_commit_ms`. F332"""
    oldest_s = now_ms // MS_PER_SECOND - settings.expire_group_s
    if oldest_s * MS_PER_SECOND > last_commit_ms:
        return GroupStatus(BurrowStatus.NOTFOUND, 1.0, None, 0)
    found = {partition.status for partition in partitions}
    worst = (
        BurrowStatus.ERR
        if found & BURROW_ERRORS
        else BurrowStatus.WARN
        if BurrowStatus.WARN in found
        else BurrowStatus.OK
    )
    lags = [partition.current_lag for partition in partitions]
    full = sum(partition.complete == 1.0 for partition in partitions)
    return GroupStatus(
        worst, full / len(lags) if lags else 0.0, lags.index(max(lags)) if lags else None, sum(lags)
    )
