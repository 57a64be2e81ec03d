"""The exact status at each of millions of moments: a kernel over the events of many partitions.

It gives what `kafkalog.coordination.groups.lag_status` gives. Rules: docs/format.md F333 to F337.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, LongArray, kernel
from kafkalog.coordination.groups.lag_status import LagRule, LagSettings
from kafkalog.inspection.lag.burrow_statuses import COMMIT, DELETION, NOTHING, SAMPLE, hold

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

# Columns of the commits looked back on.
_OFFSET, _TIMESTAMP, _READABLE = range(3)
# Places in what is kept between events.
_HELD, _SAME_SINCE = range(2)


class LagEvents(NamedTuple):
    """Events as in BurrowEvents, with what LagFacts has of each: NOTHING for no time. A SAMPLE is
    passed over."""

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


class LagVerdicts(NamedTuple):
    """For each event that is a COMMIT or a TICK: the rule's number and those of its reason."""

    rule: LongArray
    numbers: LongArray


class LagWindows:
    """Takes events in pieces; the windows go on from one piece to the next."""

    def __init__(self, settings: LagSettings) -> None:
        self._settings = np.array(
            [settings.intervals, settings.allowed_records, settings.no_progress_ms], dtype=np.int64
        )
        self._held = np.zeros((3, settings.intervals), dtype=np.int64)
        self._state = np.zeros(2, dtype=np.int64)

    def verdicts(self, events: LagEvents) -> LagVerdicts:
        """The status at each of these events."""
        out = np.full((4, len(events.kind)), NOTHING, dtype=np.int64)
        _judge(*events, self._settings, self._held, self._state, out)
        return LagVerdicts(out[0], out[1:4])


@kernel
def _judge(
    is_first: BoolArray,
    kind: LongArray,
    offset: LongArray,
    timestamp_ms: LongArray,
    at_ms: LongArray,
    is_now: BoolArray,
    has_log: BoolArray,
    is_in_log: BoolArray,
    readable: LongArray,
    beyond: LongArray,
    below: LongArray,
    hidden: LongArray,
    ahead: LongArray,
    next_ms: LongArray,
    settings: LongArray,
    held: LongArray,
    state: LongArray,
    out: LongArray,
) -> None:
    for i in range(kind.size):
        if is_first[i] or kind[i] == DELETION:
            state[_HELD] = 0
        if kind[i] in (DELETION, SAMPLE):
            continue
        is_known = has_log[i] and is_in_log[i] and (is_now[i] or not (below[i] or ahead[i]))
        if kind[i] == COMMIT:
            left = readable[i] if is_known else NOTHING
            _take(offset[i], timestamp_ms[i], left, held, state)
        if not has_log[i]:
            out[0, i] = _NO_LOG
        elif not is_in_log[i]:
            out[0, i] = _LOG_BEGINS_LATER
        elif below[i]:
            out[0, i], out[1, i] = (_LOST if is_now[i] else _DELETED_SINCE), below[i]
        elif ahead[i]:
            out[0, i], out[1, i] = (_AHEAD if is_now[i] else _BEYOND_END), ahead[i]
        elif readable[i] > settings[1]:
            _set_progress(readable[i], next_ms[i], at_ms[i], settings, held, state, out[:, i])
        elif hidden[i]:
            out[0, i], out[1, i], out[2, i] = _HIDDEN, readable[i], hidden[i]
        elif beyond[i]:
            out[0, i], out[1, i], out[2, i] = _HELD_BACK, readable[i], beyond[i]
        else:
            out[0, i], out[1, i], out[2, i] = _CAUGHT_UP, readable[i], settings[1]


@kernel
def _take(offset: int, timestamp_ms: int, left: int, held: LongArray, state: LongArray) -> None:
    count = state[_HELD]
    if count == 0 or held[_OFFSET, count - 1] != offset:
        state[_SAME_SINCE] = timestamp_ms
    state[_HELD] = hold(held, count, offset, timestamp_ms, left)


@kernel
def _set_progress(
    left: int,
    next_ms: int,
    at_ms: int,
    settings: LongArray,
    held: LongArray,
    state: LongArray,
    out: LongArray,
) -> None:
    count = state[_HELD]
    last, last_ms = held[_OFFSET, count - 1], held[_TIMESTAMP, count - 1]
    there_ms = last_ms if next_ms == NOTHING else next_ms
    highest = last
    for j in range(count):
        highest = max(highest, held[_OFFSET, j])
    silent_ms = at_ms - max(there_ms, last_ms)
    stuck_ms = at_ms - max(there_ms, state[_SAME_SINCE])
    is_late = next_ms != NOTHING and there_ms < held[_TIMESTAMP, 0] and count > 1
    at_first = held[_READABLE, 0]
    if silent_ms > settings[2]:
        out[0], out[1], out[2] = _STOPPED, left, silent_ms
    elif last < highest:
        out[0], out[1], out[2] = _REWOUND, highest, last
    elif stuck_ms > settings[2]:
        out[0], out[1], out[2], out[3] = _STALLED, left, stuck_ms, last
    elif is_late and at_first != NOTHING and left >= at_first:
        out[0], out[1], out[2], out[3] = _FALLS_BEHIND, left, at_first, count
    else:
        out[0], out[1], out[2] = _KEEPS_UP, left, at_ms - there_ms
