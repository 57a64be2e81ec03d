"""What is known of clusters before their groups are read: topics, leaders of the partitions of
`__consumer_offsets`, and from when on these have all commits. Few facts, in the driver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.coordination.groups.commit_status import KnownTopic
from kafkalog.coordination.groups.offsets_partitions import partition_count
from kafkalog.inspection.groups.placed_commits import PartitionFacts
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
from kafkalog.spark.topic_views import commits_complete_from
from kafkalog.storage.log_dir.topic_directories import topic_directories
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog


@dataclass(frozen=True)
class ClusterFacts:
    """All known topics; the leaders of the partitions of `__consumer_offsets`, by cluster and
    number; and rows in the columns of REACH, ZooKeeper's among them."""

    topics: Sequence[KnownTopic]
    leaders: dict[tuple[str | None, int], int]
    complete_from: Sequence[Row]

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by their ids."""
        names: dict[str, str] = {}
        for each in self.topics:
            if each.topic_id is not None and each.topic is not None:
                names[each.topic_id] = max(names.get(each.topic_id, ""), each.topic)
        return names

    def topics_by_name(self) -> dict[tuple[str | None, str], list[KnownTopic]]:
        """Return the topics by cluster and name."""
        found: dict[tuple[str | None, str], list[KnownTopic]] = defaultdict(list)
        for each in self.topics:
            found[each.cluster_id, each.topic].append(each)
        return dict(found)

    def of_partition(self, cluster_id: str | None, number: int | None) -> PartitionFacts:
        """Return the facts about a partition of `__consumer_offsets`; None is ZooKeeper."""
        numbers = {
            *(row.internal_partition for row in self._complete_from(cluster_id)),
            *(place for cluster, place in self.leaders if cluster == cluster_id),
        }
        times = [
            row.complete_from_ms
            for row in self._complete_from(cluster_id)
            if row.internal_partition == number and row.complete_from_ms is not None
        ]
        return PartitionFacts(
            partition_count(numbers - {None}),
            None if number is None else self.leaders.get((cluster_id, number)),
            max(times, default=None),
        )

    def _complete_from(self, cluster_id: str | None) -> Iterator[Row]:
        return (row for row in self.complete_from if row.cluster_id == cluster_id)


def cluster_facts(
    spark: SparkSession,
    logs: Sequence[PartitionLog],
    topics: Sequence[DataFrame],
    leaders: Sequence[DataFrame],
    zookeeper: ZookeeperLag | None,
) -> ClusterFacts:
    """Return what directories and these DataFrames show: `topics` have the columns of KnownTopic,
    as many as are known, and `leaders` cluster_id, topic, partition and leader."""
    complete_from = commits_complete_from(spark, logs)
    known = {
        KnownTopic(each.cluster_id, each.topic, each.topic_id, each.is_deleted)
        for each in topic_directories(logs)
        if each.topic is not None
    }
    if zookeeper is not None:
        own = zookeeper.cluster_id
        known = {each._replace(cluster_id=each.cluster_id or own) for each in known}
        complete_from = zookeeper.with_cluster_id(complete_from)
        complete_from = complete_from.unionByName(zookeeper.complete_from())
    known.update(KnownTopic(*row) for frame in topics for row in frame.collect())
    is_offsets_topic = F.col("topic") == CONSUMER_OFFSETS
    led = (frame.where(is_offsets_topic).collect() for frame in leaders)
    return ClusterFacts(
        list(known),
        {(row.cluster_id, row.partition): row.leader for rows in led for row in rows},
        complete_from.collect(),
    )
