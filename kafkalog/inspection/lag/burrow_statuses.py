"""Burrow's status at each of millions of moments: a kernel over the events of many partitions.

It gives what `kafkalog.coordination.groups.burrow` gives. Rules: docs/format.md F330 and F331.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, LongArray, kernel
from kafkalog.coordination.groups.burrow import MS_PER_SECOND, BurrowRule, BurrowSettings
from kafkalog.coordination.groups.commit_events import EventKind

DELETION, SAMPLE, COMMIT = (
    int(kind) for kind in (EventKind.DELETION, EventKind.SAMPLE, EventKind.COMMIT)
)
# In columns of numbers: there is none.
NOTHING = -1

_NO_COMMITS = BurrowRule.NO_COMMITS.number
_INCOMPLETE = BurrowRule.INCOMPLETE.number
_LAG_ALLOWED = BurrowRule.LAG_ALLOWED.number
_STOPPED = BurrowRule.STOPPED.number
_REWOUND = BurrowRule.REWOUND.number
_LAG_WAS_ALLOWED = BurrowRule.LAG_WAS_ALLOWED.number
_STALLED = BurrowRule.STALLED.number
_LAG_NEVER_FELL = BurrowRule.LAG_NEVER_FELL.number
_LAG_FELL = BurrowRule.LAG_FELL.number

# Columns of a window's commits.
_OFFSET, _TIMESTAMP, _LAG = range(3)
# Places in what is kept between events.
_HELD, _OLDEST_END = range(2)


class BurrowEvents(NamedTuple):
    """Events in the order in which they came, those of a group's partition one after another.

    `is_first` begins a partition; `kind` is an EventKind. A COMMIT has its offset and time.
    `end_offset` is the partition's end at `at_ms`, NOTHING where it is not known; of a SAMPLE the
    end when it was taken.
    """

    is_first: BoolArray
    kind: LongArray
    offset: LongArray
    timestamp_ms: LongArray
    end_offset: LongArray
    at_ms: LongArray


class BurrowVerdicts(NamedTuple):
    """For each event that is a COMMIT or a TICK: the rule's number, NOTHING where the end is not
    known, the numbers of its reason, the lag, and how many commits are held."""

    rule: LongArray
    numbers: LongArray
    current_lag: LongArray
    held: LongArray


class BurrowWindows:
    """Takes events in pieces; the windows go on from one piece to the next."""

    def __init__(self, settings: BurrowSettings) -> None:
        shares = (count / settings.intervals for count in range(settings.intervals + 1))
        fewest = sum(share < settings.minimum_complete for share in shares)
        self._settings = np.array(
            [
                *(settings.intervals, settings.allowed_lag, fewest),
                settings.min_distance_s * MS_PER_SECOND,
            ],
            dtype=np.int64,
        )
        self._held = np.zeros((3, settings.intervals), dtype=np.int64)
        self._state = np.zeros(2, dtype=np.int64)

    def verdicts(self, events: BurrowEvents) -> BurrowVerdicts:
        """What Burrow would have said at each of these events."""
        count = len(events.kind)
        out = np.full((6, count), NOTHING, dtype=np.int64)
        _judge(*events, self._settings, self._held, self._state, out)
        return BurrowVerdicts(out[0], out[1:4], out[4], out[5])


@kernel
def _judge(
    is_first: BoolArray,
    kind: LongArray,
    offset: LongArray,
    timestamp_ms: LongArray,
    end_offset: LongArray,
    at_ms: LongArray,
    settings: LongArray,
    held: LongArray,
    state: LongArray,
    out: LongArray,
) -> None:
    for i in range(kind.size):
        if is_first[i] or kind[i] == DELETION:
            state[_HELD], state[_OLDEST_END] = 0, NOTHING
        if kind[i] == DELETION:
            continue
        if kind[i] == SAMPLE:
            state[_OLDEST_END] = end_offset[i]
            continue
        end = end_offset[i]
        if kind[i] == COMMIT:
            lag = NOTHING if end == NOTHING else max(0, end - offset[i])
            _take(offset[i], timestamp_ms[i], lag, settings, held, state)
        oldest_end = end if state[_OLDEST_END] == NOTHING else state[_OLDEST_END]
        state[_OLDEST_END] = NOTHING
        if end != NOTHING:
            _set_verdict(min(end, oldest_end), end, at_ms[i], settings, held, state, out[:, i])


@kernel
def hold(held: LongArray, count: int, offset: int, timestamp_ms: int, amount: int) -> int:
    """Put a commit behind the `count` that are held, a column each; how many there are then. Of a
    full window the oldest goes."""
    if count == held.shape[1]:
        for row in range(held.shape[0]):
            for j in range(1, count):
                held[row, j - 1] = held[row, j]
        count -= 1
    held[0, count], held[1, count], held[2, count] = offset, timestamp_ms, amount
    return count + 1


@kernel
def _take(
    offset: int,
    timestamp_ms: int,
    lag: int,
    settings: LongArray,
    held: LongArray,
    state: LongArray,
) -> None:
    count = state[_HELD]
    if count and timestamp_ms - held[_TIMESTAMP, count - 1] < settings[3]:
        count -= 1
        timestamp_ms = held[_TIMESTAMP, count]
    state[_HELD] = hold(held, count, offset, timestamp_ms, lag)


@kernel
def _set_verdict(
    least_end: int,
    end: int,
    at_ms: int,
    settings: LongArray,
    held: LongArray,
    state: LongArray,
    out: LongArray,
) -> None:
    count, intervals, allowed = state[_HELD], settings[0], settings[1]
    out[5] = count
    if count == 0:
        out[0], out[4] = _NO_COMMITS, 0
        return
    last = held[_OFFSET, count - 1]
    lag = max(0, end - last)
    out[4] = lag
    silence_ms = at_ms - at_ms % MS_PER_SECOND - held[_TIMESTAMP, count - 1]
    span_ms = held[_TIMESTAMP, count - 1] - held[_TIMESTAMP, 0]
    if count < settings[2]:
        out[0], out[1], out[2] = _INCOMPLETE, count, intervals
    elif lag <= allowed:
        out[0], out[1], out[2] = _LAG_ALLOWED, lag, allowed
    elif silence_ms > span_ms and least_end > last:
        out[0], out[1], out[2], out[3] = _STOPPED, silence_ms, count, span_ms
    else:
        _set_verdict_of_window(lag, settings, held, state, out)


@kernel
def _set_verdict_of_window(
    lag: int, settings: LongArray, held: LongArray, state: LongArray, out: LongArray
) -> None:
    count, allowed = state[_HELD], settings[1]
    last = held[_OFFSET, count - 1]
    small = before = fall_from = fall_to = NOTHING
    is_same = True
    for j in range(count):
        is_same = is_same and held[_OFFSET, j] == last
        then = held[_LAG, j]
        if then == NOTHING:
            continue
        if small == NOTHING and then <= allowed:
            small = then
        if fall_from == NOTHING and then < before:
            fall_from, fall_to = before, then
        before = then
    step = _step_back(held, count)
    if step != NOTHING:
        out[0], out[1], out[2] = _REWOUND, held[_OFFSET, step - 1], held[_OFFSET, step]
    elif small != NOTHING:
        out[0], out[1], out[2], out[3] = _LAG_WAS_ALLOWED, lag, small, count
    elif is_same:
        out[0], out[1], out[2], out[3] = _STALLED, count, last, lag
    elif fall_from == NOTHING:
        out[0], out[1], out[2] = _LAG_NEVER_FELL, count, lag
    else:
        out[0], out[1], out[2], out[3] = _LAG_FELL, lag, fall_from, fall_to


@kernel
def _step_back(held: LongArray, count: int) -> int:
    """The place of the first commit below the one before it, if none from there on comes up to
    that again."""
    for j in range(1, count):
        if held[_OFFSET, j] < held[_OFFSET, j - 1]:
            for later in range(j, count):
                if held[_OFFSET, later] >= held[_OFFSET, j - 1]:
                    return NOTHING
            return j
    return NOTHING
