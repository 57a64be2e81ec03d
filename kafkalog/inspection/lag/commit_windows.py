"""The newest commits of a group for a partition, as the kernels of both kinds of statuses hold
them. Rule: docs/format.md F330.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import LongArray, kernel
from kafkalog.coordination.groups.lag_status import EventKind

DELETION, SAMPLE, COMMIT_EVENT = (
    int(kind) for kind in (EventKind.DELETION, EventKind.SAMPLE, EventKind.COMMIT)
)
# In columns of numbers: there is none.
NOTHING = -1


class HeldCommits(NamedTuple):
    """The commits of a window, from the oldest; `amount` is their lag, or the records that were
    left to read."""

    offset: LongArray
    timestamp_ms: LongArray
    amount: LongArray


class Verdicts(NamedTuple):
    """For each event that is a COMMIT or a TICK the number of the rule that decides and the numbers
    of its reason, NOTHING for none."""

    rule: LongArray
    first: LongArray
    second: LongArray
    third: LongArray


def new_window(intervals: int) -> HeldCommits:
    """Return a window with room for that many commits."""
    return HeldCommits(*np.zeros((3, intervals), dtype=np.int64))


def new_verdicts(count: int) -> Verdicts:
    """Return the verdicts of that many events, none of which is decided."""
    return Verdicts(*np.full((4, count), NOTHING, dtype=np.int64))


@kernel
def hold(held: HeldCommits, count: int, offset: int, timestamp_ms: int, amount: int) -> int:
    """Add a commit to the `count` that are held, and return how many are held then. A full window
    loses the oldest."""
    if count == held.offset.size:
        for place in range(1, count):
            held.offset[place - 1] = held.offset[place]
            held.timestamp_ms[place - 1] = held.timestamp_ms[place]
            held.amount[place - 1] = held.amount[place]
        count -= 1
    held.offset[count] = offset
    held.timestamp_ms[count] = timestamp_ms
    held.amount[count] = amount
    return count + 1
