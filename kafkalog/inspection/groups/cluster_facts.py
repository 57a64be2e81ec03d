"""What is known of clusters before their groups are read: topics, and the partitions of
`__consumer_offsets` with their leaders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kafkalog.coordination.groups.commit_status import KnownTopic
from kafkalog.coordination.groups.offsets_partitions import partition_count
from kafkalog.inspection.groups.placed_commits import PartitionFacts
from kafkalog.messages.cluster_metadata import ClusterMetadata
from kafkalog.storage.log_dir.topic_directories import topic_directories
from kafkalog.storage.names import CLUSTER_METADATA, CONSUMER_OFFSETS
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


def facts_of_logs(logs: Sequence[PartitionLog], metadata: ClusterMetadata) -> ClusterFacts:
    """Return what directories and the cluster's own metadata show."""
    clusters = {log.log_dir.cluster_id for log in logs if log.topic == CLUSTER_METADATA}
    known = set(topics_of_directories(logs))
    for cluster_id in clusters:
        known |= {
            KnownTopic(cluster_id, name, topic_id, topic_id in metadata.deleted)
            for topic_id, name in metadata.names.items()
        }
    leaders = metadata.leaders_of(CONSUMER_OFFSETS)
    led = {(cluster, number): led for cluster in clusters for number, led in leaders.items()}
    return ClusterFacts([*known], led, offsets_partitions_in(logs))


def topics_of_directories(logs: Sequence[PartitionLog]) -> list[KnownTopic]:
    """Return the topics that partitions' directories name."""
    return [
        KnownTopic(each.cluster_id, each.topic, each.topic_id, each.is_deleted)
        for each in topic_directories(logs)
        if each.topic is not None
    ]


def offsets_partitions_in(
    logs: Iterable[PartitionLog], cluster_id: str | None = None
) -> set[tuple[str | None, int]]:
    """Return the partitions of `__consumer_offsets` among the logs. `cluster_id` is that of logs
    whose directory names none."""
    return {
        (log.log_dir.cluster_id or cluster_id, log.partition)
        for log in logs
        if log.topic == CONSUMER_OFFSETS and log.is_live and log.partition is not None
    }
