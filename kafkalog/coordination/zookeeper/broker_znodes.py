"""What brokers and the controller write below /brokers. Rules: docs/zookeeper.md F434 to F441."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkalog.coordination.zookeeper.znode_data import (
    JsonObject,
    broker_ids,
    int_field,
    malformed,
    name_number,
    object_field,
    optional_int,
    optional_text,
    read_long,
    read_object,
    text_list,
    text_map,
    timestamp_field,
    znode_text,
)

_LARGEST_PORT = 65_535
# Partitions of one topic on one broker: what a typing error of 0.7 could make too many to list.
MOST_PARTITIONS = 100_000


class BrokerRegistration(NamedTuple):
    """The data of /brokers/ids/[0...N]. `creator` is in texts of Kafka 0.7 only; `host` is None and
    `port` -1 where a broker has no PLAINTEXT listener."""

    host: str | None
    port: int
    creator: str | None = None
    endpoints: tuple[str, ...] | None = None
    listener_security_protocol_map: Mapping[str, str] | None = None
    jmx_port: int | None = None
    rack: str | None = None
    features: Mapping[str, tuple[int, int]] | None = None
    version: int | None = None
    timestamp_ms: int | None = None


class TopicRegistration(NamedTuple):
    """The data of /brokers/topics/[topic]: replicas by partition, the preferred one first."""

    partitions: Mapping[int, tuple[int, ...]]
    adding_replicas: Mapping[int, tuple[int, ...]]
    removing_replicas: Mapping[int, tuple[int, ...]]
    topic_id: str | None
    version: int | None


class PartitionState(NamedTuple):
    """The data of /brokers/topics/[topic]/partitions/[0...N]/state; leader -1 is none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    version: int | None


def read_broker(data: bytes | None) -> BrokerRegistration:
    """Return a broker's registration, of any generation. Raises CorruptDataError."""
    text = znode_text(data)
    if not text.lstrip().startswith("{"):
        return _oldest_broker(text)
    values = read_object(data)
    return BrokerRegistration(
        host=optional_text(values, "host"),
        port=int_field(values, "port"),
        endpoints=text_list(values, "endpoints"),
        listener_security_protocol_map=text_map(values, "listener_security_protocol_map"),
        jmx_port=optional_int(values, "jmx_port"),
        rack=optional_text(values, "rack"),
        features=_features(values),
        version=optional_int(values, "version"),
        timestamp_ms=timestamp_field(values),
    )


def _oldest_broker(text: str) -> BrokerRegistration:
    place, _, port_text = text.rpartition(":")
    port = name_number(port_text)
    if not place or port is None or port > _LARGEST_PORT:
        malformed(f"neither JSON nor host:port: {text[:100]!r}")
    creator, colon, host = place.partition(":")
    return BrokerRegistration(host if colon else creator, port, creator if colon else None)


def _features(values: JsonObject) -> dict[str, tuple[int, int]] | None:
    if "features" not in values:
        return None
    found = object_field(values, "features")
    levels = {name: object_field(found, name) for name in found}
    return {
        name: (int_field(level, "min_version"), int_field(level, "max_version"))
        for name, level in levels.items()
    }


def read_broker_partitions(data: bytes | None) -> int:
    """Return how many partitions a broker of 0.7 has of a topic. Raises CorruptDataError."""
    count = read_long(data)
    return count if 0 <= count <= MOST_PARTITIONS else malformed(f"{count} partitions")


def read_topic(data: bytes | None) -> TopicRegistration:
    """Return a topic's registration. Without data it is one without partitions: a directory of 0.7,
    or what is left of a topic. Raises CorruptDataError."""
    values = read_object(data) if data else {}
    return TopicRegistration(
        _replicas(values, "partitions"),
        _replicas(values, "adding_replicas"),
        _replicas(values, "removing_replicas"),
        optional_text(values, "topic_id"),
        optional_int(values, "version"),
    )


def _replicas(values: JsonObject, field: str) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for name, replicas in object_field(values, field).items():
        partition = name_number(name)
        if partition is None:
            malformed(f"field {field}: no partition: {name[:100]!r}")
        found[partition] = broker_ids(replicas, field)
    return dict(sorted(found.items()))


def read_partition_state(data: bytes | None) -> PartitionState:
    """Return a partition's state. Raises CorruptDataError."""
    values = read_object(data)
    return PartitionState(
        int_field(values, "leader"),
        int_field(values, "leader_epoch"),
        broker_ids(values.get("isr"), "isr"),
        int_field(values, "controller_epoch"),
        optional_int(values, "version"),
    )
