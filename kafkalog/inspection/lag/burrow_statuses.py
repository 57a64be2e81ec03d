"""Burrow's status at each of millions of times: a kernel over the events of many partitions.

Rules: docs/format.md F330 and F331.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, LongArray, kernel
from kafkalog.coordination.groups.burrow import MS_PER_SECOND, BurrowRule, BurrowSettings
from kafkalog.inspection.lag.commit_windows import (
    COMMIT_EVENT,
    DELETION,
    NOTHING,
    SAMPLE,
    HeldCommits,
    Verdicts,
    hold,
    new_verdicts,
    new_window,
)

_NO_COMMITS = BurrowRule.NO_COMMITS.number
_INCOMPLETE = BurrowRule.INCOMPLETE.number
_LAG_ALLOWED = BurrowRule.LAG_ALLOWED.number
_STOPPED = BurrowRule.STOPPED.number
_REWOUND = BurrowRule.REWOUND.number
_LAG_WAS_ALLOWED = BurrowRule.LAG_WAS_ALLOWED.number
_STALLED = BurrowRule.STALLED.number
_LAG_NEVER_FELL = BurrowRule.LAG_NEVER_FELL.number
_LAG_FELL = BurrowRule.LAG_FELL.number


class BurrowEvents(NamedTuple):
    """Events in the order in which they came, those of a group's partition one after another.

    `is_first` begins a partition; `kind` is an EventKind. A COMMIT has its offset and time.
    `end_offset` is the partition's end at `at_ms`, NOTHING where it is not known; of a SAMPLE the
    end at the time of the sample.
    """

    is_first: BoolArray
    kind: LongArray
    offset: LongArray
    timestamp_ms: LongArray
    end_offset: LongArray
    at_ms: LongArray


class BurrowVerdicts(NamedTuple):
    """The verdicts, undecided where the end is not known, with the lag and the number of commits
    held."""

    verdicts: Verdicts
    current_lag: LongArray
    held: LongArray


class _Limits(NamedTuple):
    """Burrow's thresholds: `fewest` commits are complete enough, and a commit less than
    `nearest_ms` after the one before replaces it."""

    intervals: int
    allowed_lag: int
    fewest: int
    nearest_ms: int


class BurrowWindows:
    """Takes events in pieces; a window continues from one piece to the next."""

    def __init__(self, settings: BurrowSettings) -> None:
        shares = (count / settings.intervals for count in range(settings.intervals + 1))
        fewest = sum(share < settings.minimum_complete for share in shares)
        nearest_ms = settings.min_distance_s * MS_PER_SECOND
        self._limits = _Limits(settings.intervals, settings.allowed_lag, fewest, nearest_ms)
        self._held = new_window(settings.intervals)
        self._count, self._oldest_end = 0, NOTHING

    def verdicts(self, events: BurrowEvents) -> BurrowVerdicts:
        """Return what Burrow would have reported at each of these events."""
        count = len(events.kind)
        lags, held = np.full((2, count), NOTHING, dtype=np.int64)
        found = BurrowVerdicts(new_verdicts(count), lags, held)
        self._count, self._oldest_end = _judge(
            events, self._limits, self._held, found, self._count, self._oldest_end
        )
        return found


@kernel
def _judge(
    events: BurrowEvents,
    limits: _Limits,
    held: HeldCommits,
    found: BurrowVerdicts,
    count: int,
    oldest_end: int,
) -> tuple[int, int]:
    """Judge the events, given how many commits are held and the end that was sampled before, and
    return both for the next events."""
    for i in range(events.kind.size):
        kind, end = events.kind[i], events.end_offset[i]
        if events.is_first[i] or kind == DELETION:
            count, oldest_end = 0, NOTHING
        if kind == DELETION:
            continue
        if kind == SAMPLE:
            oldest_end = end
            continue
        if kind == COMMIT_EVENT:
            count = _take(events, i, limits, held, count)
        least_end = end if oldest_end == NOTHING else min(end, oldest_end)
        oldest_end = NOTHING
        if end != NOTHING:
            lag = max(0, end - held.offset[count - 1]) if count else 0
            found.current_lag[i], found.held[i] = lag, count
            verdict = _verdict(limits, held, count, lag, least_end, events.at_ms[i])
            rule, first, second, third = verdict
            found.verdicts.rule[i], found.verdicts.first[i] = rule, first
            found.verdicts.second[i], found.verdicts.third[i] = second, third
    return count, oldest_end


@kernel
def _take(events: BurrowEvents, i: int, limits: _Limits, held: HeldCommits, count: int) -> int:
    """Hold the commit of an event, and return how many are held then."""
    offset, timestamp_ms, end = events.offset[i], events.timestamp_ms[i], events.end_offset[i]
    lag = NOTHING if end == NOTHING else max(0, end - offset)
    if count and timestamp_ms - held.timestamp_ms[count - 1] < limits.nearest_ms:
        count -= 1
        timestamp_ms = held.timestamp_ms[count]
    return hold(held, count, offset, timestamp_ms, lag)


@kernel
def _verdict(
    limits: _Limits, held: HeldCommits, count: int, lag: int, least_end: int, at_ms: int
) -> tuple[int, int, int, int]:
    """Return a rule and the numbers of its reason."""
    if count == 0:
        return _NO_COMMITS, NOTHING, NOTHING, NOTHING
    last_ms = held.timestamp_ms[count - 1]
    silence_ms = at_ms - at_ms % MS_PER_SECOND - last_ms
    span_ms = last_ms - held.timestamp_ms[0]
    if count < limits.fewest:
        return _INCOMPLETE, count, limits.intervals, NOTHING
    if lag <= limits.allowed_lag:
        return _LAG_ALLOWED, lag, limits.allowed_lag, NOTHING
    if silence_ms > span_ms and least_end > held.offset[count - 1]:
        return _STOPPED, silence_ms, count, span_ms
    return _verdict_on_window(held, count, lag, limits.allowed_lag)


@kernel
def _verdict_on_window(
    held: HeldCommits, count: int, lag: int, allowed_lag: int
) -> tuple[int, int, int, int]:
    """Return the rule that holds for commits that go on and lag."""
    last = held.offset[count - 1]
    small = before = fall_from = fall_to = NOTHING
    is_same = True
    for place in range(count):
        is_same = is_same and held.offset[place] == last
        then = held.amount[place]
        if then == NOTHING:
            continue
        if small == NOTHING and then <= allowed_lag:
            small = then
        if fall_from == NOTHING and then < before:
            fall_from, fall_to = before, then
        before = then
    step = _step_back(held, count)
    if step != NOTHING:
        return _REWOUND, held.offset[step - 1], held.offset[step], NOTHING
    if small != NOTHING:
        return _LAG_WAS_ALLOWED, lag, small, count
    if is_same:
        return _STALLED, count, last, lag
    if fall_from == NOTHING:
        return _LAG_NEVER_FELL, count, lag, NOTHING
    return _LAG_FELL, lag, fall_from, fall_to


@kernel
def _step_back(held: HeldCommits, count: int) -> int:
    """Return the place of the first commit below the one before it, NOTHING if it or a later one
    reaches that offset again."""
    for place in range(1, count):
        if held.offset[place] < held.offset[place - 1]:
            for later in range(place, count):
                if held.offset[later] >= held.offset[place - 1]:
                    return NOTHING
            return place
    return NOTHING
