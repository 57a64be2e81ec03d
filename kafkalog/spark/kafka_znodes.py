"""What groups and topics have in ZooKeeper, as DataFrames: view `znodes` typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from kafkalog.coordination.cluster_znodes import read_cluster_id
from kafkalog.coordination.ensemble_clusters import EnsembleCluster
from kafkalog.coordination.kafka_directories import (
    CONSUMER_OFFSETS,
    CONSUMER_REGISTRY,
    TOPIC_REGISTRY,
    kafka_rows,
)
from kafkalog.coordination.znode_paths import below_root, cluster_roots
from kafkalog.errors import CorruptDataError
from kafkalog.spark.tables import table_schema

_VIEWS = (CONSUMER_OFFSETS, CONSUMER_REGISTRY, TOPIC_REGISTRY)
_OFFSET_COLUMNS = (
    *("input_path", "chroot", "path", "group_id", "topic", "broker_id", "partition"),
    *("committed_offset", "mtime_ms", "mzxid", "detail"),
)
_ID = "/cluster/id"
_MARKS = ("/brokers/ids", "/brokers/topics", "/consumers", _ID)


class KafkaZnodes(NamedTuple):
    """What data directories of ZooKeeper have of groups and topics: `rows` by the views that they
    are of, with znode_version and without an id of the cluster; `znodes` are all paths."""

    clusters: list[EnsembleCluster]
    rows: DataFrame
    znodes: DataFrame

    def of_cluster(self, cluster: EnsembleCluster) -> KafkaZnodes:
        """The same of one cluster in one data directory."""
        same = F.col("input_path") == cluster.input_path
        rows = self.rows.where(same & (F.col("chroot") == cluster.chroot))
        return KafkaZnodes([cluster], rows, self.znodes.where(same))

    def view(self, name: str) -> DataFrame:
        """The rows of view `consumer_offsets`, `consumer_registry` or `topic_registry`."""
        return self.rows.where(F.col("view") == name)


def kafka_znodes(spark: SparkSession, data_dirs: Sequence[str], *, mode: str) -> KafkaZnodes:
    """The znodes of all clusters in ZooKeeper's data directories, typed and kept in memory."""
    reader = spark.read.format("zookeeper").option("mode", mode)
    columns = ("input_path", "path", "data", "version", "mtime_ms", "mzxid")
    znodes = reader.option("columns", ",".join(columns)).load(list(data_dirs)).select(*columns)
    marks = znodes.where(f"path RLIKE '({'|'.join(_MARKS)})$'")
    found = marks.select("input_path", "path", "data").collect()
    schema = _schema()
    roots = cluster_roots(row.path for row in found)
    typed = znodes.mapInArrow(_typing(roots, schema), schema).persist()
    ids = {(row.input_path, row.path): _cluster_id(row.data) for row in found}
    clusters = [
        EnsembleCluster(path, chroot, ids.get((path, chroot + _ID)), zxid)
        for path, chroot, zxid in typed.groupBy("input_path", "chroot")
        .agg(F.max("mzxid"))
        .orderBy("input_path", "chroot")
        .collect()
    ]
    return KafkaZnodes(clusters, typed, znodes.select("input_path", "path"))


def _cluster_id(data: bytearray | None) -> str | None:
    try:
        return None if data is None else read_cluster_id(bytes(data))
    except CorruptDataError:
        return None


def _schema() -> StructType:
    """The columns of the three views that count here, in one."""
    offsets, consumers = table_schema(CONSUMER_OFFSETS), table_schema(CONSUMER_REGISTRY)
    added = [
        StructField("view", StringType()),
        StructField("znode_version", IntegerType()),
        consumers["consumer_id"],
    ]
    return StructType([*(offsets[name] for name in _OFFSET_COLUMNS), *added])


def _typing(
    roots: Sequence[str], schema: StructType
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    arrow_schema = to_arrow_schema(schema)

    def typed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [row for znode in batch.to_pylist() for row in _typed(znode, roots)]
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema)

    return typed


def _typed(znode: Mapping[str, object], roots: Sequence[str]) -> Iterator[Mapping[str, object]]:
    place = below_root(str(znode["path"]), roots)
    data = znode["data"]
    if place is None or not isinstance(data, bytes):
        return
    for row in kafka_rows(place.path, data):
        if row.view in _VIEWS:
            known = {**znode, "chroot": place.chroot, "znode_version": znode["version"]}
            yield {**known, "view": row.view, **row.values}
