"""The options that say which topics to read, and which of their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from kafkalog.errors import RefusedOptionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import OffsetRequest
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.option_values import chosen
from kafkalog.views.options.options import Isolation, Mode, ReadOptions
from kafkalog.views.options.topics import TopicChoice, given_topics


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
        shared.isolation_level_option(
            "read_committed leaves out aborted transactions and stops where the first open one "
            "begins.",
            Isolation.READ_COMMITTED,
        ),
        shared.topic_pattern_option(),
        shared.topic_option(
            "Only this topic; repeatable. '*' is all, internal ones included; without --topic all "
            "but those are read."
        ),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """The options of `source_option_group`."""

    topics: tuple[str, ...]
    topic_pattern: str | None
    isolation_level: str
    stop_at: str

    @property
    def choice(self) -> TopicChoice:
        """The topics that are read. Raises OptionError for what does not choose any."""
        return given_topics(self.topics or None, self.topic_pattern)

    def of_records(self, inputs: Sequence[str], mode: str) -> ReadOptions:
        """Return the options of a read of view `records`. Raises OptionError for a choice that does
        not exist, which can come from Python alone."""
        damage = chosen("mode", Mode, mode)
        return ReadOptions(
            tuple(inputs),
            topics=self.choice,
            offsets=OffsetRequest(end_rule=chosen("stopAt", EndRule, self.stop_at)),
            mode=damage,
            fails_on_deleted=damage is Mode.FAILFAST,
            isolation=chosen("isolationLevel", Isolation, self.isolation_level),
        )


def partitions_read(options: ReadOptions) -> list[TopicPartition]:
    """Return the partitions that these options read, in order."""
    from kafkalog.inspection.metadata.current_topics import find_logs

    logs = options.topics.chosen(find_logs(options.paths, strict=False))
    return sorted({log.topic_partition for log in logs if log.topic_partition is not None})


def refuse_repeated(
    option: str, given: Sequence[tuple[TopicPartition, int]]
) -> dict[TopicPartition, int]:
    """Return the values by partition. Raises OptionError for a partition that is named twice."""
    found = dict(given)
    if len(found) != len(given):
        raise RefusedOptionError(
            option, f"{len(given)} values for {partition_names(found)}: give one for each"
        )
    return found


def partition_names(partitions: Sequence[TopicPartition] | Mapping[TopicPartition, int]) -> str:
    """Return the names of partitions, for an error."""
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions) or "none"
