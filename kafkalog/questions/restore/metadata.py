"""The cluster's metadata as of the moment, changed to what is restored: records that are added
after those of the old log. Rules: docs/restore.md F1031, F1032, F1035 to F1040,
F1047, F1050, F1058 and F1061.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from kafkalog.coordination.metadata.image import KRAFT_VERSION, MetadataImage, Moment
from kafkalog.coordination.metadata.releases import ELR_VERSION, METADATA_VERSION
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.metadata.cluster_from_data import RebuiltRecord, record_bytes
from kafkalog.inspection.metadata.copies import MetadataCopy
from kafkalog.inspection.metadata.new_directory import NewDirectory, now_ms, write_directory
from kafkalog.inspection.metadata.quorum import Voter
from kafkalog.inspection.metadata.rebuilt_quorum import batches_below
from kafkalog.inspection.metadata.replay import MetadataReplay, image_at
from kafkalog.questions.restore.nodes import Node
from kafkalog.storage.names import INTERNAL_TOPICS

_TOPIC, _BROKER = 2, 4
_RESOURCES = {"topic": _TOPIC, "broker": _BROKER}
_IDS_OF_A_BLOCK = 1000
# Blocks that brokers can have got since the last copy was made.
_UNSEEN_BLOCKS = 1000
_BATCH_RECORDS = 500
_WITH_DIRECTORIES = 17
_NO_LEADER = -1
RETENTION = ("retention.ms", "retention.bytes")
MIN_IN_SYNC = "min.insync.replicas"
_TIER = ("remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable")
_OF_TIER = (*_TIER, "local.retention.ms", "local.retention.bytes")
# Settings of a host: listeners, and files and directories of it.
_OF_HOSTS = ("listener", "ssl.", "sasl.", "log.dir", "metadata.log.dir", "advertised.", "principal")


@dataclass(frozen=True, slots=True)
class ChangedConfig:
    """A config that the restore changes: `before` and `after` are None where it is not set."""

    resource: str
    name: str
    config: str
    before: str | None
    after: str | None

    @property
    def undo(self) -> str:
        """The command that sets it back."""
        command = self._command(self.before)
        # Retention would delete the objects of the old cluster.
        is_of_tier = self.config in _OF_TIER
        return f"{command}  # never with the old cluster's store" if is_of_tier else command

    @property
    def command(self) -> str:
        """The command that makes the change."""
        return self._command(self.after)

    def _command(self, wanted: str | None) -> str:
        entity = f"--entity-type {self.resource}s --entity-name {self.name or '<default>'}"
        if self.resource == "broker" and not self.name:
            entity = "--entity-type brokers --entity-default"
        if wanted is None:
            change = f"--delete-config {self.config}"
        else:
            value = f"[{wanted}]" if "," in wanted else wanted
            change = f"--add-config {self.config}={value}"
        return f"kafka-configs.sh --bootstrap-server HOST:PORT --alter {entity} {change}"


def _is_of_old_hosts(resource: str, name: str, config: str) -> bool:
    """Return whether a config is about nodes that are not restored, or about their tier."""
    if resource == "topic":
        return config in _OF_TIER
    return resource == "broker" and (bool(name) or config.startswith(_OF_HOSTS))


@dataclass
class RestoredMetadata:
    """The new log of `__cluster_metadata`. `epochs` are the least leader epochs of the restored
    partitions by topic id and number; `placed` the nodes that each is on, the leader first."""

    copy: MetadataCopy
    as_of_ms: int
    nodes: Sequence[Node]
    cluster_id: str
    raft_epoch: int
    epochs: Mapping[tuple[str, int], int]
    placed: Mapping[tuple[str, int], Sequence[Node]]
    highest_producer_id: int
    left_out: Sequence[str] = ()
    keeps_retention: bool = False

    @cached_property
    def replay(self) -> MetadataReplay:
        """The metadata as of the moment."""
        return image_at(self.copy.log, Moment(time_ms=self.as_of_ms))

    @property
    def image(self) -> MetadataImage:
        """The image as of the moment."""
        return self.replay.image

    @property
    def is_dynamic(self) -> bool:
        """Whether the log names the voters."""
        return self._level(KRAFT_VERSION) > 0

    def records(self) -> Iterator[RebuiltRecord]:
        """Yield the records that are added."""
        if self.replay.has_open_transaction:
            values = {"reason": "restored as of a moment before the end"}
            yield RebuiltRecord("AbortTransactionRecord", "", 0, values)
        yield from self._unregistered()
        yield from self._removed_topics()
        yield from self._partitions()
        yield from self._configs()
        yield self._producer_ids()

    @property
    def next_producer_id(self) -> int:
        """The first id of the first block that is given out."""
        row = self.image.tables["producer_ids"].get(())
        known = 0 if row is None else int(row["next_producer_id"])
        least = max(known, self.highest_producer_id + 1)
        return (-(-least // _IDS_OF_A_BLOCK) + _UNSEEN_BLOCKS) * _IDS_OF_A_BLOCK

    def _unregistered(self) -> Iterator[RebuiltRecord]:
        for row in self.image.rows("broker"):
            values = {"brokerId": row["broker_id"], "brokerEpoch": row["broker_epoch"]}
            yield RebuiltRecord("UnregisterBrokerRecord", str(row["broker_id"]), 0, values)

    def _removed_topics(self) -> Iterator[RebuiltRecord]:
        for topic_id in self.left_out:
            yield RebuiltRecord("RemoveTopicRecord", topic_id, 0, {"topicId": topic_id})

    def _partitions(self) -> Iterator[RebuiltRecord]:
        for key, row in self.image.tables["partition"].items():
            topic_id, partition = key
            if topic_id in self.left_out:
                continue
            nodes = self.placed[topic_id, partition]
            ids = [node.node_id for node in nodes]
            values: dict[str, object] = {
                "partitionId": partition,
                "topicId": topic_id,
                "replicas": ids,
                "isr": ids,
                "removingReplicas": [],
                "addingReplicas": [],
                # A broker that finds itself the leader begins to load coordinators, and stops with
                # errors when the controller registers it, which takes away the leader.
                "leader": _NO_LEADER,
                "leaderRecoveryState": 0,
                "leaderEpoch": self.epochs[topic_id, partition],
                "partitionEpoch": row["partition_epoch"] + 1,
            }
            if self._has_directories:
                values["directories"] = [node.directory_id for node in nodes]
            version = 1 if self._has_directories else 0
            if self._has_eligible_replicas:
                # The ISR loses brokers that register after an unclean stop.
                version, values["lastKnownElr"] = 2, ids[:1]
            yield RebuiltRecord("PartitionRecord", f"{topic_id}-{partition}", version, values)

    @property
    def _has_directories(self) -> bool:
        return self._level(METADATA_VERSION) >= _WITH_DIRECTORIES

    @property
    def _has_eligible_replicas(self) -> bool:
        return self._level(ELR_VERSION) > 0

    def _level(self, feature: str) -> int:
        row = self.image.tables["feature"].get((feature,))
        return 0 if row is None else int(row["level"])

    def _configs(self) -> Iterator[RebuiltRecord]:
        for change in self.configs:
            values = {
                "resourceType": _RESOURCES[change.resource],
                "resourceName": change.name,
                "name": change.config,
                "value": change.after,
            }
            yield RebuiltRecord("ConfigRecord", f"{change.name} {change.config}", 0, values)

    def _changed_configs(self) -> Iterator[ChangedConfig]:
        configs = self.image.tables["config"]
        replicas = min(len(nodes) for nodes in self.placed.values()) if self.placed else 1
        for (resource, name, config), row in configs.items():
            value = row["value"]
            if config == MIN_IN_SYNC and value.isdecimal() and int(value) > max(1, replicas - 1):
                yield ChangedConfig(resource, name, config, value, str(max(1, replicas - 1)))
            elif _is_of_old_hosts(resource, name, config):
                yield ChangedConfig(resource, name, config, value, None)
        for (topic_id,), row in self.image.tables["topic"].items():
            topic = row["topic"]
            policy = configs.get(("topic", topic, "cleanup.policy"), {}).get("value", "delete")
            if topic_id in self.left_out or topic in INTERNAL_TOPICS or "delete" not in policy:
                continue
            for config in () if self.keeps_retention else RETENTION:
                before = configs.get(("topic", topic, config), {}).get("value")
                if before != "-1":
                    yield ChangedConfig("topic", topic, config, before, "-1")

    @cached_property
    def configs(self) -> list[ChangedConfig]:
        """The configs that are changed."""
        return [*self._changed_configs()]

    def _producer_ids(self) -> RebuiltRecord:
        values = {
            "brokerId": self.nodes[0].node_id,
            "brokerEpoch": -1,
            "nextProducerId": self.next_producer_id,
        }
        return RebuiltRecord("ProducerIdsRecord", "producer ids", 0, values)

    def write(self, node: Node, target: str) -> None:
        """Write the metadata and meta.properties of a node into its log directory. Raises OSError
        and what reading the copy raises."""
        voters = tuple(
            Voter(each.node_id, each.directory_id, (f"CONTROLLER://{each.controller_place}",))
            for each in self.nodes
        )
        epoch = self.raft_epoch + 1
        new = NewDirectory(self.cluster_id, node.node_id, voters, self.is_dynamic, epoch)
        epochs = self.copy.walk.epochs
        start = epochs[0].start_offset if epochs else self.copy.log.start_offset
        snapshots = [
            each
            for each in self.copy.log.snapshots
            if start <= each.end_offset <= self.replay.next_offset
        ]
        write_directory(
            new, target, self._batches(start, epoch), start_offset=start, snapshots=snapshots
        )

    def _batches(self, start: int, epoch: int) -> Iterator[bytes]:
        offset = start
        for batch in batches_below(self.copy, start, self.replay.next_offset):
            yield batch.data
            offset = batch.header.last_offset + 1
        time_ms = now_ms()
        records = self.records()
        while part := [
            Record(offset + number, time_ms, 0, None, record_bytes(each))
            for number, each in enumerate(islice(records, _BATCH_RECORDS))
        ]:
            yield write_batch(part, BatchFields(leader_epoch=epoch))
            offset += len(part)
