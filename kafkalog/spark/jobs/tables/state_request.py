"""The options of the job reconstruct-state, and the same as options of the source."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.views.options.click_options import (
    as_of_option,
    isolation_level_option,
    settings_options,
    topic_option,
    topic_partition,
    topic_pattern_option,
)
from kafkalog.views.options.options import Isolation, ReadOptions, read_options
from kafkalog.views.planning.state_positions import StateSettings, by_topic

AS_OF_OFFSET = "--as-of-offset"
_OPTIONS = {
    "endingOffsets": AS_OF_OFFSET,
    "endingTimestamp": "--as-of",
    "subscribe": "--topic",
    "subscribePattern": "--topic-pattern",
}


class PartitionOffset(NamedTuple):
    """The value of `--as-of-offset`: an offset of one partition, or of the only one that is read
    where `topic_partition` is None; -1 is the end."""

    topic_partition: TopicPartition | None
    offset: int


class _PartitionOffset(click.ParamType[PartitionOffset]):
    name = "offset"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> PartitionOffset:
        if isinstance(value, PartitionOffset):
            return value
        place, is_placed, offset = value.rpartition("=")
        partition = topic_partition(place) if is_placed else None
        if not re.fullmatch("-1|[0-9]{1,19}", offset) or (is_placed and partition is None):
            self.fail(f"{value!r} is not TOPIC-PARTITION=OFFSET, such as orders-0=50", param, ctx)
        return PartitionOffset(partition, int(offset))


@dataclass(frozen=True, slots=True)
class StateRequest:
    """The options of the job, as they were given."""

    topics: tuple[str, ...]
    topic_pattern: str | None
    isolation_level: str
    stop_at: str
    as_of: int | None
    as_of_offsets: tuple[PartitionOffset, ...]
    keep_tombstones: bool
    full_refresh: bool

    @property
    def settings(self) -> StateSettings:
        """What all runs on one table must agree in."""
        return StateSettings(self.isolation_level, self.keep_tombstones)

    def options(self, job: JobSettings, inputs: Sequence[str]) -> ReadOptions:
        """Return the options of view `records`. Raises OptionError."""
        if self.as_of is not None and self.as_of_offsets:
            raise ConflictingOptionsError("--as-of", AS_OF_OFFSET)
        with named_as_options(_OPTIONS):
            given = source_options(self, job, inputs)
            if self.as_of is not None:
                given["endingTimestamp"] = str(self.as_of)
            if self.as_of_offsets:
                offsets = _by_partition(self.as_of_offsets, read_options(given))
                given["endingOffsets"] = json.dumps(by_topic(offsets))
            return read_options(given)


def source_options(request: Any, job: JobSettings, inputs: Sequence[str]) -> dict[str, str]:
    """Return the options of the source that say what `source_option_group` says."""
    given = {
        "paths": json.dumps(list(inputs)),
        "mode": job.mode,
        "isolationLevel": request.isolation_level,
        "stopAt": request.stop_at,
    }
    if request.topics:
        given["subscribe"] = ",".join(request.topics)
    if request.topic_pattern is not None:
        given["subscribePattern"] = request.topic_pattern
    return given


def source_option_group(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which topics to read, and which of their records."""
    for option in (
        click.option(
            "--stop-at",
            type=click.Choice([rule.value for rule in EndRule]),
            default=EndRule.HIGH_WATERMARK.value,
            show_default=True,
            help="Where a log ends: highWatermark, which is known after a clean shutdown, or else "
            "the log end; or logEnd.",
        ),
        isolation_level_option(
            "read_committed leaves out aborted transactions and stops where the first open one "
            "begins.",
            Isolation.READ_COMMITTED,
        ),
        topic_pattern_option(),
        topic_option(
            "Only this topic; repeatable. '*' is all, internal ones included; without --topic all "
            "but those are read."
        ),
    ):
        function = option(function)
    return function


def state_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the job, received as `request`."""
    return settings_options(
        StateRequest,
        "request",
        source_option_group,
        as_of_option("The state before the first record of each partition that is as late"),
        click.option(
            AS_OF_OFFSET,
            "as_of_offsets",
            metavar="[TOPIC-PARTITION=]OFFSET",
            type=_PartitionOffset(),
            multiple=True,
            help="The state before this offset, -1 for the end; repeatable, once for each "
            "partition that is read, or OFFSET alone where that is one.",
        ),
        click.option(
            "--keep-tombstones",
            is_flag=True,
            help="Keep a row of each deleted key, with the offset and the time of the delete.",
        ),
        click.option(
            "--full-refresh",
            is_flag=True,
            help="Read everything again and replace the rows of the partitions that are read, "
            "instead of reading what is new since the last run: also after damage was repaired "
            "that --mode PERMISSIVE had skipped.",
        ),
    )(function)


@contextmanager
def named_as_options(names: Mapping[str, str] = _OPTIONS) -> Iterator[None]:
    """Let an OptionError name the option of the job that an option of the source came from."""
    try:
        yield
    except OptionError as error:
        name = names.get(error.name, error.name)
        raise OptionError(name, error.value, error.allowed) from error


def _by_partition(
    given: Sequence[PartitionOffset], options: ReadOptions
) -> dict[TopicPartition, int]:
    if all(each.topic_partition is not None for each in given):
        return refuse_repeated(
            AS_OF_OFFSET, [(each.topic_partition or ("", 0), each.offset) for each in given]
        )
    partitions = partitions_read(options)
    if len(given) > 1 or len(partitions) != 1:
        allowed = f"TOPIC-PARTITION=OFFSET for each of {_names(partitions)}"
        raise OptionError(AS_OF_OFFSET, " ".join(str(each.offset) for each in given), allowed)
    return {partitions[0]: given[0].offset}


def partitions_read(options: ReadOptions) -> list[TopicPartition]:
    """Return the partitions that these options read, in order."""
    logs = options.topics.chosen(find_partitions(options.paths, strict=False))
    return sorted({log.topic_partition for log in logs if log.topic_partition is not None})


def refuse_repeated(
    option: str, given: Sequence[tuple[TopicPartition, int]]
) -> dict[TopicPartition, int]:
    """Return the values by partition. Raises OptionError for a partition that is named twice."""
    found = dict(given)
    if len(found) != len(given):
        raise OptionError(option, f"{len(given)} values for {_names(found)}", "one for each")
    return found


def _names(partitions: Sequence[TopicPartition] | Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions) or "none"
