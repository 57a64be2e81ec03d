"""Kafka's directories in ZooKeeper: which znode says what, as typed rows of each view.

Rules: docs/zookeeper.md F430 to F465.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kafkalog.coordination.zookeeper import cluster_znodes as cluster
from kafkalog.coordination.zookeeper.broker_znodes import (
    read_broker,
    read_broker_partitions,
    read_partition_state,
    read_topic,
)
from kafkalog.coordination.zookeeper.consumer_znodes import (
    broker_partition,
    read_consumer,
    read_offset,
    read_owner,
)
from kafkalog.coordination.zookeeper.znode_data import malformed, name_number
from kafkalog.coordination.zookeeper.znode_paths import PathTemplate
from kafkalog.errors import CorruptDataError

BROKER_REGISTRY = "broker_registry"
TOPIC_REGISTRY = "topic_registry"
PARTITION_STATES = "partition_states"
CONSUMER_REGISTRY = "consumer_registry"
CONSUMER_OFFSETS_VIEW = "consumer_offsets"
PARTITION_OWNERS = "partition_owners"
CLUSTER_ZNODES = "cluster_znodes"
DIRECTORY_VIEWS = (
    BROKER_REGISTRY,
    TOPIC_REGISTRY,
    PARTITION_STATES,
    CONSUMER_REGISTRY,
    CONSUMER_OFFSETS_VIEW,
    PARTITION_OWNERS,
    CLUSTER_ZNODES,
)

ZnodeRow = Mapping[str, object]
_Names = Mapping[str, str]
_Reader = Callable[[_Names, bytes | None], Iterator[ZnodeRow]]


class _Directory(NamedTuple):
    view: str
    template: PathTemplate
    read: _Reader
    kind: str | None = None  # of a cluster's znode


class KafkaRow(NamedTuple):
    """A row of a view, without what says where it was found; `reason` and `detail` in it say why
    a znode could not be read."""

    view: str
    values: ZnodeRow


def kafka_rows(path: str, data: bytes | None, view: str | None = None) -> Iterator[KafkaRow]:
    """Yield what a znode says, given its path below the cluster's root: rows of its view, or one
    row that says why it cannot be read. Znodes that are directories only have no rows."""
    for directory in _BY_TOP.get(path.strip("/").partition("/")[0], ()):
        names = directory.template.names(path) if view in (None, directory.view) else None
        if names is not None:
            yield from _rows(directory, names, data)
            return


def _rows(directory: _Directory, names: _Names, data: bytes | None) -> Iterator[KafkaRow]:
    known = _known_names(directory.view, names)
    if directory.kind is not None:
        known = {**known, "kind": directory.kind}
    try:
        found = list(directory.read(names, data))
    except CorruptDataError as error:
        found = [{"reason": error.fault, "detail": error.detail}]
    for values in found:
        yield KafkaRow(directory.view, {**known, **values})


def _known_names(view: str, names: _Names) -> dict[str, object]:
    """Return the names in a path as columns: what is known where the data cannot be read."""
    known: dict[str, object] = {
        name: value for name, value in names.items() if name in ("group_id", "consumer_id", "topic")
    }
    if "broker_partition" in names:
        place = broker_partition(names["broker_partition"])
        known["broker_id"] = place.broker_id if place else None
        known["partition"] = place.partition if place else None
    for name in ("partition", "broker_id"):
        if name in names:
            known[name] = name_number(names[name])
    return known


def _broker(names: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
    _number(names, "broker_id")
    broker = read_broker(data)
    features = broker.features
    yield {
        **broker._asdict(),
        "endpoints": broker.endpoints,
        "features": None
        if features is None
        else [
            {"name": name, "min_version": low, "max_version": high}
            for name, (low, high) in features.items()
        ],
    }


def _number(names: _Names, name: str) -> int:
    number = name_number(names[name])
    return malformed(f"no {name}: {names[name][:100]!r}") if number is None else number


def _topic(_: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
    topic = read_topic(data)
    facts = {"topic_id": topic.topic_id, "version": topic.version}
    for partition, replicas in topic.partitions.items():
        yield {
            **facts,
            "partition": partition,
            "replicas": replicas,
            "adding_replicas": topic.adding_replicas.get(partition),
            "removing_replicas": topic.removing_replicas.get(partition),
        }
    if not topic.partitions and data:
        yield facts


def _oldest_topic(names: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
    if name_number(names["broker_id"]) is not None:  # the others are directories of 0.8
        yield {"broker_partitions": read_broker_partitions(data)}


def _state(names: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
    _number(names, "partition")
    yield read_partition_state(data)._asdict()


def _consumer(_: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
    consumer = read_consumer(data)
    subscription = consumer.subscription
    for subscribed, streams in subscription.streams.items():
        yield {
            "pattern": subscription.pattern.value,
            "subscribed": subscribed,
            "streams": streams,
            "version": consumer.version,
            "timestamp_ms": consumer.timestamp_ms,
        }
    if not subscription.streams:
        yield {"pattern": subscription.pattern.value}


def _offset(names: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
    _place(names)
    yield {"committed_offset": read_offset(data)}


def _owner(names: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
    _place(names)
    owner = read_owner(data)
    yield {"owner": owner.name, "consumer_id": owner.consumer_id, "stream": owner.number}


def _place(names: _Names) -> None:
    if broker_partition(names["broker_partition"]) is None:
        malformed(f"the name is not a partition: {names['broker_partition'][:100]!r}")


def _cluster(parser: cluster.ClusterParser) -> _Reader:
    def read(names: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
        for entry in parser(names, data):
            yield {name: value for name, value in entry._asdict().items() if value is not None}

    return read


def _with_data(parser: cluster.ClusterParser) -> _Reader:
    """Directories without data say nothing."""
    read = _cluster(parser)
    return lambda names, data: read(names, data) if data else iter(())


def _shown(parser: cluster.ClusterParser) -> _Reader:
    """Read a znode, and keep its data as text."""
    read = _with_data(parser)

    def read_shown(names: _Names, data: bytes | None) -> Iterator[ZnodeRow]:
        for row in read(names, data):
            yield {**row, "value": (data or b"").decode("utf-8")}

    return read_shown


_CONSUMERS = "/consumers/[group_id]"
_CLUSTER_DIRECTORIES: tuple[tuple[str, str, _Reader], ...] = (
    ("controller", "/controller", _shown(cluster.controller_entry)),
    ("controller_epoch", "/controller_epoch", _shown(cluster.controller_epoch_entry)),
    ("cluster_id", "/cluster/id", _shown(cluster.cluster_id_entry)),
    ("config_change", "/config/changes/[change]", _shown(cluster.config_change_entry)),
    ("config", "/config/...", _with_data(cluster.config_entry)),
    ("deleted_topic", "/admin/delete_topics/[topic]", _cluster(cluster.deleted_topic_entry)),
    ("reassignment", "/admin/reassign_partitions", _shown(cluster.partitions_entry)),
    (
        "preferred_replica_election",
        "/admin/preferred_replica_election",
        _shown(cluster.partitions_entry),
    ),
    ("isr_change", "/isr_change_notification/[change]", _shown(cluster.partitions_entry)),
    ("log_dir_event", "/log_dir_event_notification/[event]", _shown(cluster.broker_event_entry)),
    ("producer_id_block", "/latest_producer_id_block", _shown(cluster.broker_event_entry)),
    ("feature", "/feature", _shown(cluster.plain_entry)),
    ("migration", "/migration", _shown(cluster.plain_entry)),
    ("acl", "/kafka-acl/...", _shown(cluster.plain_entry)),
    ("acl", "/kafka-acl-extended/...", _shown(cluster.plain_entry)),
    ("acl_change", "/kafka-acl-changes/[change]", _shown(cluster.plain_entry)),
    ("acl_change", "/kafka-acl-extended-changes/...", _shown(cluster.plain_entry)),
    # Tokens are secrets: that they are there is all that is shown.
    ("delegation_token", "/delegation_token/...", _with_data(cluster.plain_entry)),
)
_DIRECTORIES = (
    _Directory(BROKER_REGISTRY, PathTemplate("/brokers/ids/[broker_id]"), _broker),
    _Directory(TOPIC_REGISTRY, PathTemplate("/brokers/topics/[topic]"), _topic),
    _Directory(TOPIC_REGISTRY, PathTemplate("/brokers/topics/[topic]/[broker_id]"), _oldest_topic),
    _Directory(
        PARTITION_STATES,
        PathTemplate("/brokers/topics/[topic]/partitions/[partition]/state"),
        _state,
    ),
    _Directory(CONSUMER_REGISTRY, PathTemplate(f"{_CONSUMERS}/ids/[consumer_id]"), _consumer),
    _Directory(
        CONSUMER_OFFSETS_VIEW,
        PathTemplate(f"{_CONSUMERS}/offsets/[topic]/[broker_partition]"),
        _offset,
    ),
    _Directory(
        PARTITION_OWNERS, PathTemplate(f"{_CONSUMERS}/owners/[topic]/[broker_partition]"), _owner
    ),
    *(
        _Directory(CLUSTER_ZNODES, PathTemplate(path), read, kind)
        for kind, path, read in _CLUSTER_DIRECTORIES
    ),
)
_BY_TOP: dict[str, list[_Directory]] = {}
for _directory in _DIRECTORIES:
    _BY_TOP.setdefault(_directory.template.text.split("/")[1], []).append(_directory)
