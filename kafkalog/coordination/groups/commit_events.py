"""What happens to a group's partition over time, as the functions that judge it take it."""

from __future__ import annotations

from enum import IntEnum


class EventKind(IntEnum):
    """Kinds of events, in the order of those of one moment.

    DELETION: a tombstone deletes the commit. SAMPLE: the oldest end of the partition that Burrow
    would hold at the event behind it. COMMIT: a commit takes effect. TICK: a moment to be judged.
    """

    DELETION = 0
    SAMPLE = 1
    COMMIT = 2
    TICK = 3
