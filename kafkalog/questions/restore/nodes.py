"""The nodes of the restored cluster, and the files beside the logs: server.properties,
meta.properties and checkpoints. Rules: docs/restore.md F1031 to F1033, F1040 and F1046.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkalog.format.side_files.checkpoints import TopicPartition, write_offset_checkpoint
from kafkalog.questions.restore.partitions.partition_files import WrittenPartition
from kafkalog.storage.names import (
    CLEANER_OFFSETS,
    CONSUMER_OFFSETS,
    LOG_STARTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

LOG_DIRECTORY = "data"
SERVER_PROPERTIES = "server.properties"
_LISTENER, _CONTROLLER = "PLAINTEXT", "CONTROLLER"


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is broker and controller. `directory` is where its files are, below the target;
    `directory_id` the new id of its log directory."""

    node_id: int
    host: str
    port: int
    controller_port: int
    directory: str
    directory_id: str

    @property
    def log_directory(self) -> str:
        """The log directory, below the target."""
        return os.path.join(self.directory, LOG_DIRECTORY)

    @property
    def controller_place(self) -> str:
        """HOST:PORT of the controller."""
        return f"{self.host}:{self.controller_port}"


@dataclass(frozen=True)
class NodeSettings:
    """What server.properties says beside addresses."""

    partitions: Mapping[str, int]
    replication: int
    is_dynamic: bool
    has_acls: bool


def server_properties(node: Node, nodes: Sequence[Node], settings: NodeSettings) -> str:
    """Return a complete server.properties, paths relative to its directory."""
    copies = settings.replication
    in_sync = max(1, copies - 1)
    values: dict[str, object] = {"process.roles": "broker,controller", "node.id": node.node_id}
    if settings.is_dynamic:
        places = ",".join(each.controller_place for each in nodes)
        values["controller.quorum.bootstrap.servers"] = places
    else:
        voters = ",".join(f"{each.node_id}@{each.controller_place}" for each in nodes)
        values["controller.quorum.voters"] = voters
    own = f"{_LISTENER}://{node.host}:{node.port}"
    controller = f"{_CONTROLLER}://{node.controller_place}"
    values |= {
        "listeners": f"{own},{controller}",
        "advertised.listeners": f"{own},{controller}",
        "listener.security.protocol.map": f"{_LISTENER}:PLAINTEXT,{_CONTROLLER}:PLAINTEXT",
        "controller.listener.names": _CONTROLLER,
        "inter.broker.listener.name": _LISTENER,
        "log.dirs": LOG_DIRECTORY,
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
    }
    for topic, prefix, replication in (
        (CONSUMER_OFFSETS, "offsets.topic", "offsets.topic.replication.factor"),
        (TRANSACTION_STATE, "transaction.state.log", "transaction.state.log.replication.factor"),
        (
            SHARE_GROUP_STATE,
            "share.coordinator.state.topic",
            "share.coordinator.state.topic.replication.factor",
        ),
    ):
        if topic in settings.partitions:
            values[f"{prefix}.num.partitions"] = settings.partitions[topic]
        values[replication] = copies
    values["transaction.state.log.min.isr"] = in_sync
    values["share.coordinator.state.topic.min.isr"] = in_sync
    if settings.has_acls:
        values |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
        }
    lines = [f"{name}={value}" for name, value in values.items()]
    return "\n".join([*_HEAD, *lines, ""])


_HEAD = (
    "# Written by kafkalog restore. Start the node in this directory: log.dirs is relative to it.",
    "# The listeners have no encryption, and everybody who reaches them may do everything: set",
    "# listeners and security as they were before clients come.",
)


def write_checkpoints(log_directory: str, written: Sequence[WrittenPartition]) -> None:
    """Write the checkpoints at the top of a log directory."""
    ends = {(each.topic, each.partition): each.end for each in written}
    starts = {(each.topic, each.partition): each.start for each in written if each.start}
    recovery = {(each.topic, each.partition): each.recovery_point for each in written}
    cleaned = {
        (each.topic, each.partition): each.cleaner for each in written if each.cleaner is not None
    }
    checkpoints: Sequence[tuple[str, Mapping[TopicPartition, int]]] = (
        (REPLICATION_OFFSETS, ends),
        (LOG_STARTS, starts),
        (RECOVERY_POINTS, recovery),
        (CLEANER_OFFSETS, cleaned),
    )
    for name, offsets in checkpoints:
        with open(os.path.join(log_directory, name), "x", encoding="utf-8") as file:
            file.write(write_offset_checkpoint(offsets))
