"""What each record of `__cluster_metadata` does to the image.

Nothing fails on what the records say: a record that is not known, or that contradicts the image, is
kept in the image's `remarks`. Rules: docs/format.md F760 to F763; which records are in force: F195.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from kafkalog.coordination.metadata import codes
from kafkalog.coordination.metadata.codes import named
from kafkalog.coordination.metadata.image import (
    KRAFT_VERSION,
    Change,
    ContradictionError,
    Key,
    MetadataImage,
    Remark,
    Row,
    Values,
)

_NO_LEADER_CHANGE = -2
_NO_RECOVERY_CHANGE = -1


class MetadataRecord(Protocol):
    """A record of `__cluster_metadata`; `value` is None where it cannot be read, as `detail`
    says."""

    @property
    def offset(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    @property
    def value(self) -> Values | None: ...
    @property
    def detail(self) -> str | None: ...


def apply(image: MetadataImage, record: MetadataRecord) -> list[Change]:
    """Let the image take a record that is in force, and return what it changed."""
    return [change for change in _effects(image, record) if change.old != change.new]


def take(image: MetadataImage, record: MetadataRecord) -> None:
    """Let the image take a record that is in force."""
    for _ in _effects(image, record):
        pass


def _effects(image: MetadataImage, record: MetadataRecord) -> Iterator[Change]:
    effect = _EFFECTS.get(record.name or "")
    if record.value is None or effect is None:
        detail = record.detail or "a record of a type that is not known here"
        image.remarks.append(Remark(record.offset, record.name, detail))
        return
    try:
        yield from effect(image, record.value)
    except ContradictionError as error:
        image.remarks.append(Remark(record.offset, record.name, str(error), True))


def image_of(records: Iterable[MetadataRecord]) -> MetadataImage:
    """Return the image of records that are in force, in their order."""
    image = MetadataImage()
    for record in records:
        take(image, record)
    return image


def _topic(image: MetadataImage, value: Values) -> Iterator[Change]:
    known = image.id_of_topic(value["name"])
    if known is not None:
        raise ContradictionError(f"there is a topic {value['name']} already, of the id {known}")
    yield image.put("topic", (value["topicId"],), {"topic": value["name"]})


def _remove_topic(image: MetadataImage, value: Values) -> Iterator[Change]:
    topic_id = value["topicId"]
    topic = image.existing("topic", topic_id)["topic"]
    for key in image.group("config", "topic", topic):
        yield image.remove("config", key)
    for key in image.group("partition", topic_id):
        yield image.remove("partition", key)
    yield image.remove("topic", (topic_id,))


def _partition(image: MetadataImage, value: Values) -> Iterator[Change]:
    replicas = value["replicas"]
    image.existing("topic", value["topicId"])
    row = {
        "leader": value["leader"],
        "leader_epoch": value["leaderEpoch"],
        "partition_epoch": value["partitionEpoch"],
        "replicas": replicas,
        "isr": value["isr"],
        "adding_replicas": value["addingReplicas"],
        "removing_replicas": value["removingReplicas"],
        "eligible_leader_replicas": value.get("eligibleLeaderReplicas") or [],
        "last_known_elr": value.get("lastKnownElr") or [],
        "leader_recovery_state": named(codes.RECOVERY_STATES, value["leaderRecoveryState"]),
        "directories": value.get("directories") or [codes.MIGRATING] * len(replicas),
    }
    yield image.put("partition", (value["topicId"], value["partitionId"]), row)


# The fields of a change of a partition that replace those of the row where they are not null.
_PARTITION_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "removingReplicas": "removing_replicas",
    "addingReplicas": "adding_replicas",
    "eligibleLeaderReplicas": "eligible_leader_replicas",
    "lastKnownElr": "last_known_elr",
    "directories": "directories",
}


def _change_partition(image: MetadataImage, value: Values) -> Iterator[Change]:
    key = (value["topicId"], value["partitionId"])
    row = dict(image.existing("partition", *key))
    for name, column in _PARTITION_LISTS.items():
        if (given := value.get(name)) is not None:
            row[column] = given
    if not row["directories"]:
        row["directories"] = [codes.MIGRATING] * len(row["replicas"])
    if value["leader"] != _NO_LEADER_CHANGE:
        row["leader"] = value["leader"]
        row["leader_epoch"] += 1
    if value["leaderRecoveryState"] != _NO_RECOVERY_CHANGE:
        row["leader_recovery_state"] = named(codes.RECOVERY_STATES, value["leaderRecoveryState"])
    row["partition_epoch"] += 1
    yield image.put("partition", key, row)


def _clear_elr(image: MetadataImage, value: Values) -> Iterator[Change]:
    topic = value["topicName"]
    ids = [key[0] for key, row in image.tables["topic"].items() if topic in ("", row["topic"])]
    if topic and not ids:
        raise ContradictionError(f"there is no topic {topic}")
    for key in [key for topic_id in ids for key in image.group("partition", topic_id)]:
        row = image.tables["partition"][key]
        if row["eligible_leader_replicas"] or row["last_known_elr"]:
            cleared: Row = {"eligible_leader_replicas": [], "last_known_elr": []}
            epoch = {"partition_epoch": row["partition_epoch"] + 1}
            yield image.put("partition", key, {**row, **cleared, **epoch})


def _broker(image: MetadataImage, value: Values) -> Iterator[Change]:
    row = {
        "broker_epoch": value["brokerEpoch"],
        "is_fenced": value["fenced"],
        "is_in_controlled_shutdown": value.get("inControlledShutdown", False),
        "rack": value["rack"],
        "end_points": sorted(map(_end_point, value["endPoints"])),
        "incarnation_id": value["incarnationId"],
        "log_dirs": value.get("logDirs", []),
        "cordoned_log_dirs": value.get("cordonedLogDirs") or [],
        "features": sorted(map(_supported, value["features"])),
        "is_migrating_from_zookeeper": value.get("isMigratingZkBroker", False),
    }
    yield image.put("broker", (value["brokerId"],), row)


def _end_point(value: Values) -> str:
    """Return a listener as `NAME:PROTOCOL://HOST:PORT`, without the protocol if it is the name."""
    name = value["name"]
    protocol = named(codes.SECURITY_PROTOCOLS, value["securityProtocol"])
    prefix = name if name == protocol else f"{name}:{protocol}"
    return f"{prefix}://{value['host']}:{value['port']}"


def _address(value: Values) -> str:
    """Return a voter's listener, whose protocol is not recorded, as `NAME://HOST:PORT`."""
    return f"{value['name']}://{value['host']}:{value['port']}"


def _supported(value: Values) -> str:
    """Return the levels of a feature that a node supports, as `NAME=FIRST-LAST`."""
    return f"{value['name']}={value['minSupportedVersion']}-{value['maxSupportedVersion']}"


def _unregister_broker(image: MetadataImage, value: Values) -> Iterator[Change]:
    image.existing("broker", value["brokerId"])
    yield image.remove("broker", (value["brokerId"],))


def _with_broker(image: MetadataImage, broker_id: int, columns: Row) -> Iterator[Change]:
    yield image.put("broker", (broker_id,), {**image.existing("broker", broker_id), **columns})


def _fence(image: MetadataImage, value: Values) -> Iterator[Change]:
    return _with_broker(image, value["id"], {"is_fenced": True})


def _unfence(image: MetadataImage, value: Values) -> Iterator[Change]:
    return _with_broker(image, value["id"], {"is_fenced": False})


def _change_broker(image: MetadataImage, value: Values) -> Iterator[Change]:
    columns: dict[str, Any] = {}
    if value["fenced"]:
        columns["is_fenced"] = value["fenced"] > 0
    if value.get("inControlledShutdown"):
        columns["is_in_controlled_shutdown"] = True
    if value.get("logDirs"):
        columns["log_dirs"] = value["logDirs"]
    if value.get("cordonedLogDirs") is not None:
        columns["cordoned_log_dirs"] = value["cordonedLogDirs"]
    return _with_broker(image, value["brokerId"], columns)


def _controller(image: MetadataImage, value: Values) -> Iterator[Change]:
    row = {
        "incarnation_id": value["incarnationId"],
        "end_points": sorted(map(_end_point, value["endPoints"])),
        "features": sorted(map(_supported, value["features"])),
        "is_ready_for_zookeeper_migration": value["zkMigrationReady"],
    }
    yield image.put("controller", (value["controllerId"],), row)


def _unregister_controller(image: MetadataImage, value: Values) -> Iterator[Change]:
    image.existing("controller", value["controllerId"])
    yield image.remove("controller", (value["controllerId"],))


def _config(image: MetadataImage, value: Values) -> Iterator[Change]:
    resource = named(codes.CONFIG_RESOURCES, value["resourceType"])
    key = (resource, value["resourceName"], value["name"])
    if value["value"] is None:
        yield image.remove("config", key)
    else:
        yield image.put("config", key, {"value": value["value"]})


def _acl(image: MetadataImage, value: Values) -> Iterator[Change]:
    row = {
        "principal": value["principal"],
        "permission": named(codes.PERMISSIONS, value["permissionType"]),
        "operation": named(codes.OPERATIONS, value["operation"]),
        "resource_type": named(codes.ACL_RESOURCES, value["resourceType"]),
        "resource_name": value["resourceName"],
        "pattern_type": named(codes.PATTERNS, value["patternType"]),
        "host": value["host"],
    }
    yield image.put("acl", (value["id"],), row)


def _remove_acl(image: MetadataImage, value: Values) -> Iterator[Change]:
    image.existing("acl", value["id"])
    yield image.remove("acl", (value["id"],))


def _user_key(value: Values) -> Key:
    return value["name"], named(codes.SCRAM_MECHANISMS, value["mechanism"])


def _user(image: MetadataImage, value: Values) -> Iterator[Change]:
    row = {
        "iterations": value["iterations"],
        "salt": value["salt"],
        "stored_key": value["storedKey"],
        "server_key": value["serverKey"],
    }
    yield image.put("user", _user_key(value), row)


def _remove_user(image: MetadataImage, value: Values) -> Iterator[Change]:
    image.existing("user", *_user_key(value))
    yield image.remove("user", _user_key(value))


def _quota(image: MetadataImage, value: Values) -> Iterator[Change]:
    entity = tuple(sorted((each["entityType"], each["entityName"]) for each in value["entity"]))
    key = (entity, value["key"])
    if value["remove"]:
        yield image.remove("quota", key)
    else:
        yield image.put("quota", key, {"value": value["value"]})


def _feature(image: MetadataImage, value: Values) -> Iterator[Change]:
    if value["name"] == KRAFT_VERSION:
        raise ContradictionError(
            f"only control records set {KRAFT_VERSION}: Kafka's quorum goes by no other record"
        )
    yield _level(image, value["name"], value["featureLevel"])


def _level(image: MetadataImage, name: str, level: int) -> Change:
    """Return the change to a level of a feature; 0 removes it."""
    if level:
        return image.put("feature", (name,), {"level": level})
    return image.remove("feature", (name,))


def _token(image: MetadataImage, value: Values) -> Iterator[Change]:
    row = {
        "owner": value["owner"],
        "requester": value["requester"],
        "renewers": value["renewers"],
        "issued_ms": value["issueTimestamp"],
        "expires_ms": value["expirationTimestamp"],
        "last_expiry_ms": value["maxTimestamp"],
    }
    yield image.put("token", (value["tokenId"],), row)


def _remove_token(image: MetadataImage, value: Values) -> Iterator[Change]:
    yield image.remove("token", (value["tokenId"],))


def _producer_ids(image: MetadataImage, value: Values) -> Iterator[Change]:
    # Who asked for the last block is not in snapshots.
    yield image.put("producer_ids", (), {"next_producer_id": value["nextProducerId"]})


def _zookeeper_migration(image: MetadataImage, value: Values) -> Iterator[Change]:
    yield image.put("zookeeper_migration", (), {"state": value["zkMigrationState"]})


def _kraft_version(image: MetadataImage, value: Values) -> Iterator[Change]:
    yield _level(image, KRAFT_VERSION, value["kRaftVersion"])


def _voters(image: MetadataImage, value: Values) -> Iterator[Change]:
    rows: dict[Key, Row] = {}
    for voter in value["voters"]:
        levels = voter["kRaftVersionFeature"]
        rows[voter["voterId"], voter["voterDirectoryId"]] = {
            "end_points": sorted(map(_address, voter["endpoints"])),
            "min_kraft_version": levels["minSupportedVersion"],
            "max_kraft_version": levels["maxSupportedVersion"],
        }
    for key in [key for key in image.tables["voter"] if key not in rows]:
        yield image.remove("voter", key)
    for key, row in rows.items():
        yield image.put("voter", key, row)


def _leader(image: MetadataImage, value: Values) -> Iterator[Change]:
    voters = sorted(each["voterId"] for each in value["voters"])
    yield image.put("leader", (), {"leader_id": value["leaderId"], "voters": voters})


def _nothing(image: MetadataImage, value: Values) -> Iterator[Change]:
    return iter(())


_EFFECTS: Mapping[str, Callable[[MetadataImage, Values], Iterator[Change]]] = {
    "RegisterBrokerRecord": _broker,
    "UnregisterBrokerRecord": _unregister_broker,
    "TopicRecord": _topic,
    "PartitionRecord": _partition,
    "ConfigRecord": _config,
    "PartitionChangeRecord": _change_partition,
    "FenceBrokerRecord": _fence,
    "UnfenceBrokerRecord": _unfence,
    "RemoveTopicRecord": _remove_topic,
    "DelegationTokenRecord": _token,
    "UserScramCredentialRecord": _user,
    "FeatureLevelRecord": _feature,
    "ClientQuotaRecord": _quota,
    "ProducerIdsRecord": _producer_ids,
    "BrokerRegistrationChangeRecord": _change_broker,
    "AccessControlEntryRecord": _acl,
    "RemoveAccessControlEntryRecord": _remove_acl,
    "NoOpRecord": _nothing,
    "ZkMigrationStateRecord": _zookeeper_migration,
    "RemoveUserScramCredentialRecord": _remove_user,
    "RemoveDelegationTokenRecord": _remove_token,
    "RegisterControllerRecord": _controller,
    "ClearElrRecord": _clear_elr,
    "UnregisterControllerRecord": _unregister_controller,
    "LEADER_CHANGE": _leader,
    "SNAPSHOT_HEADER": _nothing,
    "SNAPSHOT_FOOTER": _nothing,
    "KRAFT_VERSION": _kraft_version,
    "KRAFT_VOTERS": _voters,
}
