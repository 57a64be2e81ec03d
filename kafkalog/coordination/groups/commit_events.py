"""What happens to a group's partition over time, as the functions that judge it take it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


@dataclass(frozen=True, slots=True)
class HistoryMoments:
    """The times that a history of lag has rows for, in milliseconds.

    These are every commit or, with `every_ms`, the multiples of that, from `since_ms` on; and
    `until_ms`, where the history ends. With `ends_now` the last row is about the log as it is. With
    `ticks_until_ms` there is no multiple from then on.
    """

    since_ms: int
    until_ms: int
    ends_now: bool
    every_ms: int | None = None
    ticks_until_ms: int | None = None


class EventKind(IntEnum):
    """Kinds of events, in the order of those of one moment.

    DELETION: a tombstone deletes the commit. SAMPLE: the oldest end of the partition that Burrow
    would hold at the next event. COMMIT: a commit takes effect. TICK: a moment to be judged.
    """

    DELETION = 0
    SAMPLE = 1
    COMMIT = 2
    TICK = 3
