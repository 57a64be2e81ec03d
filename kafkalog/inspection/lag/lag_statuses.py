"""The exact status at each of millions of times: a kernel over the events of many partitions.

Rules: docs/format.md F333 to F337.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.columns.jit.compiled import BoolArray, LongArray, kernel
from kafkalog.coordination.groups.lag_status import LagRule, LagSettings
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

_NO_LOG = LagRule.NO_LOG.number
_LOG_BEGINS_LATER = LagRule.LOG_BEGINS_LATER.number
_DELETED_SINCE = LagRule.DELETED_SINCE.number
_BEYOND_END = LagRule.BEYOND_END.number
_LOST = LagRule.LOST.number
_AHEAD = LagRule.AHEAD.number
_HIDDEN = LagRule.HIDDEN.number
_HELD_BACK = LagRule.HELD_BACK.number
_CAUGHT_UP = LagRule.CAUGHT_UP.number
_STOPPED = LagRule.STOPPED.number
_REWOUND = LagRule.REWOUND.number
_STALLED = LagRule.STALLED.number
_FALLS_BEHIND = LagRule.FALLS_BEHIND.number
_KEEPS_UP = LagRule.KEEPS_UP.number


class LagEvents(NamedTuple):
    """Events as in BurrowEvents, with the account of the lag at each.

    `is_now` is true for the log as it is. `is_in_log` is false where the log ended then at or below
    what is its start now, `has_log` where the input does not have it. `hidden` are offsets in
    tiered storage and those that damage hides. `next_timestamp_ms` is NOTHING where it is not
    known. A SAMPLE is ignored.
    """

    is_first: BoolArray
    kind: LongArray
    offset: LongArray
    timestamp_ms: LongArray
    at_ms: LongArray
    is_now: BoolArray
    has_log: BoolArray
    is_in_log: BoolArray
    readable_records: LongArray
    beyond_last_stable: LongArray
    below_log_start: LongArray
    hidden: LongArray
    ahead_of_log: LongArray
    next_timestamp_ms: LongArray


class _Limits(NamedTuple):
    """The thresholds of LagSettings that rules compare with."""

    allowed_records: int
    no_progress_ms: int


class LagWindows:
    """Takes events in pieces; a window continues from one piece to the next."""

    def __init__(self, settings: LagSettings) -> None:
        self._limits = _Limits(settings.allowed_records, settings.no_progress_ms)
        self._held = new_window(settings.intervals)
        self._count, self._same_since_ms = 0, 0

    def verdicts(self, events: LagEvents) -> Verdicts:
        """Return the verdict on each of these events."""
        found = new_verdicts(len(events.kind))
        self._count, self._same_since_ms = _judge(
            events, self._limits, self._held, found, self._count, self._same_since_ms
        )
        return found


@kernel
def _judge(
    events: LagEvents,
    limits: _Limits,
    held: HeldCommits,
    found: Verdicts,
    count: int,
    same_since_ms: int,
) -> tuple[int, int]:
    """Judge the events, given how many commits are held and since when they are of the same offset,
    and return both for the next events."""
    for i in range(events.kind.size):
        kind = events.kind[i]
        if events.is_first[i] or kind == DELETION:
            count = 0
        if kind in (DELETION, SAMPLE):
            continue
        if kind == COMMIT_EVENT:
            offset, timestamp_ms = events.offset[i], events.timestamp_ms[i]
            if count == 0 or held.offset[count - 1] != offset:
                same_since_ms = timestamp_ms
            left = events.readable_records[i] if _is_known(events, i) else NOTHING
            count = hold(held, count, offset, timestamp_ms, left)
        rule, first, second, third = _verdict(events, i, limits, held, count, same_since_ms)
        found.rule[i], found.first[i], found.second[i], found.third[i] = rule, first, second, third
    return count, same_since_ms


@kernel
def _is_known(events: LagEvents, i: int) -> bool:
    """Return whether the account of an event is exact."""
    if not events.has_log[i] or not events.is_in_log[i]:
        return False
    is_in_range: bool = events.below_log_start[i] == 0 and events.ahead_of_log[i] == 0
    return is_in_range or bool(events.is_now[i])


@kernel
def _verdict(
    events: LagEvents, i: int, limits: _Limits, held: HeldCommits, count: int, same_since_ms: int
) -> tuple[int, int, int, int]:
    """Return a rule and the numbers of its reason."""
    left, below, ahead = (
        events.readable_records[i],
        events.below_log_start[i],
        events.ahead_of_log[i],
    )
    if not events.has_log[i]:
        return _NO_LOG, NOTHING, NOTHING, NOTHING
    if not events.is_in_log[i]:
        return _LOG_BEGINS_LATER, NOTHING, NOTHING, NOTHING
    if below:
        return (_LOST if events.is_now[i] else _DELETED_SINCE), below, NOTHING, NOTHING
    if ahead:
        return (_AHEAD if events.is_now[i] else _BEYOND_END), ahead, NOTHING, NOTHING
    if left > limits.allowed_records:
        return _progress(events, i, limits.no_progress_ms, held, count, same_since_ms)
    if events.hidden[i]:
        return _HIDDEN, left, events.hidden[i], NOTHING
    if events.beyond_last_stable[i]:
        return _HELD_BACK, left, events.beyond_last_stable[i], NOTHING
    return _CAUGHT_UP, left, limits.allowed_records, NOTHING


@kernel
def _progress(
    events: LagEvents,
    i: int,
    no_progress_ms: int,
    held: HeldCommits,
    count: int,
    same_since_ms: int,
) -> tuple[int, int, int, int]:
    """Return the rule that holds where records are left to read."""
    left, next_ms, at_ms = (
        events.readable_records[i],
        events.next_timestamp_ms[i],
        events.at_ms[i],
    )
    last, last_ms = held.offset[count - 1], held.timestamp_ms[count - 1]
    # The time from which the next record could be read.
    readable_ms = last_ms if next_ms == NOTHING else next_ms
    highest = last
    for place in range(count):
        highest = max(highest, held.offset[place])
    silent_ms = at_ms - max(readable_ms, last_ms)
    stuck_ms = at_ms - max(readable_ms, same_since_ms)
    is_late = next_ms != NOTHING and readable_ms < held.timestamp_ms[0] and count > 1
    at_first = held.amount[0]
    if silent_ms > no_progress_ms:
        return _STOPPED, left, silent_ms, NOTHING
    if last < highest:
        return _REWOUND, highest, last, NOTHING
    if stuck_ms > no_progress_ms:
        return _STALLED, left, stuck_ms, last
    if is_late and at_first != NOTHING and left >= at_first:
        return _FALLS_BEHIND, left, at_first, count
    return _KEEPS_UP, left, at_ms - readable_ms, NOTHING
