"""What a cluster keeps besides brokers, topics and consumers: controller, id, settings, tasks and
notifications. Rules: docs/zookeeper.md F442, F443 and F465."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kafkalog.coordination.zookeeper.znode_data import (
    JsonObject,
    broker_ids,
    int_field,
    malformed,
    object_list,
    optional_int,
    optional_text,
    read_int,
    read_json,
    read_object,
    text_map,
    timestamp_field,
    znode_text,
)
from kafkalog.errors import CorruptDataError
from kafkalog.format.secret_configs import shown_config


class ClusterEntry(NamedTuple):
    """What a znode says of the cluster; what it does not speak of is None."""

    broker_id: int | None = None
    epoch: int | None = None
    topic: str | None = None
    partition: int | None = None
    replicas: tuple[int, ...] | None = None
    entity_path: str | None = None
    settings: Mapping[str, str] | None = None
    timestamp_ms: int | None = None


# The names in a znode's path and its data to what it says.
ClusterParser = Callable[[Mapping[str, str], bytes | None], Iterator[ClusterEntry]]


def read_cluster_id(data: bytes | None) -> str:
    """Return the id in the data of /cluster/id. Raises CorruptDataError where there is none."""
    cluster_id = optional_text(read_object(data), "id")
    if cluster_id is None:
        malformed("no field id")
    return cluster_id


def cluster_id_entry(_: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """/cluster/id."""
    read_cluster_id(data)
    yield ClusterEntry()


def controller_entry(_: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """/controller: the broker that is controller; before 0.8.1 its id alone."""
    value = read_json(data)
    values: JsonObject = value if isinstance(value, dict) else {"brokerid": value}
    yield ClusterEntry(int_field(values, "brokerid"), timestamp_ms=timestamp_field(values))


def controller_epoch_entry(_: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """/controller_epoch: how many controllers there have been."""
    yield ClusterEntry(epoch=read_int(data))


def config_entry(names: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """/config/...: settings of a topic, broker, client, user or address."""
    try:
        settings = text_map(read_object(data), "config") or {}
    except CorruptDataError as error:
        # Its own words have data in them.
        malformed("not settings as Kafka writes them", error.position or 0)
    shown = {name: shown_config(name, value) for name, value in settings.items()}
    yield ClusterEntry(entity_path=names[""], settings=shown)


def config_change_entry(_: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """/config/changes/[change]: whose settings changed; in 0.8 the topic as a JSON text."""
    value = read_json(data)
    if isinstance(value, str):
        yield ClusterEntry(entity_path=f"topics/{value}")
        return
    values = read_object(data)
    path = optional_text(values, "entity_path")
    kind, name = (optional_text(values, field) for field in ("entity_type", "entity_name"))
    if path is None and (kind is None or name is None):
        malformed("no field entity_path, nor entity_type and entity_name")
    yield ClusterEntry(entity_path=path if path is not None else f"{kind}/{name}")


def deleted_topic_entry(names: Mapping[str, str], _: bytes | None) -> Iterator[ClusterEntry]:
    """/admin/delete_topics/[topic]: a topic that is to be deleted; its data says nothing."""
    yield ClusterEntry(topic=names["topic"])


def partitions_entry(_: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """Yield znodes that list partitions: those to be given other replicas, or their preferred
    leaders, and those whose in-sync replicas have changed."""
    for each in object_list(read_object(data), "partitions"):
        replicas = each.get("replicas")
        yield ClusterEntry(
            topic=optional_text(each, "topic"),
            partition=int_field(each, "partition"),
            replicas=None if replicas is None else broker_ids(replicas, "replicas"),
        )


def broker_event_entry(_: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """Yield a notification from a broker, or a block of producer ids that it has taken."""
    yield ClusterEntry(broker_id=optional_int(read_object(data), "broker"))


def plain_entry(_: Mapping[str, str], data: bytes | None) -> Iterator[ClusterEntry]:
    """Yield what is shown as it is."""
    znode_text(data)
    yield ClusterEntry()
