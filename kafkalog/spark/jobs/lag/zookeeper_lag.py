"""The views of ZooKeeper's files that the lag of groups that commit there is computed from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster, cluster_of_log_dirs
from kafkalog.inspection.zookeeper.zookeeper_commits import history_begin
from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperInput
from kafkalog.spark.log_rows import REACH, one_row
from kafkalog.zookeeper.data_dir_check import data_dir_findings


def found_clusters(rows: DataFrame) -> list[EnsembleCluster]:
    """Return the clusters that rows of view `clusters`, or of an audit, are about."""
    named = rows.select(*EnsembleCluster._fields).distinct()
    return [EnsembleCluster(*row) for row in named.collect()]


class ZookeeperLag:
    """Views of format `zookeeper` of the one cluster that log directories belong to."""

    def __init__(
        self,
        spark: SparkSession,
        given: ZookeeperInput,
        log_dir_ids: Collection[str | None],
        *,
        allow_unknown: bool = True,
    ) -> None:
        self._spark, self._given = spark, given
        found = found_clusters(self._view("clusters"))
        self.cluster = cluster_of_log_dirs(
            found, log_dir_ids, chroot=given.chroot, allow_unknown=allow_unknown
        )
        known = [self.cluster.cluster_id, *log_dir_ids]
        self.cluster_id = next((each for each in known if each is not None), None)

    def _view(self, name: str, **options: str | int) -> DataFrame:
        reader = self._spark.read.format("zookeeper").option("view", name).options(**options)
        return reader.option("mode", self._given.mode).load(list(self._given.paths))

    def view(self, name: str, at_ms: int | None = None) -> DataFrame:
        """Return the cluster's rows of a view with column chroot, as of a time if one is given."""
        rows = self._view(name) if at_ms is None else self._view(name, timestampAsOf=at_ms)
        return self._own(rows.where(F.col("chroot") == self.cluster.chroot))

    def commits(self) -> DataFrame:
        """Return the cluster's rows of view `offset_commits`."""
        return self._own(self._view("offset_commits", znode=f"{self.cluster.chroot}/consumers"))

    def _own(self, rows: DataFrame) -> DataFrame:
        return self.with_cluster_id(rows.where(F.col("input_path") == self.cluster.input_path))

    def paths(self) -> DataFrame:
        """Return the paths of all znodes in the cluster's data directory, those of other clusters
        too."""
        znodes = self._view("znodes", columns="input_path,path")
        return znodes.where(F.col("input_path") == self.cluster.input_path).select("path")

    def with_cluster_id(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the cluster's id where they have none: old brokers do not write it
        into their log directories."""
        known = F.coalesce(F.col("cluster_id"), F.lit(self.cluster_id).cast("string"))
        return rows.withColumn("cluster_id", known)

    def complete_from(self) -> DataFrame:
        """Return how far back commits are known, and how many damaged places hide some: a row in
        the columns of commits_complete_from, without internal_partition."""
        data_dirs = self._given.data_dirs
        (data_dir,) = (each for each in data_dirs if each.path == self.cluster.input_path)
        cluster_id = self.cluster_id

        def row(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            if sum(batch.num_rows for batch in batches):
                zxid, time_ms = history_begin(data_dir)
                damaged = sum(finding.fault.is_damage for finding in data_dir_findings(data_dir))
                yield one_row(REACH, (cluster_id, None, None, zxid, time_ms, damaged))

        return self._spark.range(1).mapInArrow(row, REACH)
