"""What an export has to read, what its tasks do, and the commit of their files.

Rules: docs/ingest.md F530 to F536.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import cast

from kafkalog.errors import DataLossError, KafkaLogError, StatePositionError
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.lake.decoded_columns import NO_COLUMNS, DecodedColumns
from kafkalog.lake.export_task import ExportTask
from kafkalog.lake.layout import RECORDS, TARGET_FILE_BYTES, TableOutput
from kafkalog.lake.table_names import tables_of
from kafkalog.lake.target import Target
from kafkalog.lake.written_file import WrittenFile, rows_by_partition, undecoded_counts
from kafkalog.log_lines import logger
from kafkalog.storage.files.unreadable_input import deleted_paths
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import SpecificOffsets
from kafkalog.storage.reading.read_plan import (
    LEAST_PART_BYTES,
    MOST_TASKS,
    SegmentRead,
    TaskSize,
    packed,
    pieces,
    read_cost,
    task_reads,
)
from kafkalog.storage.reading.relisted_logs import begins_after
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.options.topics import TopicChoice
from kafkalog.views.planning.ingest_positions import (
    IngestPositions,
    IngestRange,
    IngestRun,
    ingest_run,
    ingest_starting_offsets,
)
from kafkalog.views.planning.planning import CommittedReads, planned_groups
from kafkalog.views.planning.state_sources import found_sources
from kafkalog.views.planning.table_positions import StateSource

_logger = logger(__name__)


# The reads of each task.
Groups = Sequence[Sequence[SegmentRead]]
# Gives the columns that decoding adds to the rows of these reads.
Decoding = Callable[[ReadOptions, Groups], DecodedColumns]


def no_columns(options: ReadOptions, groups: Groups) -> DecodedColumns:
    """Add no column."""
    return NO_COLUMNS


class PartlyCommittedError(KafkaLogError):
    """An export to several tables whose commit failed after others were done."""


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table of an export, what the run adds to it, and where tasks write: `output` is None where
    there is nothing to do."""

    name: str
    target: Target
    run: IngestRun
    output: TableOutput | None


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """An export: each of the `groups` is what one call of `task.written_files` reads. Whoever runs
    the tasks counts in `kept` the values of each topic that may be an erased person's, and that
    nothing decodes."""

    task: ExportTask
    groups: tuple[Sequence[SegmentRead], ...]
    tables: tuple[ExportTable, ...]
    kept: Counter[str] = field(default_factory=Counter)

    def without(self, suppression: Suppression | None) -> ExportPlan:
        """Return a plan that leaves the records of erased persons out."""
        return replace(self, task=replace(self.task, suppression=suppression))

    def ended(self, runs: Iterable[IngestRun]) -> tuple[IngestRun, ...]:
        """Return the committed runs with what was kept of erased persons. Rule: F1124."""
        return tuple(replace(run, kept=self.kept.total()) for run in runs)

    def commit(self, files: Iterable[WrittenFile]) -> tuple[IngestRun, ...]:
        """Commit the files of each table; return the runs, with the number of rows of each range.

        Raises what a target's `commit` raises: then the tables that are not committed are as they
        were, and PartlyCommittedError says which are. Raises DataLossError for a segment that is
        missing and that retention has not deleted: no table is changed, and the next run reads it.
        """
        of_table = _by_table(files)
        gaps = self._deleted(of_table)
        runs: list[IngestRun] = []
        committed: list[str] = []
        for number, table in enumerate(self.tables):
            own = of_table[table.name]
            run = table.run.with_gaps(gaps)
            runs.append(run.with_rows(rows_by_partition(own), undecoded_counts(own)))
            if table.output is None:
                continue
            try:
                table.target.commit(own, runs[-1])
            except BaseException as error:
                is_unchanged = isinstance(error, StatePositionError)
                # After any other error the table can have the files: `commit` alone knows.
                for other in self.tables[number if is_unchanged else number + 1 :]:
                    _discard(other, of_table[other.name])
                if committed and isinstance(error, (KafkaLogError, OSError)):
                    raise _partly(error, table.name, committed) from error
                raise
            committed.append(table.name)
        return tuple(runs)

    def _deleted(
        self, of_table: Mapping[str, Sequence[WrittenFile]]
    ) -> dict[TopicPartition, list[OffsetSpan]]:
        """Return the offsets of segments that were deleted before a task read them."""
        deleted = deleted_paths()
        found: defaultdict[TopicPartition, list[OffsetSpan]] = defaultdict(list)
        for read in chain.from_iterable(self.groups) if deleted else ():
            if read.path in deleted:
                if not begins_after(read):
                    for table in self.tables:
                        _discard(table, of_table.get(table.name, ()))
                    raise DataLossError(
                        f"{read.path} is missing since the run began, and its log does not begin "
                        "after it: no table was changed; run this again when it is back"
                    )
                start = max(read.first_offset, read.base_offset or 0)
                end = min(read.end_offset, read.next_base_offset or LARGEST_OFFSET)
                found[read.topic or "", read.partition or 0].append(OffsetSpan(start, end))
        return found

    def discard(self, files: Iterable[WrittenFile]) -> None:
        """Remove files that are not committed."""
        of_table = _by_table(files)
        for table in self.tables:
            _discard(table, of_table[table.name])


def plan_export(
    options: ReadOptions,
    request: IngestRequest,
    target_of: Callable[[str], Target],
    *,
    table_per_topic: bool = False,
    target_file_bytes: int = TARGET_FILE_BYTES,
    processes: int = 1,
    found: Sequence[StateSource] | None = None,
    decoded_columns: Decoding = no_columns,
) -> ExportPlan:
    """Plan what is new to the tables, and create those that do not exist.

    `target_of` gives the table of a name: `ingested_records`, or the names of `tables_of` with
    `table_per_topic`. `processes` is how many tasks run at once, `found` what `found_sources` gives
    where it has been called just now. `decoded_columns` is called once, before a table is created.
    Raises StatePositionError and OptionError where what is found
    does not fit a table: then no table is changed.
    """
    sources = found_sources(options) if found is None else found
    of_table: dict[str, list[StateSource]] = defaultdict(list)
    tables = tables_of(source.topic for source in sources) if table_per_topic else {}
    for source in sources:
        of_table[tables.get(source.topic, RECORDS)].append(source)
    targets = {name: target_of(name) for name in of_table}
    runs = {
        name: requested_run(targets[name].recorded(), own, request, name if tables else None)
        for name, own in of_table.items()
    }
    written = [each for run in runs.values() for each in run.written]
    tasks = _tasks(written, target_file_bytes, processes)
    task_options = _task_options(options, written, tasks)
    walked = {source.key: source.committed for source in sources}
    # As they were listed: a partition that is deleted meanwhile is a gap (F951).
    logs = [log for source in sources for log in source.logs]
    groups = _groups(task_options, logs, walked, tasks) if written else ()
    has_work = any(run.has_work for run in runs.values())
    decoded = decoded_columns(task_options, groups) if has_work else NO_COLUMNS
    planned = tuple(
        ExportTable(name, targets[name], run, _prepared(name, targets[name], run, decoded))
        for name, run in runs.items()
    )
    outputs = {
        each.topic: table.output
        for table in planned
        for each in table.run.written
        if table.output is not None
    }
    task = ExportTask(task_options, outputs, decoded.fields)
    return ExportPlan(task, groups, planned)


def requested_run(
    recorded: IngestPositions | None,
    sources: Sequence[StateSource],
    request: IngestRequest,
    table: str | None = None,
) -> IngestRun:
    """Return what a run has to read of the sources for a table that has `recorded`.

    `table` is the name of a table that is one topic's. Raises StatePositionError and OptionError
    where the sources do not fit the table.
    """
    recorded = recorded or IngestPositions(request.isolation_level)
    if recorded.isolation_level != request.isolation_level:
        raise StatePositionError(
            f"the table was written with --isolation-level {recorded.isolation_level}, and this "
            f"run has {request.isolation_level}: give the same, or another --output-dir"
        )
    others = {topic for topic, _ in recorded.next_offsets} - {each.topic for each in sources}
    if table is not None and others:
        raise StatePositionError(
            f"table {table} holds topic {', '.join(sorted(others))}, and this run would add "
            f"{sources[0].topic} to it: give another --output-dir"
        )
    return ingest_run(
        recorded,
        sources,
        is_bounded=request.is_bounded,
        full_refresh=request.full_refresh,
        token=uuid.uuid4().hex,
    )


def starting_offsets(runs: Iterable[IngestRun]) -> str:
    """Return where the tables end, as startingOffsets of Spark's Kafka source."""
    topics: dict[str, dict[str, int]] = {}
    for run in runs:
        topics |= json.loads(ingest_starting_offsets(run.positions, run.ranges))
    return json.dumps(dict(sorted(topics.items())))


def _tasks(ranges: Sequence[IngestRange], target_file_bytes: int, processes: int) -> int:
    """Return how many tasks read the ranges: each about a file, and as many for each process, but
    none for a few MiB."""
    size = sum(each.segment_bytes for each in ranges)
    files = min(-(-size // target_file_bytes), MOST_TASKS)
    return max(min(-(-files // processes) * processes, size // LEAST_PART_BYTES), 1)


def _task_options(options: ReadOptions, ranges: Sequence[IngestRange], tasks: int) -> ReadOptions:
    """Return the options that read exactly these ranges, no part larger than a task."""
    starts = {each.key: each.from_offset for each in ranges}
    ends = {each.key: each.until_offset for each in ranges}
    size = sum(each.segment_bytes for each in ranges)
    return replace(
        options,
        topics=TopicChoice(None, None, frozenset(starts)),
        offsets=replace(
            options.offsets,
            starting=SpecificOffsets(starts),
            ending=SpecificOffsets(ends),
            end_rule=EndRule.LOG_END,
        ),
        max_partition_bytes=max(-(-size // tasks), 1),
    )


def _groups(
    options: ReadOptions, logs: list[PartitionLog], walked: CommittedReads, tasks: int
) -> tuple[Sequence[SegmentRead], ...]:
    """Return the reads of each task, one topic after another, as logs are found: a task writes the
    files of few."""
    groups = cast("list[Sequence[SegmentRead]]", planned_groups(options, logs, walked))
    reads = [piece for group in groups for piece in pieces(group)]
    cost = sum(read_cost(read) for read in reads)
    return tuple(map(task_reads, packed(reads, TaskSize(-(-cost // tasks), cores=1))))


def _prepared(
    name: str, target: Target, run: IngestRun, decoded: DecodedColumns
) -> TableOutput | None:
    return replace(target.prepare(run, decoded), table=name) if run.has_work else None


def _by_table(files: Iterable[WrittenFile]) -> defaultdict[str, list[WrittenFile]]:
    found: defaultdict[str, list[WrittenFile]] = defaultdict(list)
    for file in files:
        found[file.table].append(file)
    return found


def _discard(table: ExportTable, files: Sequence[WrittenFile]) -> None:
    if not files:
        return
    try:
        table.target.discard(files)
    except (KafkaLogError, OSError) as error:
        _logger.warning("table %s: files stay that no commit names: %s", table.name, error)


def _partly(error: Exception, failed: str, committed: Sequence[str]) -> PartlyCommittedError:
    return PartlyCommittedError(
        f"table {failed}: {error}; committed before it: {', '.join(committed)}; "
        "run it again to write the others"
    )
