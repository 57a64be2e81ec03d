"""The rows of a view as Arrow, read by processes of this machine: only the columns, partitions,
offsets and times that are requested."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from kafkalog.lake.decoding.payload_arrays import PayloadDecoder
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.inspection.metadata.current_topics import without_former
from kafkalog.log_lines import warn_once
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.log_dir.other_entries import absent_line, absent_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.offset_ranges import (
    SpecificOffsets,
    SpecificTimestamps,
    TimeRule,
    TimestampRange,
)
from kafkalog.tables.filters import Filter
from kafkalog.views.options.options import (
    ISOLATED_VIEWS,
    VIEW_TABLES,
    ReadOptions,
    View,
    chosen_columns,
    view_columns,
)
from kafkalog.views.options.topics import ALL_TOPICS, TopicChoice
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.views.planning.planning import Read, chosen_logs, logs_of_paths, planned_groups
from kafkalog.views.view_reading import read_view

# Views whose rows are about the log that they are read from, and about no other one.
_OF_LOGS = (
    *ISOLATED_VIEWS,
    *(View.BATCHES, View.BYTE_RANGES, View.FAULTS, View.SEGMENTS, View.REPLICAS),
    *(View.TRANSACTIONS, View.STABLE_OFFSETS, View.PRODUCER_SEQUENCES),
)
VALUE = "value"
EVERY_TOPIC = TopicChoice(subscribe=(ALL_TOPICS,))
_PER_PARTITION = SpecificOffsets, SpecificTimestamps


@dataclass(frozen=True, slots=True)
class ViewSource:
    """A view of the logs under paths, with the source's options; how many processes read, None for
    all cores."""

    options: ReadOptions
    processes: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that a read gives. Raises OptionError for one that the view does not have."""
        return arrow_schema(VIEW_TABLES[self.options.view], view_columns(self.options))

    def refuse_early(self) -> None:
        """Raise what options and names of files show: OptionError, LogDirError."""
        view_columns(self.options)
        use_file_access(self.options.file_access)
        found = logs_of_paths(self.options)
        chosen_logs(self.options, found)
        self._logs(found)

    @property
    def whole_schema(self) -> pa.Schema:
        """All columns of the view."""
        return arrow_schema(VIEW_TABLES[self.options.view])

    def batches(
        self,
        columns: Sequence[str],
        given: Filter,
        decoded: PayloadDecoder | None = None,
        *,
        processes: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the rows that pass the filter, in the order of the logs, with the
        values `decoded` if that is given. Processes start now, in the thread that calls."""
        use_file_access(self.options.file_access)
        options = self.options.by_time_rule(TimeRule(time.time_ns() // 1_000_000))
        found = logs_of_paths(options)
        # Of other views, a column topic is not of the log that they are read from.
        of_logs = given if options.view in _OF_LOGS else None
        warn_of_absent(options, found, chosen_logs(options, found), of_logs)
        options, logs = _narrowed(options, self._logs(found), given)
        if not logs:
            return iter(())
        groups = planned_groups(options, logs)
        added = () if decoded is None else decoded.types
        wanted = dict.fromkeys((*columns, *given.columns, *([VALUE] if added else [])))
        read_columns = tuple(name for name in wanted if name not in added)

        def read(group: Sequence[Read]) -> Iterator[pa.RecordBatch]:
            for batch in read_view(group, options, read_columns):
                rows = batch if decoded is None else decoded.with_decoded(batch)
                yield from given.rows(rows, columns)

        size = sum(each.size for group in groups for each in group)
        return in_order(read, groups, processes=processes_for(size, processes or self.processes))

    def topics(self) -> list[str]:
        """Return the names of the topics that are read."""
        logs = self._logs(logs_of_paths(self.options))
        return sorted({log.topic for log in logs if log.topic is not None})

    def _logs(self, found: list[PartitionLog]) -> list[PartitionLog]:
        if self.options.topics == EVERY_TOPIC:
            found = without_former(found)
        if self.options.view in _OF_LOGS:
            return chosen_logs(self.options, found)
        return found  # plans go by settings of all logs


def _narrowed(
    options: ReadOptions, logs: list[PartitionLog], given: Filter
) -> tuple[ReadOptions, list[PartitionLog]]:
    """Return what is left to read for rows that pass a filter."""
    limits = options.offsets
    is_fixed = any(isinstance(each, _PER_PARTITION) for each in (limits.starting, limits.ending))
    if options.view not in _OF_LOGS:
        return options, logs
    if not is_fixed:  # such offsets have to name each partition that is read
        logs = given.logs(logs)
        options = replace(options, topics=EVERY_TOPIC)
    if options.view not in ISOLATED_VIEWS:
        return options, logs
    within = given.offsets("offset", logs)
    options = replace(options, offsets=replace(limits, within=within))
    times = given.times("timestamp")
    return replace(options, timestamps=_both(options.timestamps, times)), logs


def _both(one: TimestampRange | None, other: TimestampRange | None) -> TimestampRange | None:
    if one is None or other is None:
        return one or other
    first = max(one.first_ms, other.first_ms)
    return TimestampRange(first, max(first, min(one.end_ms, other.end_ms)))


def table_schema(table: str, columns: tuple[str, ...] | None) -> pa.Schema:
    """Return the columns of a table, or those of option `columns`. Raises OptionError for one that
    the table does not have."""
    whole = arrow_schema(table)
    if columns is None:
        return whole
    return arrow_schema(table, chosen_columns(table, whole.names, columns))


def warn_of_absent(
    options: ReadOptions,
    found: Sequence[PartitionLog],
    chosen: Iterable[PartitionLog],
    given: Filter | None = None,
) -> None:
    """Warn of partitions of the chosen topics that only checkpoints name, of which rows could pass
    the filter if one is given; `found` are all logs."""
    is_about_all = options.topics in (TopicChoice(), EVERY_TOPIC)
    topics = {log.topic for log in chosen}
    for path, absent in absent_partitions(options.paths, found):
        passing = absent if given is None else given.partitions(absent)
        names = [
            f"{topic}-{number}" for topic, number in passing if is_about_all or topic in topics
        ]
        if names:
            warn_once(__name__, absent_line(path, names))
