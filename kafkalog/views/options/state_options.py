"""The options that say which state to build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.reading.offset_ranges import MAX_FUTURE_MS, SpecificOffsets, TimeRule
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import AS_OF_OFFSET, Decorator
from kafkalog.views.options.offset_options import limited_by_time
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.options.parameter_types import PartitionOffset
from kafkalog.views.options.source_options import (
    SourceRequest,
    partition_names,
    partitions_read,
    refuse_repeated,
    source_option_group,
)


@dataclass(frozen=True, slots=True)
class StateRequest(SourceRequest):
    """The options, as they were given."""

    as_of: int | None
    as_of_offsets: tuple[PartitionOffset, ...]
    keep_tombstones: bool
    full_refresh: bool = False
    max_future_ms: int = MAX_FUTURE_MS

    def options(self, inputs: Sequence[str], mode: str, *, now_ms: int) -> ReadOptions:
        """Return the options of view `records`. Raises OptionError."""
        if self.as_of is not None and self.as_of_offsets:
            raise ConflictingOptionsError("--as-of", AS_OF_OFFSET)
        rule = TimeRule(now_ms, self.max_future_ms, passes_over=True)
        options = self.of_records(inputs, mode).by_time_rule(rule)
        limits = limited_by_time(options.offsets, "", None, "--as-of", self.as_of)
        if self.as_of_offsets:
            ends = SpecificOffsets(_by_partition(self.as_of_offsets, options))
            limits = replace(limits, ending=ends, ending_option=AS_OF_OFFSET)
        return replace(options, offsets=limits)


def state_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, received as `request`."""
    return shared.settings_options(StateRequest, "request", *_options())(function)


def state_run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of runs that go on from where the last one ended, received as `request`."""
    refresh = click.option(
        "--full-refresh",
        is_flag=True,
        help="Read everything again and replace the rows of the partitions that are read, "
        "instead of reading what is new since the last run: also after damage was repaired "
        "that --mode PERMISSIVE had skipped.",
    )
    return shared.settings_options(StateRequest, "request", *_options(), refresh)(function)


def _options() -> tuple[Decorator, ...]:
    return (
        source_option_group,
        shared.as_of_option("The state before the first record of each partition that is as late"),
        shared.max_future_option(
            "A record whose time is further ahead of this machine's clock than this, or of most of "
            "the batches that follow it, does not end the state at a time: it is part of it, and "
            "a finding names it."
        ),
        shared.as_of_offset_option(
            "The state before this offset, -1 for the end; repeatable, once for each partition "
            "that is read, or OFFSET alone where that is one."
        ),
        click.option(
            "--keep-tombstones",
            is_flag=True,
            help="Keep a row of each deleted key, with the offset and the time of the delete.",
        ),
    )


def _by_partition(
    given: Sequence[PartitionOffset], options: ReadOptions
) -> dict[TopicPartition, int]:
    if all(each.topic_partition is not None for each in given):
        return refuse_repeated(
            AS_OF_OFFSET, [(each.topic_partition or ("", 0), each.offset) for each in given]
        )
    partitions = partitions_read(options)
    if len(given) > 1 or len(partitions) != 1:
        allowed = f"TOPIC-PARTITION=OFFSET for each of {partition_names(partitions)}"
        raise OptionError(AS_OF_OFFSET, " ".join(str(each.offset) for each in given), allowed)
    return {partitions[0]: given[0].offset}
