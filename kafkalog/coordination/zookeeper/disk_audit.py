"""A cluster in ZooKeeper against what lies in log directories: topics on their way out, broker ids
in use twice, cluster ids. Rules: docs/zookeeper.md F438, F466, F468 and F469."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkalog.coordination.zookeeper.consumer_audit import ConsumerFinding
from kafkalog.coordination.zookeeper.ensemble_clusters import is_own
from kafkalog.coordination.zookeeper.found_cluster import FoundCluster


class DiskPartition(NamedTuple):
    """A partition's directory: its name, and topic and partition by that; `mark` is delete, stray
    or future, None for one in use. Of a directory marked so the topic may be cut short."""

    name: str
    topic: str
    partition: int
    mark: str | None


class Disk(NamedTuple):
    """A log directory: what its meta.properties says, and the partitions in it."""

    path: str
    cluster_id: str | None
    broker_id: int | None
    partitions: tuple[DiskPartition, ...]


def disk_findings(cluster: FoundCluster, disks: Sequence[Disk]) -> Iterator[ConsumerFinding]:
    """Yield what does not go together."""
    its_id = cluster.cluster_id
    own = [disk for disk in disks if is_own(its_id, disk.cluster_id)]
    for disk in disks:
        if disk not in own:
            named = f"not of {its_id}" if its_id else "and there is no /cluster/id"
            detail = f"{disk.path} is of cluster {disk.cluster_id}, {named}"
            yield ConsumerFinding("cluster_ids_differ", detail, other_cluster_id=disk.cluster_id)
    yield from _topics_on_their_way_out(cluster, own)
    yield from _broker_ids_in_use_twice(own)


def _topics_on_their_way_out(
    cluster: FoundCluster, disks: Sequence[Disk]
) -> Iterator[ConsumerFinding]:
    """Yield topics that are to be deleted, and directories that no registered topic has."""
    on_disk = {
        partition.topic
        for disk in disks
        for partition in disk.partitions
        if partition.mark is None and partition.topic != "__cluster_metadata"
    }
    for topic in sorted(cluster.deleted_topics):
        places = {
            "/brokers/topics": topic in cluster.topics,
            "the log directories": topic in on_disk,
        }
        still = [place for place, is_there in places.items() if is_there]
        words = f"to be deleted, still in {' and '.join(still) or 'neither place'}"
        yield ConsumerFinding("topic_being_deleted", words, topic=topic)
    for topic in sorted(on_disk - set(cluster.topics) - cluster.deleted_topics):
        yield ConsumerFinding("topic_not_registered", "in the log directories alone", topic=topic)
    for disk in disks:
        for partition in disk.partitions:
            if partition.mark == "delete":
                yield ConsumerFinding(
                    "directory_being_deleted",
                    f"{disk.path}/{partition.name} is left of a deletion",
                    topic=partition.topic,
                    broker_id=disk.broker_id,
                )
    doomed = cluster.deleted_topics | (on_disk - set(cluster.topics))
    for topic in sorted(doomed):
        hit = wildcard_hits(topic, disks)
        if hit:
            yield ConsumerFinding(
                "wildcard_hits_others", f"{topic}-* also names {', '.join(hit)}", topic=topic
            )


def wildcard_hits(topic: str, disks: Sequence[Disk]) -> list[str]:
    """Return the directories of other topics that `rm -rf TOPIC-*` would remove."""
    return sorted(
        {
            partition.name
            for disk in disks
            for partition in disk.partitions
            if partition.name.startswith(f"{topic}-") and partition.topic != topic
        }
    )


def _broker_ids_in_use_twice(disks: Sequence[Disk]) -> Iterator[ConsumerFinding]:
    """Log directories of one broker id that hold the same partition: a broker has each partition
    once, so these are of two brokers with one id, or one is a copy."""
    holders: dict[tuple[int, str], str] = {}
    seen: set[tuple[str, str]] = set()
    for disk in disks:
        for partition in disk.partitions:
            if partition.mark is not None or disk.broker_id is None:
                continue
            other = holders.setdefault((disk.broker_id, partition.name), disk.path)
            if other != disk.path and (other, disk.path) not in seen:
                seen.add((other, disk.path))
                yield ConsumerFinding(
                    "broker_id_in_use_twice",
                    f"{other} and {disk.path} both have {partition.name}",
                    broker_id=disk.broker_id,
                )
