"""Lag and status of groups at many times, in two steps: tasks read partitions of
`__consumer_offsets` and pass on blocks of commits; then a task has all commits for some logs.

A row is made complete where its log is read, and leaves that task as part of a file. Reasons:
docs/decisions/0046.
"""

from __future__ import annotations

import pickle
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.arrays import fixed_width, of_values
from kafkalog.coordination.groups.group_generations import GroupGenerations
from kafkalog.inspection.lag.history_commits import (
    HISTORY_COLUMNS,
    CommitBlock,
    CommitBlocks,
    commits_by_log,
    place_of,
)
from kafkalog.inspection.lag.lag_history import TABLE, HistoryQuestions, history_rows
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.lake.file_schemas import file_metadata
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.table_writer import TableWriter, removed_on_error
from kafkalog.lake.written_file import WrittenFile
from kafkalog.spark.jobs.lag.history_summary import HistorySummary, ReadSummary, RowsSeen, summed
from kafkalog.spark.jobs.lag.lag_settings import LagHistorySettings, NameFilter
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
from kafkalog.spark.lake.task_groups import RESULT, OnReport, Report, in_tasks, pickled, results
from kafkalog.spark.session import parallelism
from kafkalog.spark.tables import local_rows, spark_schema
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog, segment_sizes
from kafkalog.storage.reading.read_plan import TaskSize, packed
from kafkalog.views.group_parts import GroupsPart, group_parts
from kafkalog.views.local_views import view_options
from kafkalog.views.reading.group_reading import read_group_records
from kafkalog.views.reading.work_log import READ, reported_work

# The number of the task that a row is for, and a block of commits, the places of logs or a summary,
# pickled; all summaries go to one task.
_PASSED_ON = "place int, data binary"
_SUMMARIES = 0
# Of `__consumer_offsets`: a task has 400,000 commits at most, of 80 bytes or more, and a file their
# rows. Fewer where that keeps all cores busy.
_BYTES_PER_TASK, _LEAST_BYTES = 32 * 1024 * 1024, 4 * 1024 * 1024
# Of data, of which a task reads the headers.
_LOG_BYTES_PER_TASK = 1024 * 1024 * 1024

_Batches = Iterator[pa.RecordBatch]
_Places = dict[tuple[str | None, int | None], str]


@dataclass(frozen=True, slots=True)
class HistorySources:
    """What a history is made of: log directories, the logs under them, and views of ZooKeeper's
    files, None without any."""

    paths: Sequence[str]
    logs: Sequence[PartitionLog]
    mode: str
    zookeeper: ZookeeperLag | None = None


class HistoryRows:
    """The rows of table `lag_history`, which tasks have still to make. `summary` sums them up once
    tasks have written them to files, and is empty where these do not."""

    def __init__(
        self, spark: SparkSession, sources: HistorySources, settings: LagHistorySettings
    ) -> None:
        self._spark, self._settings = spark, settings
        options = view_options(sources.paths, "offset_commits", mode=sources.mode)
        self._options = options
        cluster_id = None if sources.zookeeper is None else sources.zookeeper.cluster_id
        self._parts = group_parts(options, sources.logs, cluster_id)
        self._places = _task_count(sources, parallelism(spark))
        self._sources = sources
        self.summary = HistorySummary()

    @property
    def frame(self) -> DataFrame:
        """Return the rows."""
        make = self._rows()

        def rows(batches: _Batches) -> _Batches:
            for _, batch in make(_Received.of(batches)):
                yield batch

        return self._blocks().mapInArrow(rows, spark_schema(TABLE))

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]:
        """Run the tasks, which write the rows to files and report these; return the files."""
        make, chosen, places = self._rows(), self._settings.chosen, self._places

        def write(batches: _Batches) -> _Batches:
            received, seen = _Received.of(batches), RowsSeen(chosen, places)
            with removed_on_error(TableWriter(output)) as writer:
                for key, batch in make(received):
                    writer.write(batch.replace_schema_metadata(file_metadata(TABLE)), key)
                    seen.add(batch)
                files = writer.close()
            report(Report(0, tuple(files)))
            yield pickled((files, seen.summary(received.summaries)))

        done = results(self._blocks().mapInArrow(write, RESULT))
        self.summary = summed([summary for _, summary in done])
        return [file for files, _ in done for file in files]

    def _blocks(self) -> DataFrame:
        """Return blocks of commits and places of logs, each in the partition of its task."""
        until_ms, places = self._settings.moments.until_ms, self._places
        is_chosen, is_group = _selection(self._settings.topics), _selection(self._settings.groups)
        options = self._options
        size = TaskSize(options.max_partition_bytes, cores=parallelism(self._spark))
        groups = packed(self._parts, size)
        tasks = len(groups)

        def read(parts: Sequence[GroupsPart]) -> _Batches:
            use_file_access(options.file_access)
            blocks = CommitBlocks(until_ms, places, is_chosen)
            generations = []
            copies = [copy for part in parts if part.read for copy in part.read.copies]
            with reported_work(READ, {"reads": str(len(parts))}):
                for copy in copies:
                    own = GroupGenerations(is_group)
                    for batch in read_group_records(copy, options, HISTORY_COLUMNS, own.add):
                        yield from _passed_on(blocks.add(batch))
                    generations.append(own)
                reaches = chain.from_iterable(part.reaches() for part in parts)
                summary = ReadSummary.of(reaches, generations, tasks)
            yield from _passed_on(blocks.last())
            yield from _passed_on([(_SUMMARIES, summary)])

        def take(batches: _Batches) -> _Batches:
            blocks = CommitBlocks(until_ms, places, is_chosen)
            for batch in batches:
                yield from _passed_on(blocks.add(batch))
            yield from _passed_on(blocks.last())

        rows = in_tasks(self._spark, groups, read, _PASSED_ON)
        rows = rows.unionAll(self._logs())
        if self._sources.zookeeper is not None:
            # One task, which knows all commits of a group.
            given = self._sources.zookeeper.commits().select(*HISTORY_COLUMNS).coalesce(1)
            rows = rows.unionAll(given.mapInArrow(take, _PASSED_ON))
        return rows.repartitionById(places, "place")

    def _logs(self) -> DataFrame:
        """Return where the logs are, for each task of its own."""
        found: dict[int, _Places] = defaultdict(dict)
        for log in best_logs(self._sources.logs):
            place = place_of(log.topic, log.partition, self._places)
            found[place][log.topic, log.partition] = log.path
        rows = [(place, pickle.dumps(logs)) for place, logs in found.items()]
        return local_rows(self._spark, rows, _PASSED_ON)

    def _rows(self) -> Callable[[_Received], Iterator[tuple[tuple[str, int], pa.RecordBatch]]]:
        """Return a function that makes the rows of a task, given those of `_blocks`."""
        settings, file_access = self._settings, self._options.file_access
        questions = HistoryQuestions(
            *(settings.moments, settings.burrow, settings.lag, settings.now_ms),
            settings.read_committed,
            _selection(settings.groups),
        )

        def make(received: _Received) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
            use_file_access(file_access)
            for commits in commits_by_log(received.blocks):
                key = commits.topic, commits.partition
                for batch in history_rows(commits, received.logs.get(key), questions):
                    yield key, batch

        return make


def _task_count(sources: HistorySources, cores: int) -> int:
    """Return in how many tasks logs are read."""
    sizes = [(log.topic, sum(segment_sizes(log.segments))) for log in sources.logs]
    of_commits = sum(size for topic, size in sizes if topic == CONSUMER_OFFSETS)
    of_all = sum(size for _, size in sizes)
    for_cores = min(2 * cores, of_commits // _LEAST_BYTES)
    for_logs = (of_all - of_commits) // _LOG_BYTES_PER_TASK
    return 1 + max(of_commits // _BYTES_PER_TASK, for_cores) + for_logs


def _selection(names: NameFilter) -> Callable[[str], bool] | None:
    """Return a function that says whether a name is selected, None where all are. What it refers to
    needs no Spark: workers import little."""
    if not names.names and names.pattern is None:
        return None
    given, pattern = frozenset(names.names), names.pattern

    def is_selected(name: str) -> bool:
        return name in given or (pattern is not None and re.search(pattern, name) is not None)

    return is_selected


def _passed_on(found: Iterable[tuple[int, CommitBlock | ReadSummary]]) -> _Batches:
    for place, each in found:
        yield pa.RecordBatch.from_arrays(
            [
                fixed_width(np.array([place]), pa.int32()),
                of_values([pickle.dumps(each)], pa.binary()),
            ],
            names=["place", "data"],
        )


class _Received(NamedTuple):
    """What other tasks have passed on to one."""

    blocks: list[CommitBlock]
    logs: _Places
    summaries: list[ReadSummary]

    @classmethod
    def of(cls, batches: _Batches) -> _Received:
        received = cls([], {}, [])
        for batch in batches:
            for data in batch.column(1):
                found = pickle.loads(data.as_buffer())
                if isinstance(found, CommitBlock):
                    received.blocks.append(found)
                elif isinstance(found, ReadSummary):
                    received.summaries.append(found)
                else:
                    received.logs.update(found)
        return received
