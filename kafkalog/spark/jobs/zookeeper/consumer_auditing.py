"""The audit of old consumers as a DataFrame: one task reads a server's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.zookeeper.cluster_ids import is_own
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster, members_by_cluster
from kafkalog.errors import LogDirError
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.inspection.zookeeper.consumer_audit_rows import (
    AUDIT_TABLES,
    CONSUMER_FINDINGS,
    AuditRow,
    audit_rows,
)
from kafkalog.log_lines import logger
from kafkalog.spark.jobs.lag.lag_reading import log_places, with_lag
from kafkalog.spark.tables import spark_schema
from kafkalog.storage.log_dir.log_dir_names import LogDirNames, log_dir_names
from kafkalog.storage.log_dir.read_directories import refuse_tables
from kafkalog.views.options.options import Mode
from kafkalog.views.reading.zookeeper_damage import reported_damage
from kafkalog.zookeeper.data_dir import DataDir

_logger = logger(__name__)

# The first columns of all rows: the input, the transaction that it is as of, the cluster.
PLACE_COLUMNS = ("input_path", "zxid", "made", "cluster_id", "chroot")
# A finding says this too, until it is known which clusters there are.
OTHER_CLUSTER_ID = "other_cluster_id"
# What an audit takes from an account of the lag.
_LOG_FACTS = ("log_start_offset", "high_watermark", "ahead_of_log", "below_log_start")
_ROWS = 10_000
_ADVICE = "mode PERMISSIVE reads on with what is sound"


def consumer_audit(
    spark: SparkSession, data_dirs: Sequence[DataDir], log_dirs: Sequence[LogDirNames], mode: Mode
) -> DataFrame:
    """Return PLACE_COLUMNS and a struct for each of AUDIT_TABLES: each row has one of the structs.
    One row for each cluster has an empty struct of findings."""
    numbers = spark.range(len(data_dirs), numPartitions=max(len(data_dirs), 1))
    return numbers.mapInArrow(_auditing(tuple(data_dirs), tuple(log_dirs), mode), _schema())


def with_logs(
    ownerships: DataFrame,
    log_dirs: Sequence[LogDirNames],
    clusters: Sequence[EnsembleCluster],
    now_ms: int,
) -> DataFrame:
    """Return rows of partition_ownership with _LOG_FACTS from the logs of their own clusters, null
    where a log is not there. Partitions of Kafka 0.7, whose offsets are positions, are not
    compared."""
    is_counted = F.col("broker_id").isNull() & (F.col("committed_offset") >= 0)
    marked = ownerships.withColumn("is_counted", F.coalesce(is_counted, F.lit(False)))
    others, counted = marked, list[DataFrame]()
    for cluster_id, places in _places(ownerships.sparkSession, log_dirs, clusters):
        is_own = F.col("cluster_id").eqNullSafe(F.lit(cluster_id)) & F.col("is_counted")
        counted.append(with_lag(marked.where(is_own), places, read_committed=False, now_ms=now_ms))
        others = others.where(~is_own)
    nothing = {name: F.lit(None).cast("long") for name in _LOG_FACTS}
    return reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True),
        counted,
        others.withColumns(nothing),
    )


def given_log_dirs(paths: Sequence[str], output_dir: str) -> list[LogDirNames]:
    """Return what is in the log directories. Raises LogDirError for a path that is not a directory,
    OptionError for an output in one."""
    for path in paths:
        if not log_dir_names([path]):
            raise LogDirError(f"{path}: no such directory on this machine")
    found = log_dir_names(paths)
    refuse_tables(output_dir, [log_dir.path for log_dir in found])
    return found


def members_words(clusters: Sequence[Sequence[EnsembleCluster]]) -> list[str]:
    """Say where each cluster is, and which of its members is read: the first, which is the
    newest."""
    words = []
    for cluster in clusters:
        for member in cluster:
            place = f"cluster {member.cluster_id or 'without an id'} at {member.chroot or '/'}"
            note = "" if member is cluster[0] else ", not the newest"
            words.append(f"{place}, as of zxid {member.zxid:#x}: {member.input_path}{note}")
    return words


def _places(
    spark: SparkSession, log_dirs: Sequence[LogDirNames], clusters: Sequence[EnsembleCluster]
) -> Iterator[tuple[str | None, DataFrame]]:
    """Yield the ids of the clusters that have log directories, and their logs. Where there is but
    one cluster, it has those as well that name none."""
    is_only = len(members_by_cluster(clusters)) == 1
    for cluster_id in sorted({each.cluster_id for each in clusters}, key=str):
        own = [
            log_dir.path
            for log_dir in log_dirs
            if is_own(cluster_id, log_dir.cluster_id)
            and (is_only or log_dir.cluster_id is not None)
        ]
        try:
            logs = find_logs(own, strict=False)
        except LogDirError as error:  # copies: which of them counts is unknown
            _logger.warning("offsets are not compared with logs: %s", error)
            continue
        if logs:
            yield cluster_id, log_places(spark, logs)


def _schema() -> StructType:
    schema = StructType(
        [
            StructField("input_path", StringType()),
            StructField("zxid", LongType()),
            StructField("made", StringType()),
            StructField("cluster_id", StringType()),
            StructField("chroot", StringType()),
        ]
    )
    for table in AUDIT_TABLES:
        fields = [field for field in spark_schema(table) if field.name not in PLACE_COLUMNS]
        if table == CONSUMER_FINDINGS:
            fields.append(StructField(OTHER_CLUSTER_ID, StringType()))
        schema.add(table, StructType(fields))
    return schema


def _auditing(
    data_dirs: Sequence[DataDir], log_dirs: Sequence[LogDirNames], mode: Mode
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def audit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (value for batch in batches for value in batch.column(0).to_pylist()):
            data_dir = data_dirs[number]
            with reported_damage(data_dir, mode, _ADVICE) as report:
                rows = audit_rows(data_dir, log_dirs, report)
                while some := list(islice(rows, _ROWS)):
                    yield _batch(data_dir.path, some)

    return audit


def _batch(input_path: str, rows: Sequence[AuditRow]) -> pa.RecordBatch:
    columns = {
        "input_path": pa.array([input_path] * len(rows), pa.string()),
        "zxid": pa.array([row.zxid for row in rows], pa.int64()),
        "made": pa.array([row.place.made for row in rows], pa.string()),
        "cluster_id": pa.array([row.place.cluster_id for row in rows], pa.string()),
        "chroot": pa.array([row.place.chroot for row in rows], pa.string()),
    }
    for table in AUDIT_TABLES:
        fields = [field for field in arrow_schema(table) if field.name not in PLACE_COLUMNS]
        if table == CONSUMER_FINDINGS:
            fields.append(pa.field(OTHER_CLUSTER_ID, pa.string()))
        values = [dict(row.values) if row.table == table else None for row in rows]
        columns[table] = pa.array(values, pa.struct(fields))
    return pa.RecordBatch.from_pydict(columns)
