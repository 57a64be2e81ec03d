"""The options that say what to add to a table of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from kafkalog.errors import ConflictingOptionsError, RefusedOptionError
from kafkalog.storage.files.output_files import refuse_unwritable_file
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.storage.reading.offset_ranges import (
    LATEST,
    MAX_FUTURE_MS,
    NoMatch,
    OffsetRequest,
    SpecificOffsets,
    TimeRule,
)
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.contradictions import refuse_inverted_times
from kafkalog.views.options.offset_options import limited_by_time
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.options.parameter_types import GivenOffsets, GivenPath
from kafkalog.views.options.source_options import (
    SourceRequest,
    partitions_read,
    refuse_repeated,
    source_option_group,
)

_OFFSETS, _FROM, _UNTIL = "--offsets", "--from-time", "--until-time"


@dataclass(frozen=True, slots=True)
class IngestRequest(SourceRequest):
    """The options, as they were given."""

    from_ms: int | None
    until_ms: int | None
    offsets: tuple[GivenOffsets, ...]
    full_refresh: bool
    starting_offsets_out: str | None
    max_future_ms: int = MAX_FUTURE_MS
    suppress: str | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether the options name a start."""
        return self.from_ms is not None or any(each.first is not None for each in self.offsets)

    def options(
        self, inputs: Sequence[str], mode: str, output_dir: str | None, *, now_ms: int
    ) -> ReadOptions:
        """Return the options of view `records` for the tables in a directory. Raises
        OptionError."""
        self._refuse_contradictions()
        if self.starting_offsets_out is not None:
            refuse_inside("--starting-offsets-out", self.starting_offsets_out, inputs)
            refuse_unwritable_file("--starting-offsets-out", self.starting_offsets_out, output_dir)
        options = self.of_records(inputs, mode)
        limits = replace(
            self._limited(options),
            no_match=NoMatch.LATEST,
            time_rule=TimeRule(now_ms, self.max_future_ms, passes_over=True),
        )
        # In every mode: tasks on other machines do not say what was deleted before they read it.
        return replace(options, offsets=limits, fails_on_deleted=True)

    def _refuse_contradictions(self) -> None:
        if self.full_refresh and self.is_bounded:
            raise ConflictingOptionsError("--full-refresh", "a start")
        refuse_inverted_times(self.from_ms, self.until_ms)
        for option, given_ms, bounds in (
            (_FROM, self.from_ms, [each.first for each in self.offsets]),
            (_UNTIL, self.until_ms, [each.end for each in self.offsets]),
        ):
            if given_ms is not None and any(bound is not None for bound in bounds):
                raise ConflictingOptionsError(_OFFSETS, option)

    def _limited(self, options: ReadOptions) -> OffsetRequest:
        """Return the request of the options with the times and offsets that were given."""
        ranges = self.offsets
        if len(ranges) == 1 and ranges[0].topic_partition is None:
            ranges = tuple(
                ranges[0]._replace(topic_partition=each) for each in partitions_read(options)
            )
        placed = [(each.topic_partition, each) for each in ranges if each.topic_partition]
        if len(placed) < len(ranges):
            raise RefusedOptionError(
                _OFFSETS, "of several ranges each needs its partition: TOPIC-PARTITION=FROM:UNTIL"
            )
        firsts = [(key, each.first) for key, each in placed if each.first is not None]
        if firsts and len(firsts) < len(placed):
            raise RefusedOptionError(_OFFSETS, "give FROM for each partition, or for none")
        found = limited_by_time(options.offsets, _FROM, self.from_ms, _UNTIL, self.until_ms)
        if firsts:
            starts = SpecificOffsets(refuse_repeated(_OFFSETS, firsts))
            found = replace(found, starting=starts, starting_option=_OFFSETS)
        ends = [(key, int(LATEST) if each.end is None else each.end) for key, each in placed]
        has_ends = not firsts or any(each.end is not None for _, each in placed)
        # Without any bound they still name the partitions, which have to be those that are read.
        if placed and has_ends and self.until_ms is None:
            limits = SpecificOffsets(refuse_repeated(_OFFSETS, ends))
            found = replace(found, ending=limits, ending_option=_OFFSETS)
        return found


def ingest_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of an IngestRequest, received as `request`."""
    return shared.settings_options(
        IngestRequest,
        "request",
        source_option_group,
        shared.from_time_option(
            "Read from the first record of each partition that is as late, and replace what the "
            "table has from there on; without a start, read from where the table ends"
        ),
        shared.until_time_option(
            "Read up to the first record of each partition that is as late, which is not included, "
            "such as the end of a schedule's interval"
        ),
        shared.max_future_option(
            "A record whose time is further ahead of this machine's clock than this, or of most of "
            "the batches that follow it, does not begin or end a range of times: it is read, and "
            "a finding names it."
        ),
        shared.offsets_option(
            "Read these offsets, UNTIL not included; repeatable, once for each partition that is "
            "read, or alone for all of them. Without FROM read from where the table ends, without "
            "UNTIL to the end of the log."
        ),
        click.option(
            "--full-refresh",
            is_flag=True,
            help="Rewrite the partitions that are read, from their first records on.",
        ),
        click.option(
            "--starting-offsets-out",
            metavar="FILE",
            type=GivenPath(),
            help="Write where the table ends as startingOffsets of Spark's Kafka source, which "
            "continues there with the live cluster.",
        ),
        shared.suppress_option(
            "Leave out the records of erased persons: FILE is that of kafkalog erase "
            "--identifiers. Keys and values are decoded by --schema-registry, --schemas-topic or "
            "_schemas in PATHs."
        ),
    )(function)
