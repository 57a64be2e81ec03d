"""Which times of batches cannot be right: ahead of the clock, or from before Kafka.

Rule: docs/command-line.md F1248.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import NamedTuple

from kafkalog.format.batch_header import NO_VALUE
from kafkalog.storage.reading.offset_ranges import MAX_FUTURE_MS
from kafkalog.words import counted, first_names, time_text

# The start of 2000: no record that anybody meant to keep is older.
_EARLIEST_MS = 946_684_800_000
_FINER = ((1000, "microseconds in place of milliseconds"), (10**6, "nanoseconds"))
_MOST_TOPICS = 5


class SegmentTimes(NamedTuple):
    """The least and the largest time of the batches of a segment, None without any."""

    topic: str | None
    file: str
    least_ms: int | None
    latest_ms: int | None


def wrong_time(time_ms: int, now_ms: int) -> str | None:
    """Return what is wrong about a time, in words; None for a time that can be right, and for the
    -1 of records without one."""
    latest_ms = now_ms + MAX_FUTURE_MS
    if time_ms > latest_ms:
        for factor, unit in _FINER:
            if _EARLIEST_MS <= time_ms // factor <= latest_ms:
                return f"times that look like {unit}"
        return "times ahead of the clock"
    if time_ms < _EARLIEST_MS and time_ms != NO_VALUE:
        if _EARLIEST_MS <= time_ms * 1000 <= latest_ms:
            return "times that look like seconds in place of milliseconds"
        return "times before 2000"
    return None


def wrong_time_lines(segments: Iterable[SegmentTimes], now_ms: int) -> Iterator[str]:
    """Yield a line for each kind of wrong time: the topics, with how many segments have such times;
    one of the times; and the line that lists the records of that partition."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    for segment in segments:
        for time_ms in dict.fromkeys((segment.least_ms, segment.latest_ms)):
            what = None if time_ms is None else wrong_time(time_ms, now_ms)
            if time_ms is not None and what is not None:
                found.setdefault(what, []).append((segment.topic or "?", time_ms, segment.file))
    for what, places in found.items():
        topics = Counter(topic for topic, _ in {(topic, file): None for topic, _, file in places})
        names = [f"{each} ({counted(topics[each], 'segment')})" for each in topics]
        _, time_ms, file = places[0]
        is_early = time_ms < _EARLIEST_MS
        limit = _EARLIEST_MS if is_early else now_ms + MAX_FUTURE_MS
        option = "--until-time" if is_early else "--from-time"
        yield (
            f"wrong times: {what} in {counted(len(topics), 'topic')}: "
            f"{first_names(names, _MOST_TOPICS)}; such as {time_text(time_ms)} in {file}; "
            f"kafkalog find {quote(os.path.dirname(file))} {option} {time_text(limit)} lists them"
        )
