"""From what a user asks for to offsets of one partition, by the rules of Spark's Kafka source.

Rules: docs/format.md F95 to F99, F930 and F931.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from kafkalog.errors import DataLossError, OptionError
from kafkalog.format.offsets import OffsetSpan
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.log_lines import logger
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, LogBounds, log_bounds
from kafkalog.words import UNITS_MS, age_text, duration_text, time_text

LATEST, EARLIEST = -1, -2
MAX_FUTURE_MS = UNITS_MS["h"]
# A clock by which no record is of the future.
LARGEST_TIME_MS = 2**63 - 1
# A log whose every time is wrong is not to fill the memory.
MOST_DOUBTFUL = 100_000

_logger = logger(__name__)


@dataclass(frozen=True, slots=True)
class Everything:
    """From the first offset, or up to the last."""


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """An offset for every partition; LATEST and EARLIEST stand for themselves."""

    offsets: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class FromTimestamp:
    """The first offset whose timestamp is not before this one, in every partition."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SpecificTimestamps:
    """As FromTimestamp, with a timestamp for each partition."""

    timestamps_ms: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class TimestampRange:
    """Times of records, in milliseconds: from `first_ms` up to, not including, `end_ms`. The first
    is a time that a record can have, so below 2**63. A record without a timestamp has none of
    them."""

    first_ms: int = 1 - 2**63
    end_ms: int = 2**63


OffsetLimit = Everything | SpecificOffsets | FromTimestamp | SpecificTimestamps


class NoMatch(Enum):
    """What to do where no record is as late as a starting timestamp."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class TimeRule:
    """Which timestamps are doubtful (F930): those more than `max_future_ms` after `now_ms`, or
    after most of their neighbours. `passes_over` says whether such a record can begin or end a
    range; Kafka's own rule, F99, lets it."""

    now_ms: int
    max_future_ms: int = MAX_FUTURE_MS
    passes_over: bool = False


class DoubtfulRecord(NamedTuple):
    """A record with a doubtful timestamp: `is_ahead` of the clock, or far beyond its neighbours."""

    offset: int
    timestamp_ms: int
    is_ahead: bool


class TimeAnswer(NamedTuple):
    """The offset for a time, None where no record is as late. `doubtful` are the records that were
    passed over on the way, at most MOST_DOUBTFUL, the last ones; or, where none is to be passed
    over, the record at the offset itself if it is doubtful."""

    offset: int | None
    doubtful: tuple[DoubtfulRecord, ...] = ()


# Answers for a log, from an offset on, and a time.
TimeLookup = Callable[[PartitionLog, int, int], TimeAnswer]


@dataclass(frozen=True, slots=True)
class OffsetRequest:
    """Which offsets to read. `starting_option` and `ending_option` name what the user set.

    `within` has the offsets that a filter leaves of some partitions: whoever asks takes no other
    row, and a log may lack some of them.
    """

    starting: OffsetLimit = Everything()
    ending: OffsetLimit = Everything()
    starting_option: str = "startingOffsets"
    ending_option: str = "endingOffsets"
    no_match: NoMatch = NoMatch.ERROR
    fail_on_data_loss: bool = True
    end_rule: EndRule = EndRule.LOG_END
    time_rule: TimeRule | None = None
    within: Mapping[TopicPartition | None, OffsetSpan] | None = None


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition; an `end` of None is the end of the sound bytes.

    `requested_start` and `requested_end` are offsets that the user named. Only a reader of the last
    segment finds out that one is beyond the log's end. `passed_over` are records, by offset, that
    are as late as a requested time and doubtful, so that the range does not begin or end with them.
    `is_filtered` says that a filter has made the range smaller.
    """

    start: int
    end: int | None
    log_start: int = 0
    requested_start: int | None = None
    requested_end: int | None = None
    passed_over: tuple[DoubtfulRecord, ...] = ()
    is_filtered: bool = False

    @property
    def is_empty(self) -> bool:
        return self.end is not None and self.end <= self.start

    def within(self, span: OffsetSpan | None) -> OffsetRange:
        """Return the part of the range that lies in a span, all of it without one."""
        if span is None:
            return self
        start = max(self.start, span.start)
        end = span.end if self.end is None else min(self.end, span.end)
        return replace(self, start=start, end=max(start, end), is_filtered=True)


def offset_range(
    log: PartitionLog, request: OffsetRequest, lookup: TimeLookup, stable_offset: int | None = None
) -> OffsetRange:
    """Return the offsets of `log` that are requested, those below `stable_offset` if it is given.

    Raises DataLossError, or clamps and logs, where they lie outside the log, and OptionError where
    they end before they begin.
    """
    bounds = log_bounds(log, request.end_rule)
    if stable_offset is not None:
        ends = [stable_offset] if bounds.end_offset is None else [stable_offset, bounds.end_offset]
        # A segment's file that is requested by itself can lie after the stable offset.
        bounds = LogBounds(bounds.start_offset, max(bounds.start_offset, min(ends)))
    times = _AskedTimes(log, request.time_rule, bounds, lookup)
    start, requested_start = _start(log, request, bounds, times)
    end, requested_end = _end(log, request, bounds, times)
    if start is None:
        first = bounds.start_offset
        return OffsetRange(first, first, first, passed_over=times.passed_over(bounds.end_offset))
    if end is not None and end < start:
        allowed = f"an end of {log.name} not before its start, which is offset {start}"
        is_requested = not isinstance(request.ending, Everything)
        raise OptionError(
            request.ending_option if is_requested else "stopAt", f"offset {end}", allowed
        )
    found = OffsetRange(
        start, end, bounds.start_offset, requested_start, requested_end, times.passed_over(end)
    )
    return found.within(None if request.within is None else request.within.get(log.topic_partition))


class _AskedTimes:
    """The offsets for the times that bound a range, and what is doubtful about them."""

    def __init__(
        self, log: PartitionLog, rule: TimeRule | None, bounds: LogBounds, lookup: TimeLookup
    ) -> None:
        self._log, self._rule, self._bounds, self._lookup = log, rule, bounds, lookup
        self._doubtful: dict[int, DoubtfulRecord] = {}

    def offset(self, option: str, timestamp_ms: int) -> int | None:
        """Return the offset for a time. Logs a doubtful record that is not passed over."""
        answer = self._lookup(self._log, self._bounds.start_offset, timestamp_ms)
        rule = self._rule
        if rule is not None and rule.passes_over:
            self._doubtful |= {each.offset: each for each in answer.doubtful}
        elif rule is not None and answer.doubtful:
            (record,) = answer.doubtful
            _logger.warning(
                "%s: the first record of %s that is as late is at offset %d, and its time is "
                "doubtful: %s. Records after it may be earlier than %s. The options fromTimestamp "
                "and untilTimestamp select each record by its own time",
                option,
                self._log.name,
                record.offset,
                doubt_words(record, rule),
                time_text(timestamp_ms),
            )
        return answer.offset

    def passed_over(self, end: int | None) -> tuple[DoubtfulRecord, ...]:
        """Return the records that were passed over, those below an end."""
        found = sorted(self._doubtful.values())
        return tuple(each for each in found if end is None or each.offset < end)


def doubt_words(record: DoubtfulRecord, rule: TimeRule) -> str:
    """Return the time of a record, and what is doubtful about it."""
    time = time_text(record.timestamp_ms)
    if record.is_ahead:
        return f"{time} is {age_text(rule.now_ms - record.timestamp_ms)}"
    longest = duration_text(rule.max_future_ms)
    return f"{time} is more than {longest} after most of the batches that follow"


def _start(
    log: PartitionLog, request: OffsetRequest, bounds: LogBounds, times: _AskedTimes
) -> tuple[int | None, int | None]:
    """Return where to start, None for the latest offset; and the same if it was requested by
    number."""
    limit = request.starting
    if isinstance(limit, Everything):
        return bounds.start_offset, None
    if isinstance(limit, SpecificOffsets):
        offset = _of(log, limit.offsets, EARLIEST)
        return (
            (bounds.start_offset, None)
            if offset == EARLIEST
            else _within(log, request, request.starting_option, offset, bounds)
        )
    timestamp = _timestamp(log, limit)
    if timestamp is None:
        return bounds.start_offset, None
    found = times.offset(request.starting_option, timestamp)
    if found is not None and (bounds.end_offset is None or found < bounds.end_offset):
        return found, None
    if request.no_match is NoMatch.ERROR:
        raise OptionError(
            request.starting_option,
            timestamp,
            f"a time not after the last record of {log.name}; "
            "startingOffsetsByTimestampStrategy=latest reads nothing there instead",
        )
    return None, None


def _end(
    log: PartitionLog, request: OffsetRequest, bounds: LogBounds, times: _AskedTimes
) -> tuple[int | None, int | None]:
    limit = request.ending
    if isinstance(limit, Everything):
        return bounds.end_offset, None
    if isinstance(limit, SpecificOffsets):
        offset = _of(log, limit.offsets, LATEST)
        return (
            (bounds.end_offset, None)
            if offset == LATEST
            else _within(log, request, request.ending_option, offset, bounds)
        )
    timestamp = _timestamp(log, limit)
    found = None if timestamp is None else times.offset(request.ending_option, timestamp)
    if found is None or (bounds.end_offset is not None and found > bounds.end_offset):
        return bounds.end_offset, None
    return found, None


def _of(log: PartitionLog, offsets: dict[TopicPartition, int], unnamed: int) -> int:
    """Return the number for a log; `unnamed` for a file of no topic, which no option can name."""
    key = log.topic_partition
    return offsets[key] if key else unnamed


def _timestamp(log: PartitionLog, limit: FromTimestamp | SpecificTimestamps) -> int | None:
    if isinstance(limit, FromTimestamp):
        return limit.timestamp_ms
    return limit.timestamps_ms[log.topic_partition] if log.topic_partition else None


def _within(
    log: PartitionLog, request: OffsetRequest, option: str, offset: int, bounds: LogBounds
) -> tuple[int, int | None]:
    """Return the offset, and again as one to be checked against the log's end, or the bound it
    exceeds."""
    if offset < bounds.start_offset:
        nearest = bounds.start_offset
    elif bounds.end_offset is not None and offset > bounds.end_offset:
        nearest = bounds.end_offset
    else:
        return offset, offset
    end = "the end of the log" if bounds.end_offset is None else str(bounds.end_offset)
    report_data_loss(
        f"{option}: offset {offset} of {log.name} is not in the log, "
        f"which holds {bounds.start_offset} up to {end}",
        fail=request.fail_on_data_loss,
    )
    return nearest, None


def report_data_loss(message: str, *, fail: bool) -> None:
    """Raise, or log and go on with what is there."""
    if fail:
        raise DataLossError(f"{message} (failOnDataLoss=false reads what is there)")
    _logger.warning("%s; reading what is there", message)
