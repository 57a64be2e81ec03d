"""What is known of clusters before their groups are read: topics, and the partitions of
`__consumer_offsets` with their leaders. Few facts, in the driver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.coordination.groups.commit_status import KnownTopic
from kafkalog.coordination.groups.offsets_partitions import partition_count
from kafkalog.inspection.groups.placed_commits import PartitionFacts
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
from kafkalog.storage.log_dir.topic_directories import topic_directories
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog


@dataclass(frozen=True)
class ClusterFacts:
    """All known topics; the leaders of the partitions of `__consumer_offsets`, by cluster and
    number; and the partitions that the input has, in the same form."""

    topics: Sequence[KnownTopic]
    leaders: dict[tuple[str | None, int], int]
    offsets_partitions: Collection[tuple[str | None, int]]

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
        """Return the facts about a partition of `__consumer_offsets`, but for from when on it has
        all commits."""
        found = {*self.offsets_partitions, *self.leaders}
        numbers = {place for cluster, place in found if cluster == cluster_id}
        leader = None if number is None else self.leaders.get((cluster_id, number))
        return PartitionFacts(partition_count(numbers), leader, None)


def cluster_facts(
    logs: Sequence[PartitionLog],
    topics: Sequence[DataFrame],
    leaders: Sequence[DataFrame],
    zookeeper: ZookeeperLag | None,
) -> ClusterFacts:
    """Return what directories and these DataFrames show: `topics` have the columns of KnownTopic,
    as many as are known, and `leaders` cluster_id, topic, partition and leader."""
    known = {
        KnownTopic(each.cluster_id, each.topic, each.topic_id, each.is_deleted)
        for each in topic_directories(logs)
        if each.topic is not None
    }
    own = None if zookeeper is None else zookeeper.cluster_id
    known = {each._replace(cluster_id=each.cluster_id or own) for each in known}
    found = {
        (log.log_dir.cluster_id or own, log.partition)
        for log in logs
        if log.topic == CONSUMER_OFFSETS and log.is_live and log.partition is not None
    }
    known.update(KnownTopic(*row) for frame in topics for row in frame.collect())
    is_offsets_topic = F.col("topic") == CONSUMER_OFFSETS
    led = (frame.where(is_offsets_topic).collect() for frame in leaders)
    return ClusterFacts(
        list(known),
        {(row.cluster_id, row.partition): row.leader for rows in led for row in rows},
        found,
    )
