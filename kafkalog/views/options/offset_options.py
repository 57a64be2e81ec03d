"""Where a read begins and ends: offsets and times in the forms of Spark's Kafka source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import (
    EARLIEST,
    LATEST,
    Everything,
    FromTimestamp,
    NoMatch,
    OffsetLimit,
    OffsetRequest,
    SpecificOffsets,
    SpecificTimestamps,
    TimestampRange,
)
from kafkalog.views.options.option_values import OptionValues

STARTING = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
STRATEGY = "startingOffsetsByTimestampStrategy"
FAIL_ON_DATA_LOSS = "failOnDataLoss"
STOP_AT = "stopAt"
FROM_TIMESTAMP, UNTIL_TIMESTAMP = TIME_OPTIONS = ("fromTimestamp", "untilTimestamp")
OFFSET_OPTIONS = (*STARTING, *ENDING, STRATEGY, FAIL_ON_DATA_LOSS, STOP_AT)


def offset_request(options: OptionValues) -> OffsetRequest:
    """Parse the options. If there are several for one end, the global time wins, then times by
    partition."""
    starting_option = _first_given(options, STARTING)
    ending_option = _first_given(options, ENDING)
    return OffsetRequest(
        starting=_limit(options, starting_option, "earliest", LATEST),
        ending=_limit(options, ending_option, "latest", EARLIEST),
        starting_option=starting_option,
        ending_option=ending_option,
        no_match=options.choice(STRATEGY, default=NoMatch.ERROR),
        fail_on_data_loss=options.flag(FAIL_ON_DATA_LOSS, default=True),
        end_rule=options.choice(STOP_AT, default=EndRule.LOG_END),
    )


def limited_by_time(
    request: OffsetRequest,
    from_option: str,
    from_ms: int | None,
    until_option: str,
    until_ms: int | None,
) -> OffsetRequest:
    """Return the request with the times at which a read begins and ends, where they are given; the
    options are those that an error names. Raises OptionError for a time before 1970."""
    for option, given_ms in ((from_option, from_ms), (until_option, until_ms)):
        if given_ms is not None and given_ms < 0:
            raise OptionError(option, given_ms, "milliseconds since 1970")
    if from_ms is not None:
        request = replace(request, starting=FromTimestamp(from_ms), starting_option=from_option)
    if until_ms is not None:
        request = replace(request, ending=FromTimestamp(until_ms), ending_option=until_option)
    return request


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets in the form of Spark's Kafka source: `{"orders": {"0": 23}}`."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def by_partition(topics: Mapping[str, Mapping[str, Any]]) -> dict[TopicPartition, int]:
    """Return such offsets by topic and partition."""
    return {
        (topic, int(partition)): offset
        for topic, offsets in topics.items()
        for partition, offset in offsets.items()
    }


def stream_start(options: OptionValues) -> OffsetLimit | None:
    """Return where a stream begins, None for the latest offsets, the default as in Spark's Kafka
    source. Raises OptionError, also for an end, which streams do not have."""
    for name in ENDING:
        if options.text(name) is not None:
            raise RefusedOptionError(
                name, "a stream has no end: use Trigger.AvailableNow to stop at the end"
            )
    name = _first_given(options, STARTING)
    value = options.text(name)
    if name != STARTING[-1]:
        return _limit(options, name, "earliest", LATEST)
    if value is None or value.strip().lower() == "latest":
        return None
    if value.strip().lower() == "earliest":
        return Everything()
    return SpecificOffsets(offsets_by_partition(name, value, "23", least=EARLIEST))


def timestamp_range(options: OptionValues) -> TimestampRange | None:
    """Return the range of record times, None if none is given."""
    given = [options.text(name) for name in TIME_OPTIONS]
    if given == [None, None]:
        return None
    everything = TimestampRange()
    first_ms, end_ms = (
        default if value is None else _timestamp(name, value)
        for name, value, default in zip(
            TIME_OPTIONS, given, (everything.first_ms, everything.end_ms), strict=True
        )
    )
    if end_ms < first_ms:
        allowed = f"a time not before {FROM_TIMESTAMP}"
        raise OptionError(UNTIL_TIMESTAMP, end_ms, allowed, mentioned=(FROM_TIMESTAMP,))
    return TimestampRange(first_ms, end_ms)


def _first_given(options: OptionValues, names: tuple[str, ...]) -> str:
    return next((name for name in names if options.text(name) is not None), names[-1])


def _limit(options: OptionValues, name: str, everything: str, refused: int) -> OffsetLimit:
    value = options.text(name)
    if value is None:
        return Everything()
    if name.endswith("ByTimestamp"):
        return SpecificTimestamps(offsets_by_partition(name, value, "1700000000000", least=0))
    if name.endswith("Timestamp"):
        return FromTimestamp(_timestamp(name, value))
    if value.strip().lower() == everything:
        return Everything()
    word = "earliest" if refused == EARLIEST else "latest"
    if value.strip().lower() == word:
        raise OptionError(name, value, f'{everything}, or JSON such as {{"topic":{{"0":23}}}}')
    offsets = offsets_by_partition(name, value, "23", least=EARLIEST)
    if refused in offsets.values():
        raise OptionError(name, value, f"offsets other than {refused} ({word})")
    return SpecificOffsets(offsets)


def _timestamp(name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", value.strip()):
        raise OptionError(name, value, "milliseconds since 1970")
    return int(value)


def offsets_by_partition(
    name: str, value: str, example: str = "23", *, least: int = 0
) -> dict[TopicPartition, int]:
    """Parse numbers in the form `{"topic":{"0":23}}`. Raises OptionError that names the option."""
    allowed = f'JSON such as {{"topic":{{"0":{example},"1":{example}}}}}'
    try:
        parsed = {
            (topic, int(partition)): number
            for topic, numbers in json.loads(value).items()
            for partition, number in numbers.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise OptionError(name, value, allowed) from None
    if not all(type(number) is int and least <= number < 2**63 for number in parsed.values()):
        raise OptionError(name, value, allowed)
    return parsed


def check_partitions(request: OffsetRequest, logs: Iterable[PartitionLog]) -> None:
    """Raise OptionError unless offsets and times name each partition that is read, and no other."""
    read = {log.topic_partition for log in logs if log.topic_partition is not None}
    for option, limit in (
        (request.starting_option, request.starting),
        (request.ending_option, request.ending),
    ):
        if isinstance(limit, SpecificOffsets):
            named = set(limit.offsets)
        elif isinstance(limit, SpecificTimestamps):
            named = set(limit.timestamps_ms)
        else:
            continue
        if named != read:
            raise OptionError(
                option,
                _names(named),
                f"all partitions that are read and only those: {_names(read)}",
            )


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions)) or "none"
