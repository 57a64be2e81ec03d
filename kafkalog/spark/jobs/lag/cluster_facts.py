"""What is known of clusters before their groups are read, by metadata and by ZooKeeper, as views of
Spark have it. Few facts, in the driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.coordination.groups.commit_status import KnownTopic
from kafkalog.questions.lag import ClusterFacts
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog


def cluster_facts(
    logs: Sequence[PartitionLog],
    topics: Sequence[DataFrame],
    leaders: Sequence[DataFrame],
    zookeeper: ZookeeperLag | None,
) -> ClusterFacts:
    """Return what directories and these DataFrames show: `topics` have the columns of KnownTopic,
    as many as are known, and `leaders` cluster_id, topic, partition and leader."""
    known = [KnownTopic(*row) for frame in topics for row in frame.collect()]
    is_offsets_topic = F.col("topic") == CONSUMER_OFFSETS
    led = (frame.where(is_offsets_topic).collect() for frame in leaders)
    of_partitions = {(row.cluster_id, row.partition): row.leader for rows in led for row in rows}
    cluster_id = None if zookeeper is None else zookeeper.cluster_id
    return ClusterFacts.of(logs, known, of_partitions, cluster_id)
