"""The image of a cluster that keeps its metadata in ZooKeeper, in the tables of a KRaft cluster's.

What ZooKeeper does not know is None. Rules: docs/zookeeper.md F435, F440, F441, F465, F830 to
F833, F892 and F893.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from kafkalog.coordination.metadata.cluster_rows import ClusterRow, cluster_rows
from kafkalog.coordination.metadata.image import Key, MetadataImage, Row
from kafkalog.coordination.zookeeper.broker_znodes import (
    BrokerRegistration,
    PartitionState,
    TopicRegistration,
    read_broker,
    read_partition_state,
    read_topic,
)
from kafkalog.coordination.zookeeper.znode_data import (
    JsonObject,
    int_field,
    malformed,
    name_number,
    object_field,
    object_list,
    optional_text,
    read_object,
    text_list,
    text_map,
    timestamp_field,
)
from kafkalog.coordination.zookeeper.znode_paths import PathTemplate
from kafkalog.errors import CorruptDataError

# The kinds of rows that ZooKeeper knows.
ZNODE_KINDS = ("topic", "partition", "broker", "config", "acl", "user", "quota", "feature", "token")
# Columns of these that ZooKeeper never knows.
NOT_KNOWN: Mapping[str, tuple[str, ...]] = {
    "partition": (
        *("eligible_leader_replicas", "last_known_elr", "leader_recovery_state", "directories"),
    ),
    "broker": (
        *("is_fenced", "is_in_controlled_shutdown", "incarnation_id", "log_dirs"),
        "cordoned_log_dirs",
    ),
    "acl": ("acl_id",),
}
# What the znodes of these kinds are below.
SUBTREES = (
    *("/brokers", "/config", "/kafka-acl", "/kafka-acl-extended", "/feature"),
    "/delegation_token/tokens",
)
# Ids that ZooKeeper does not have begin with what no id and no topic's name has.
_NO_ID = "/"
_DEFAULT = "<default>"
_RESOURCES = {"topics": "topic", "brokers": "broker"}
_ENTITIES = {"users": "user", "clients": "client-id", "ips": "ip"}
_SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_ACL_RESOURCES = {
    "Topic": "topic",
    "Group": "group",
    "Cluster": "cluster",
    "TransactionalId": "transactional-id",
    "DelegationToken": "delegation-token",
    "User": "user",
}
_FEATURES_ENABLED = 1
_FEATURE_VERSIONS = (1, 2)
_LARGEST_LEVEL = 2**15 - 1
_TOKEN_VERSIONS = (1, 2, 3)
_REQUESTER_SINCE = 3
_TOKEN_TIMES = {
    "issued_ms": "issueTimestamp",
    "expires_ms": "expiryTimestamp",
    "last_expiry_ms": "maxTimestamp",
}
# Kinds and names; None for the default.
_Entity = tuple[tuple[str, str | None], ...]
_T = TypeVar("_T")


class ZnodeFacts(NamedTuple):
    """A znode by its path below the cluster's root."""

    path: str
    data: bytes | None
    version: int
    czxid: int


class UnreadableZnode(NamedTuple):
    """A znode that says nothing, and why."""

    path: str
    detail: str


@dataclass
class ZnodeImage:
    """The image of the znodes that were added; `unreadable` are those that say nothing."""

    image: MetadataImage = field(default_factory=MetadataImage)
    unreadable: list[UnreadableZnode] = field(default_factory=list)
    _topics: dict[str, TopicRegistration] = field(default_factory=dict)
    _states: dict[str, dict[int, tuple[PartitionState, int]]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    @classmethod
    def of(cls, znodes: Iterable[ZnodeFacts]) -> ZnodeImage:
        """Return the image of a cluster's znodes; others are passed over."""
        found = cls()
        for znode in znodes:
            for template, read in _READERS:
                names = template.names(znode.path)
                if names is not None and znode.data:
                    try:
                        read(found, names, znode)
                    except CorruptDataError as error:
                        found.unreadable.append(UnreadableZnode(znode.path, error.detail))
        found._put_topics()
        return found

    def rows(self, kind: str, *, show_secrets: bool = False) -> list[ClusterRow]:
        """Return the rows of one of ZNODE_KINDS."""
        return [
            {name: None if _is_no_id(name, value) else value for name, value in row.items()}
            for row in cluster_rows(kind, self.image, show_secrets=show_secrets)
        ]

    def _put_topics(self) -> None:
        for name, topic in self._topics.items():
            key: Key = (topic.topic_id or f"{_NO_ID}{name}",)
            self.image.put("topic", key, {"topic": name})
            for partition, replicas in topic.partitions.items():
                state, version = self._states[name].get(partition, (None, None))
                row = _partition_row(state, version, replicas)
                row["adding_replicas"] = list(topic.adding_replicas.get(partition, ()))
                row["removing_replicas"] = list(topic.removing_replicas.get(partition, ()))
                self.image.put("partition", (*key, partition), row)

    def add_topic(self, names: Mapping[str, str], znode: ZnodeFacts) -> None:
        """/brokers/topics/[topic]."""
        self._topics[names["topic"]] = read_topic(znode.data)

    def add_state(self, names: Mapping[str, str], znode: ZnodeFacts) -> None:
        """/brokers/topics/[topic]/partitions/[partition]/state."""
        state = read_partition_state(znode.data)
        self._states[names["topic"]][_number(names["partition"])] = state, znode.version

    def add_broker(self, names: Mapping[str, str], znode: ZnodeFacts) -> None:
        """/brokers/ids/[broker_id]."""
        row = _broker_row(read_broker(znode.data))
        key = (_number(names["broker_id"]),)
        self.image.put("broker", key, {**row, "broker_epoch": znode.czxid})

    def add_settings(self, names: Mapping[str, str], znode: ZnodeFacts) -> None:
        """/config/[kind]/...: settings of topics and brokers, quotas, SCRAM users."""
        kind, name = names["kind"], names[""]
        if kind in _RESOURCES:
            for config, value in _settings(znode).items():
                key = (_RESOURCES[kind], "" if name == _DEFAULT else name, config)
                self.image.put("config", key, {"value": value})
        elif kind in _ENTITIES:
            self._put_entity(_entity(kind, name), _settings(znode))

    def _put_entity(self, entity: _Entity, settings: Mapping[str, str]) -> None:
        for name, value in settings.items():
            if name in _SCRAM_MECHANISMS and [kind for kind, _ in entity] == ["user"]:
                self.image.put("user", (entity[0][1], name), _credential(value))
            else:
                self.image.put("quota", (entity, name), {"value": _quota(name, value)})

    def add_acl(self, names: Mapping[str, str], znode: ZnodeFacts) -> None:
        """/kafka-acl/[type]/[name] and /kafka-acl-extended/[pattern]/[type]/[name]."""
        rows = [
            {
                "principal": optional_text(each, "principal"),
                "permission": (optional_text(each, "permissionType") or "").lower(),
                "operation": optional_text(each, "operation"),
                "resource_type": _ACL_RESOURCES.get(names["type"], names["type"]),
                "resource_name": names["name"],
                "pattern_type": names.get("pattern", "literal"),
                "host": optional_text(each, "host"),
            }
            for each in object_list(read_object(znode.data), "acls")
        ]
        for row in rows:
            number = len(self.image.tables["acl"])
            self.image.put("acl", (f"{_NO_ID}{number}",), row)

    def add_features(self, _: Mapping[str, str], znode: ZnodeFacts) -> None:
        """/feature."""
        values = read_object(znode.data)
        _known_version(values, _FEATURE_VERSIONS)
        features = object_field(values, "features")
        levels = {name: _level(name, object_field(features, name)) for name in features}
        if int_field(values, "status") == _FEATURES_ENABLED:
            for name, level in levels.items():
                self.image.put("feature", (name,), {"level": level})

    def add_token(self, _: Mapping[str, str], znode: ZnodeFacts) -> None:
        """/delegation_token/tokens/[token]."""
        values = read_object(znode.data)
        version = _known_version(values, _TOKEN_VERSIONS)
        owner = _required("owner", optional_text(values, "owner"))
        requester: str | None = owner
        if version >= _REQUESTER_SINCE:
            requester = optional_text(values, "tokenRequester")
        renewers = _required("renewers", text_list(values, "renewers"))
        row = {
            "owner": unquote(owner),
            "requester": unquote(_required("tokenRequester", requester)),
            "renewers": [unquote(each) for each in renewers],
            **{
                column: _required(name, timestamp_field(values, name))
                for column, name in _TOKEN_TIMES.items()
            },
        }
        token_id = _required("tokenId", optional_text(values, "tokenId"))
        self.image.put("token", (token_id,), row)


def _is_no_id(name: str, value: object) -> bool:
    is_id = name in ("topic_id", "acl_id")
    return is_id and isinstance(value, str) and value.startswith(_NO_ID)


def _number(name: str) -> int:
    number = name_number(name)
    return malformed(f"the name is not a number: {name[:100]!r}") if number is None else number


def _partition_row(
    state: PartitionState | None, version: int | None, replicas: tuple[int, ...]
) -> dict[str, object]:
    return {
        "leader": -1 if state is None else state.leader,
        "leader_epoch": None if state is None else state.leader_epoch,
        "partition_epoch": version,
        "replicas": list(replicas),
        "isr": [] if state is None else list(state.isr),
        **dict.fromkeys(NOT_KNOWN["partition"]),
    }


def _broker_row(broker: BrokerRegistration) -> Row:
    protocols = broker.listener_security_protocol_map or {}
    end_points = broker.endpoints
    if end_points is None:
        end_points = (f"PLAINTEXT://{broker.host}:{broker.port}",)
    named = []
    for each in end_points:
        name, _, address = each.partition("://")
        protocol = protocols.get(name, name)
        named.append(each if name == protocol else f"{name}:{protocol}://{address}")
    features = (broker.features or {}).items()
    return {
        "rack": broker.rack,
        "end_points": sorted(named),
        **dict.fromkeys(NOT_KNOWN["broker"]),
        "features": sorted(f"{name}={low}-{high}" for name, (low, high) in features),
    }


def _required(name: str, value: _T | None) -> _T:
    return malformed(f"no field {name}") if value is None else value


def _known_version(values: JsonObject, known: tuple[int, ...]) -> int:
    version = int_field(values, "version")
    return version if version in known else malformed(f"version {version} is not known")


def _level(name: str, versions: JsonObject) -> int:
    """Return the highest of the levels between which a feature is."""
    level = int_field(versions, "max_version_level")
    if not 1 <= level <= _LARGEST_LEVEL:
        malformed(f"feature {name[:100]!r} has level {level}")
    return level


def _settings(znode: ZnodeFacts) -> dict[str, str]:
    try:
        return text_map(read_object(znode.data), "config") or {}
    except CorruptDataError as error:
        # Its own words have data in them, which can be secret.
        malformed("not settings as Kafka writes them", error.position or 0)


def _entity(kind: str, path: str) -> _Entity:
    """Return whom settings are for, by the path below /config: a user, a client, or the client of a
    user, `alice/clients/backup`."""
    parts = [kind, *path.split("/")]
    if len(parts) not in (2, 4) or any(each not in _ENTITIES for each in parts[::2]):
        malformed("not the path of a user, a client or an address")
    return tuple(
        sorted(
            (_ENTITIES[each], None if name == _DEFAULT else unquote(name))
            for each, name in zip(parts[::2], parts[1::2], strict=True)
        )
    )


def _quota(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        malformed(f"{name} is not a number")


def _credential(value: str) -> Row:
    fields = dict(each.partition("=")[::2] for each in value.split(","))
    iterations = name_number(fields.get("iterations", ""))
    if iterations is None:
        malformed("a credential without iterations")
    names = ("salt", "stored_key", "server_key")
    try:
        keys = {name: base64.b64decode(fields.get(name, ""), validate=True) for name in names}
    except ValueError:
        malformed("a credential that is not base64")
    return {"iterations": iterations, **keys}


_READERS: tuple[
    tuple[PathTemplate, Callable[[ZnodeImage, Mapping[str, str], ZnodeFacts], None]], ...
] = (
    (PathTemplate("/brokers/topics/[topic]"), ZnodeImage.add_topic),
    (PathTemplate("/brokers/topics/[topic]/partitions/[partition]/state"), ZnodeImage.add_state),
    (PathTemplate("/brokers/ids/[broker_id]"), ZnodeImage.add_broker),
    (PathTemplate("/config/[kind]/..."), ZnodeImage.add_settings),
    (PathTemplate("/kafka-acl/[type]/[name]"), ZnodeImage.add_acl),
    (PathTemplate("/kafka-acl-extended/[pattern]/[type]/[name]"), ZnodeImage.add_acl),
    (PathTemplate("/feature"), ZnodeImage.add_features),
    (PathTemplate("/delegation_token/tokens/[token]"), ZnodeImage.add_token),
)
