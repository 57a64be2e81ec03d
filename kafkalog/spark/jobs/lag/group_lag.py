"""The lag of all groups in two steps: a task reads partitions of `__consumer_offsets` and returns
the commits that count; then a task has the commits about some logs and makes rows of the table.

Between the steps rows are bytes of Arrow, which the JVM does not look into.
Reasons: docs/decisions/0034 and 0045.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.columns.arrays import fixed_width, of_values
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.inspection.groups.cluster_facts import ClusterFacts
from kafkalog.inspection.groups.placed_commits import of_placed_schema
from kafkalog.inspection.lag.chosen_rows import (
    ChosenNames,
    FoundNames,
    all_names,
    group_count,
    group_digests,
)
from kafkalog.inspection.lag.lag_table import (
    TABLE,
    KnownTopics,
    LagQuestion,
    LagSummary,
    LogPlace,
    by_log,
    lag_table,
    summed,
)
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.lake.file_schemas import file_metadata
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.table_writer import TableWriter, removed_on_error
from kafkalog.lake.written_file import OnReport, Report, WrittenFile
from kafkalog.questions.group_parts import GroupsPart, RowsSummary, confirmed_clusters, placed_part
from kafkalog.spark.kept_rows import KeptRows
from kafkalog.spark.lake.task_groups import RESULT, in_places, in_tasks, pickled, results
from kafkalog.spark.session import parallelism
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.read_plan import TaskSize, packed
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.reading.work_log import READ, reported_work

# Which bucket of logs rows are about, and the rows as a stream of Arrow; in bucket _SUMMARY what a
# task knows of its rows, pickled.
_ROWS = "bucket int, data binary"
_SUMMARY = -1
_ROWS_PER_BATCH = 65_536
# A commit takes 80 bytes of `__consumer_offsets` at least: a bucket has 400,000 rows at most, fewer
# where that keeps all cores busy.
_BYTES_PER_BUCKET, _LEAST_BYTES = 32 * 1024 * 1024, 4 * 1024 * 1024
# Of logs, of which a task reads headers; to so many buckets each task can pass rows on.
_LOG_BYTES_PER_BUCKET, _MOST_BUCKETS = 1024 * 1024 * 1024, 4096

_Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class PlacedRows:
    """Commits as _ROWS, kept by Spark, the number of their buckets, and what is known of them."""

    rows: DataFrame
    buckets: int
    summaries: Sequence[RowsSummary]

    @property
    def groups(self) -> int:
        """How many groups have rows."""
        return group_count(b"".join(each.digests for each in self.summaries))

    @property
    def names(self) -> FoundNames:
        """Which of the given names rows have."""
        return all_names(each.names for each in self.summaries)

    def confirmed(self) -> frozenset[str | None]:
        """Return the clusters of which the number of partitions of `__consumer_offsets`
        `is_confirmed`."""
        return confirmed_clusters(self.summaries)


def placed_rows(
    spark: SparkSession,
    options: ReadOptions,
    parts: Sequence[GroupsPart],
    facts: ClusterFacts,
    *,
    log_bytes: int,
    at_ms: int | None,
    chosen: ChosenNames,
    in_zookeeper: DataFrame | None,
) -> PlacedRows:
    """Return the commits of groups, now or at a past time, read by tasks that each have partitions
    of `__consumer_offsets`; `in_zookeeper` are those of groups that commit to ZooKeeper, and
    `log_bytes` the size of all logs whose lag is counted."""
    names = facts.topic_names()
    known = [facts.of_partition(part.cluster_id, part.partition) for part in parts]
    tasks = parallelism(spark)
    buckets = _bucket_count(sum(part.size for part in parts), log_bytes, tasks)

    def place(numbered: Sequence[_NumberedPart]) -> _Batches:
        use_file_access(options.file_access)
        waiting: list[pa.Table] = []
        with reported_work(READ, {"reads": str(len(numbered))}):
            for part, number in numbered:
                rows, summary = placed_part(
                    *(part, options, at_ms), topic_names=names, facts=known[number], chosen=chosen
                )
                yield _summary(summary)
                waiting.append(rows)
                if sum(map(len, waiting)) >= _ROWS_PER_BATCH:
                    yield from _divided(pa.concat_tables(waiting), buckets)
                    waiting.clear()
        if waiting:
            yield from _divided(pa.concat_tables(waiting), buckets)

    def place_given(batches: _Batches) -> _Batches:
        for batch in batches:
            rows = chosen.rows(of_placed_schema(pa.Table.from_batches([batch])))
            yield _summary(RowsSummary(None, 0, 0, group_digests(rows), chosen.found_in(rows)))
            yield from _divided(rows, buckets)

    numbered = [_NumberedPart(part, number) for number, part in enumerate(parts)]
    groups = packed(numbered, TaskSize(options.max_partition_bytes, cores=tasks))
    rows = in_tasks(spark, groups, place, _ROWS)
    if in_zookeeper is not None:
        rows = rows.unionAll(in_zookeeper.mapInArrow(place_given, _ROWS))
    kept = rows.persist()
    return PlacedRows(kept, buckets, results(_summaries(kept)))


class LagRows:
    """The rows of table `consumer_lag`, which tasks make that each open the logs of a bucket.
    `summary` has `show` of those with most to read, once the rows are made."""

    def __init__(
        self,
        placed: PlacedRows,
        logs: Sequence[PartitionLog],
        facts: ClusterFacts,
        question: LagQuestion,
        show: int,
    ) -> None:
        self.summary = summed([], show)
        self._placed, self._question, self._show = placed, question, show
        self._topics = KnownTopics(facts.topics_by_name(), placed.confirmed())
        places: list[dict[tuple[str, int], LogPlace]] = [{} for _ in range(placed.buckets)]
        for log in best_logs(logs):
            if log.topic is not None and log.partition is not None:
                key = log.topic, log.partition
                place = LogPlace(log.path, log.log_dir.broker_id)
                places[_bucket(key, placed.buckets)][key] = place
        # A task unpickles those of its own bucket.
        self._places = [pickle.dumps(each) for each in places]

    def rows(self) -> KeptRows:
        """Return the rows, which are made now and kept by Spark."""
        make, show = self._making(), self._show

        def pack(batches: _Batches) -> _Batches:
            for bucket, rows in make(batches):
                yield _row(bucket, _streamed(rows))
                yield _summary(LagSummary.of(rows, show))

        def unpack(batches: _Batches) -> _Batches:
            for batch in batches:
                for data in batch.column(0):
                    yield from pa.ipc.open_stream(data.as_buffer())

        kept = self._of_buckets().mapInArrow(pack, _ROWS).persist()
        self.summary = summed(results(_summaries(kept)), show)
        packed_rows = kept.where(F.col("bucket") != _SUMMARY).select("data")
        few_files = packed_rows.coalesce(parallelism(kept.sparkSession))
        schema = from_arrow_schema(arrow_schema(TABLE))
        return KeptRows(kept.sparkSession, schema, few_files.mapInArrow(unpack, schema))

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]:
        """Run the tasks, which write the rows to files and report these; return the files."""
        make, show = self._making(), self._show

        def write(batches: _Batches) -> _Batches:
            found: list[LagSummary] = []
            with removed_on_error(TableWriter(output)) as writer:
                for _, rows in make(batches):
                    found.append(LagSummary.of(rows, show))
                    ordered, runs = by_log(rows)
                    described = ordered.replace_schema_metadata(file_metadata(TABLE))
                    for key, begin, end in runs:
                        for batch in described.slice(begin, end - begin).to_batches():
                            writer.write(batch, key)
                files = writer.close()
            report(Report(0, tuple(files)))
            yield pickled((files, summed(found, show)))

        done = results(self._of_buckets().mapInArrow(write, RESULT))
        self.summary = summed([summary for _, summary in done], show)
        return [file for files, _ in done for file in files]

    def _of_buckets(self) -> DataFrame:
        """Return placed commits, each in the partition of its bucket."""
        rows = self._placed.rows.where(F.col("bucket") != _SUMMARY)
        return in_places(rows, self._placed.buckets, "bucket")

    def _making(self) -> Callable[[_Batches], Iterator[tuple[int, pa.Table]]]:
        """Return a function that makes the rows of the buckets of a task."""
        topics, question, places = self._topics, self._question, self._places

        def make(batches: _Batches) -> Iterator[tuple[int, pa.Table]]:
            found: dict[int, list[pa.Table]] = defaultdict(list)
            for batch in batches:
                for bucket, data in zip(*batch.columns, strict=True):
                    found[bucket.as_py()].append(pa.ipc.open_stream(data.as_buffer()).read_all())
            for bucket, tables in found.items():
                own = pickle.loads(places[bucket])
                yield bucket, lag_table(pa.concat_tables(tables), own, topics, question)

        return make


class _NumberedPart(NamedTuple):
    part: GroupsPart
    number: int

    @property
    def size(self) -> int:
        return self.part.size


def _bucket_count(commit_bytes: int, log_bytes: int, cores: int) -> int:
    for_commits = max(
        commit_bytes // _BYTES_PER_BUCKET, min(2 * cores, commit_bytes // _LEAST_BYTES), 1
    )
    return max(for_commits, min(for_commits + log_bytes // _LOG_BYTES_PER_BUCKET, _MOST_BUCKETS))


def _summaries(rows: DataFrame) -> DataFrame:
    """Return the summaries among rows as `results` takes them."""
    name, _ = RESULT.split()
    return rows.where(F.col("bucket") == _SUMMARY).select(F.col("data").alias(name))


def _divided(rows: pa.Table, buckets: int) -> _Batches:
    """Yield rows by the buckets of their logs."""
    ordered, runs = by_log(rows)
    found: dict[int, list[pa.Table]] = defaultdict(list)
    for key, begin, end in runs:
        found[_bucket(key, buckets)].append(ordered.slice(begin, end - begin))
    for bucket, tables in found.items():
        yield _row(bucket, _streamed(pa.concat_tables(tables)))


def _bucket(log: tuple[str, int], buckets: int) -> int:
    topic, partition = log
    return crc32(f"{topic}-{partition}".encode()) % buckets


def _streamed(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_table(rows.combine_chunks(), max_chunksize=_ROWS_PER_BATCH)
    return sink.getvalue()


def _summary(summary: Any) -> pa.RecordBatch:
    return _row(_SUMMARY, pa.py_buffer(pickle.dumps(summary)))


def _row(bucket: int, data: pa.Buffer) -> pa.RecordBatch:
    columns = (
        fixed_width(np.array([bucket]), pa.int32()),
        of_values([data.to_pybytes()], pa.binary()),
    )
    return pa.RecordBatch.from_arrays(list(columns), names=["bucket", "data"])
