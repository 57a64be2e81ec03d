"""The clusters in ZooKeeper's data directories, of rows that tell them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster


def found_clusters(rows: DataFrame) -> list[EnsembleCluster]:
    """The clusters that rows of view `clusters`, or of an audit, are about."""
    named = rows.select(*EnsembleCluster._fields).distinct()
    return [EnsembleCluster(*row) for row in named.collect()]
