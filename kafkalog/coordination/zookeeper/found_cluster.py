"""A cluster and its old consumers as the znodes below its root describe them, for an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkalog.coordination.zookeeper.cluster_znodes import read_cluster_id
from kafkalog.coordination.zookeeper.consumer_znodes import read_consumer
from kafkalog.coordination.zookeeper.kafka_directories import (
    BROKER_REGISTRY,
    CLUSTER_ZNODES,
    CONSUMER_OFFSETS_VIEW,
    PARTITION_OWNERS,
    TOPIC_REGISTRY,
    kafka_rows,
)
from kafkalog.coordination.zookeeper.partition_assignment import BrokerPartition, ConsumedPartition
from kafkalog.coordination.zookeeper.topic_filters import Subscription, readable_filter
from kafkalog.coordination.zookeeper.znode_paths import PathTemplate
from kafkalog.errors import CorruptDataError

_GROUP = PathTemplate("/consumers/[group_id]")
_TOPIC = PathTemplate("/brokers/topics/[topic]")
_CONSUMER = PathTemplate("/consumers/[group_id]/ids/[consumer_id]")


class FoundZnode(NamedTuple):
    """What an audit needs to know of a znode; `path` is that below the cluster's root."""

    path: str
    data: bytes | None
    ephemeral_owner: int
    ctime_ms: int
    mtime_ms: int


class FoundConsumer(NamedTuple):
    """A registered consumer; its subscription is None where it cannot be read, and `fault` says
    why."""

    subscription: Subscription | None
    fault: str | None
    session_id: int


class FoundOwner(NamedTuple):
    """A claim of a partition; `consumer_id` is None where the data does not name an owner, and
    `fault` says why."""

    owner: str | None
    consumer_id: str | None
    fault: str | None
    session_id: int
    claimed_ms: int


class FoundOffset(NamedTuple):
    """A committed offset; it is None where the data is not a number, and `fault` says why."""

    offset: int | None
    fault: str | None
    committed_ms: int


@dataclass(slots=True)
class FoundGroup:
    """What is below /consumers/[group_id]. `unnamed` has the offsets and owners whose names are not
    partitions: path and reason."""

    consumers: dict[str, FoundConsumer] = field(default_factory=dict)
    owners: dict[ConsumedPartition, FoundOwner] = field(default_factory=dict)
    offsets: dict[ConsumedPartition, FoundOffset] = field(default_factory=dict)
    unnamed: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class FoundCluster:
    """What is below a cluster's root. Topics that are there without partitions have none."""

    cluster_id: str | None = None
    brokers: dict[int, str] = field(default_factory=dict)
    topics: dict[str, set[BrokerPartition]] = field(default_factory=dict)
    deleted_topics: set[str] = field(default_factory=set)
    groups: dict[str, FoundGroup] = field(default_factory=dict)


def found_consumer(data: bytes | None, session_id: int) -> FoundConsumer:
    """Return a consumer as its registration says."""
    try:
        subscription = read_consumer(data).subscription
    except CorruptDataError as error:
        return FoundConsumer(None, error.detail, session_id)
    fault = readable_filter(subscription)
    return FoundConsumer(subscription if fault is None else None, fault, session_id)


def add_znode(cluster: FoundCluster, znode: FoundZnode) -> None:
    """Add what one znode says; znodes come in any order."""
    group, topic = _GROUP.names(znode.path), _TOPIC.names(znode.path)
    if group:
        cluster.groups.setdefault(group["group_id"], FoundGroup())
    if topic:
        cluster.topics.setdefault(topic["topic"], set())
    consumer = _CONSUMER.names(znode.path)
    if consumer:
        found = cluster.groups.setdefault(consumer["group_id"], FoundGroup())
        registered = found_consumer(znode.data, znode.ephemeral_owner)
        found.consumers[consumer["consumer_id"]] = registered
        return
    for row in kafka_rows(znode.path, znode.data):
        _add(cluster, row.view, row.values, znode)


def _add(cluster: FoundCluster, view: str, values: Mapping[str, Any], znode: FoundZnode) -> None:
    if view in (CONSUMER_OFFSETS_VIEW, PARTITION_OWNERS):
        group = cluster.groups.setdefault(values["group_id"], FoundGroup())
        _add_to_group(group, view, values, znode)
    elif view == TOPIC_REGISTRY:
        _add_topic(cluster.topics.setdefault(values["topic"], set()), values)
    elif view == BROKER_REGISTRY and values["broker_id"] is not None:
        cluster.brokers[values["broker_id"]] = broker_place(values)
    elif view == CLUSTER_ZNODES and "reason" not in values:
        if values["kind"] == "deleted_topic":
            cluster.deleted_topics.add(values["topic"])
        elif values["kind"] == "cluster_id":
            cluster.cluster_id = read_cluster_id(znode.data)


def broker_place(values: Mapping[str, Any]) -> str:
    """Return where a broker is, by its row: its endpoints, or host and port."""
    endpoints = values.get("endpoints")
    return ",".join(endpoints) if endpoints else f"{values.get('host')}:{values.get('port')}"


def _add_topic(partitions: set[BrokerPartition], values: Mapping[str, Any]) -> None:
    if values.get("partition") is not None:
        partitions.add(BrokerPartition(values["partition"]))
    broker_id = values.get("broker_id")
    if broker_id is not None:
        count = values.get("broker_partitions") or 0
        partitions.update(BrokerPartition(number, broker_id) for number in range(count))


def _add_to_group(
    group: FoundGroup, view: str, values: Mapping[str, Any], znode: FoundZnode
) -> None:
    if values["partition"] is None:
        group.unnamed[znode.path] = values["detail"]
        return
    place = ConsumedPartition(
        values["topic"], BrokerPartition(values["partition"], values["broker_id"])
    )
    fault = values.get("detail")
    if view == CONSUMER_OFFSETS_VIEW:
        group.offsets[place] = FoundOffset(values.get("committed_offset"), fault, znode.mtime_ms)
    else:
        group.owners[place] = FoundOwner(
            values.get("owner"),
            values.get("consumer_id"),
            fault,
            znode.ephemeral_owner,
            znode.ctime_ms,
        )
