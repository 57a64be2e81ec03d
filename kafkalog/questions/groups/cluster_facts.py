"""What is known of clusters before their groups are read: topics, leaders, share groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkalog.coordination.groups.commit_status import KnownTopic, partition_count
from kafkalog.coordination.groups.share_states import SharePartition, ShareState, ShareStates
from kafkalog.inspection.groups.placed_commits import PartitionFacts
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.metadata.cluster_history import cluster_histories
from kafkalog.storage.log_dir.topic_directories import topic_directories
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views
from kafkalog.views.local_views import internal_records
from kafkalog.views.options.options import Mode

if TYPE_CHECKING:
    from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster


@dataclass(frozen=True)
class ClusterFacts:
    """All topics; the leaders of the partitions of `__consumer_offsets`, by cluster and number; the
    partitions that the input has, in the same form; and where share groups are, F780."""

    topics: Sequence[KnownTopic]
    leaders: Mapping[tuple[str | None, int], int]
    offsets_partitions: Collection[tuple[str | None, int]]
    shares: Mapping[SharePartition, ShareState]

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

    def deleted_topics(self) -> set[str]:
        """Return the names of topics that are deleted, and not created again."""
        living = {each.topic for each in self.topics if not each.is_deleted}
        return {each.topic for each in self.topics} - living

    def of_partition(self, cluster_id: str | None, number: int | None) -> PartitionFacts:
        """Return the facts about a partition of `__consumer_offsets`, but for from when on it has
        all commits."""
        found = {*self.offsets_partitions, *self.leaders}
        numbers = {place for cluster, place in found if cluster == cluster_id}
        leader = None if number is None else self.leaders.get((cluster_id, number))
        return PartitionFacts(partition_count(numbers), leader, None)


def cluster_facts(
    views: Views, at_ms: int | None, zookeeper: ZookeeperCluster | None = None
) -> ClusterFacts:
    """Return what directories, metadata and ZooKeeper show, now or at a past time; directories that
    name no cluster are of ZooKeeper's."""
    cluster_id = None if zookeeper is None else zookeeper.cluster.cluster_id
    topics = {
        KnownTopic(each.cluster_id or cluster_id, each.topic, each.topic_id, each.is_deleted)
        for each in topic_directories(views.logs)
        if each.topic is not None
    }
    leaders: dict[tuple[str | None, int], int] = {}
    is_strict = _mode(views) is Mode.FAILFAST
    for of_cluster, history in cluster_histories(views.logs, at_ms, strict=is_strict).items():
        topics.update(
            KnownTopic(of_cluster, name, topic_id, topic_id in history.deleted)
            for topic_id, name in history.names.items()
        )
        led = history.leaders_of(CONSUMER_OFFSETS)
        leaders.update({(of_cluster, number): leader for number, leader in led.items()})
    if zookeeper is not None:
        from kafkalog.questions.zookeeper.zookeeper_groups import (
            zookeeper_leaders,
            zookeeper_topics,
        )

        topics.update(zookeeper_topics(zookeeper, at_ms))
        led = zookeeper_leaders(zookeeper, CONSUMER_OFFSETS, at_ms)
        leaders.update({(cluster_id, number): leader for number, leader in led.items()})
    partitions = {
        (log.log_dir.cluster_id or cluster_id, log.partition)
        for log in views.logs
        if log.topic == CONSUMER_OFFSETS and log.is_live and log.partition is not None
    }
    return ClusterFacts([*topics], leaders, partitions, _share_states(views, at_ms))


def _share_states(views: Views, at_ms: int | None) -> dict[SharePartition, ShareState]:
    log_dirs, mode = views.log_dirs, _mode(views)
    logs = [
        log
        for of_cluster in _by_cluster(views.logs, SHARE_GROUP_STATE).values()
        for log in best_logs(of_cluster)
    ]

    def read(log: PartitionLog) -> Iterator[dict[SharePartition, ShareState]]:
        found = ShareStates()
        records = internal_records(log_dirs, SHARE_GROUP_STATE, [log], at_ms, mode)
        for record, written_ms in records:
            is_known = record.value is not None or record.is_tombstone
            if record.key is not None and record.record_type is not None and is_known:
                key = log.log_dir.cluster_id, record.record_type, record.key
                found.take(*key, record.value, written_ms)
        yield found.states

    states: dict[SharePartition, ShareState] = {}
    for each in views.tasks(read, logs):
        states |= each
    return states


def _mode(views: Views) -> Mode:
    return Mode(str(views.options.get("mode", Mode.PERMISSIVE.value)))


def _by_cluster(logs: Iterable[PartitionLog], topic: str) -> dict[str | None, list[PartitionLog]]:
    found: dict[str | None, list[PartitionLog]] = defaultdict(list)
    for log in logs:
        if log.topic == topic:
            found[log.log_dir.cluster_id].append(log)
    return dict(found)
