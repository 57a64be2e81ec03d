"""The statuses of LinkedIn's Burrow for partitions and groups, and the rules that decide them.

They follow Burrow's code since version 1.3.7, not its wiki. Rules: docs/format.md F330 to F332.
`kafkalog.inspection.lag.burrow_statuses` applies them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MS_PER_SECOND = 1000


class BurrowStatus(Enum):
    """Burrow's statuses, in the order of its numbers."""

    NOTFOUND = "NOTFOUND"
    OK = "OK"
    WARN = "WARN"
    ERR = "ERR"
    STOP = "STOP"
    STALL = "STALL"
    REWIND = "REWIND"


BURROW_ERRORS = frozenset({BurrowStatus.STOP, BurrowStatus.STALL, BurrowStatus.REWIND})
# The statuses of a group, from the best, and the place there of each status of a partition: a group
# has the worst. F332
BURROW_GROUP_STATUSES = (
    BurrowStatus.OK,
    BurrowStatus.WARN,
    BurrowStatus.ERR,
    BurrowStatus.NOTFOUND,
)
BURROW_GROUP_RANKS = {status: rank for rank, status in enumerate(BURROW_GROUP_STATUSES)}
BURROW_GROUP_RANKS |= dict.fromkeys(BURROW_ERRORS, BURROW_GROUP_RANKS[BurrowStatus.ERR])


class BurrowRule(Enum):
    """The rules that decide: a number, the status, and the reason with places for numbers."""

    NO_COMMITS = (0, BurrowStatus.OK, "no commit is held")
    INCOMPLETE = (1, BurrowStatus.OK, "{0} of {1} commits are held, which is too few")
    LAG_ALLOWED = (2, BurrowStatus.OK, "lag is {0}, and {1} is allowed")
    STOPPED = (3, BurrowStatus.STOP, "no commit for {0:ms}, and the {1} held span {2:ms}")
    REWOUND = (4, BurrowStatus.REWIND, "rewound from offset {0} to {1} and has not caught up again")
    LAG_WAS_ALLOWED = (5, BurrowStatus.OK, "lag is {0}, but was {1} at one of the {2:commit} held")
    STALLED = (6, BurrowStatus.STALL, "{0:commit} held, all of offset {1}, lag is {2}")
    LAG_NEVER_FELL = (7, BurrowStatus.WARN, "lag is {1}, and never fell over {0:commit} held")
    LAG_FELL = (8, BurrowStatus.OK, "lag is {0}, and fell from {1} to {2} between commits held")
    EXPIRED = (9, BurrowStatus.NOTFOUND, "no commit of the group for {0:ms}, over {1:ms}")

    def __init__(self, number: int, status: BurrowStatus, words: str) -> None:
        self.number = number
        self.status = status
        self.words = words


@dataclass(frozen=True, slots=True)
class BurrowSettings:
    """Burrow's thresholds, by the names that its configuration gives them."""

    intervals: int = 10
    allowed_lag: int = 0
    minimum_complete: float = 0.0
    min_distance_s: int = 0
    expire_group_s: int = 604_800
    offset_refresh_s: int = 10
