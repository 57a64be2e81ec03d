"""Stretches of time that a plot has room for."""

from __future__ import annotations

from dataclasses import dataclass

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
# Stretches that have a name. An hour is what a log of hours to days has: see `grid_over`.
STRETCHES = (
    *(10, 100, _SECOND, 10 * _SECOND, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR),
    *(_DAY, 7 * _DAY, 28 * _DAY, 364 * _DAY),
)
# A week has 168 hours.
_MOST_STRETCHES = 192
# How far from where nearly all batches are one can be, in widths of where they are: what is further
# away is a wrong clock, and would leave no room for the rest.
_FENCE = 1


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Equal stretches of time from `begin_ms` on, of `every_ms` each."""

    begin_ms: int
    every_ms: int
    stretches: int


def grid_over(least_ms: int, low_ms: int, high_ms: int, greatest_ms: int) -> TimeGrid:
    """Return a grid over the times between `least_ms` and `greatest_ms`, but not over those that
    are far from where nearly all are, between `low_ms` and `high_ms` (docs/report.md F601)."""
    room = _FENCE * max(high_ms - low_ms, _HOUR)
    begin, end = max(least_ms, low_ms - room), min(greatest_ms, high_ms + room)
    # A stretch begins at a multiple of its length, so there can be one more than fit in between.
    every_ms = next(
        (each for each in STRETCHES if end // each - begin // each < _MOST_STRETCHES), STRETCHES[-1]
    )
    begin -= begin % every_ms
    return TimeGrid(begin, every_ms, min((end - begin) // every_ms + 1, _MOST_STRETCHES))


def stretch_words(every_ms: int) -> str:
    """Return text such as `10 minutes`, to follow "per"."""
    for length, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (_SECOND, "second")):
        if every_ms % length == 0:
            count = every_ms // length
            return name if count == 1 else f"{count} {name}s"
    return f"{every_ms} ms"
