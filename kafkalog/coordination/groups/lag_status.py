"""The exact statuses of a group's partitions and of groups, and the rules that decide them: by the
records that can be read rather than by offsets, and by how long the next record has waited.

Rules: docs/format.md F333 to F338. `kafkalog.inspection.lag.lag_statuses` applies them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


class LagStatus(Enum):
    """How well a group reads a partition."""

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
# The statuses of a group, from the best, and the place there of each status of a partition: a group
# has the worst. F338
GROUP_STATUSES = (LagStatus.OK, LagStatus.UNKNOWN, LagStatus.WARN, LagStatus.ERR)
GROUP_RANKS = {status: rank for rank, status in enumerate(GROUP_STATUSES)}
GROUP_RANKS |= dict.fromkeys(LAG_ERRORS, GROUP_RANKS[LagStatus.ERR])


class LagRule(Enum):
    """The rules that decide: a number, the status, and the reason with places for numbers."""

    NO_LOG = (0, LagStatus.UNKNOWN, "the log of the partition is not in the input")
    LOG_BEGINS_LATER = (1, LagStatus.UNKNOWN, "the log no longer covers that time")
    DELETED_SINCE = (2, LagStatus.UNKNOWN, "the log now starts {0:offset} after the committed one")
    BEYOND_END = (3, LagStatus.UNKNOWN, "that log is known up to {0:offset} before the commit")
    LOST = (4, LagStatus.LOST, "the log starts {0:offset} after the committed one")
    AHEAD = (5, LagStatus.AHEAD, "the commit is {0:offset} past the end of the log")
    HIDDEN = (6, LagStatus.UNKNOWN, "{0:record} left to read, besides {1:offset} hidden")
    HELD_BACK = (7, LagStatus.OK, "{0:record} left to read, besides {1:offset} held back")
    CAUGHT_UP = (8, LagStatus.OK, "{0:record} left to read, {1} allowed")
    STOPPED = (9, LagStatus.STOP, "{0:record} left to read for {1:ms}, no commit since")
    REWOUND = (10, LagStatus.REWIND, "rewound from offset {0} to {1} and has not caught up again")
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
