"""What becomes of each partition in a node's directories by the cluster's metadata.

Rules: docs/format.md F967 to F970, F1188 to F1191 and F1445 about leaders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog.coordination.metadata.codes import UNASSIGNED
from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.leader_election import (
    ElectionRules,
    Standing,
    StartingBroker,
    standing_after_start,
)
from kafkalog.coordination.metadata.releases import ELR_VERSION
from kafkalog.inspection.metadata.assigned_partitions import assigned_directory
from kafkalog.storage.names import PartitionName
from kafkalog.storage.partition_log import PARTITION_METADATA

NOT_IN_ZOOKEEPER = (
    "ZooKeeper has no such partition: the topic was deleted, and the broker keeps its directory"
)
UNCLEAN = "unclean.leader.election.enable"
WAITS = "; the partition waits for "
OFFLINE = "its log directory goes offline"
WITHOUT_ID = f"{PARTITION_METADATA} is missing, and without it the topic's id is not known"


# Rule: docs/format.md F1211.
NEW_DIRECTORY = (
    "its log directory is new: this node leads it with an empty log, at once or from the "
    "next start on"
)


@dataclass(frozen=True, slots=True)
class ReplicaFate:
    """Whether a partition's directory is set aside, and why; whether the partition has a leader
    once the node runs, None where that is not known; whether the node leads it with an empty log;
    the directory that takes the place at once; the line to type, where there is one of its own; why
    there is no leader, or one that costs records; the directory of the partition that stays in use
    beside one that is set aside; and whether a copy takes the place with all records."""

    is_set_aside: bool = False
    reason: str | None = None
    has_leader: bool | None = None
    begins_empty: bool = False
    replaced_by: str | None = None
    what_to_do: str | None = None
    leader_reason: str | None = None
    beside: str | None = None
    is_moved: bool = False

    @property
    def costs(self) -> bool:
        """Whether the partition has no leader, begins empty, or has a leader that costs records."""
        return self.has_leader is False or self.begins_empty or self.leader_reason is not None


@dataclass(frozen=True, slots=True)
class Leadership:
    """Whether a partition has a leader once nodes have started, and why not, or why it costs
    records."""

    has_leader: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Assignments:
    """The metadata of a cluster as a node finds it, the ids of its topics by name, the node and the
    others that start with it, the brokers that run by the metadata, the settings in
    server.properties, and whether the metadata is that of ZooKeeper, which knows no directories.
    """

    image: MetadataImage
    node: StartingBroker
    topic_ids: Mapping[str, str]
    others: Sequence[StartingBroker] = ()
    running: Collection[int] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    is_of_zookeeper: bool = False

    @classmethod
    def of(
        cls,
        image: MetadataImage,
        node_id: int,
        settings: Mapping[str, str] | None = None,
        *,
        is_of_zookeeper: bool = False,
    ) -> Assignments:
        """Return the assignments of a node of which nothing else is known."""
        if is_of_zookeeper:
            image = _completed(image)
        ids = {row["topic"]: topic_id for (topic_id,), row in image.tables["topic"].items()}
        running = [
            broker_id
            for (broker_id,), broker in image.tables["broker"].items()
            if broker_id != node_id
            and not broker["is_fenced"]
            and not broker["is_in_controlled_shutdown"]
        ]
        node = StartingBroker(node_id, ())
        return cls(image, node, ids, (), running, settings or {}, is_of_zookeeper)

    def starting(self, node: StartingBroker, others: Sequence[StartingBroker]) -> Assignments:
        """Return them with what is known of the node and of others that start."""
        return replace(self, node=node, others=others)

    @property
    def node_id(self) -> int:
        return self.node.node_id

    def fate(self, topic_id: str | None, name: PartitionName) -> ReplicaFate:
        """Return what becomes of a partition's directory that is in use, by the topic's id in
        it."""
        row = self._row(self.topic_ids.get(name.topic), name.partition)
        reason = self.stray_reason(topic_id, name)
        if reason is not None:
            is_here = row is not None and self.node_id in row["replicas"]
            has_leader = self.leadership(name.topic, row).has_leader if row is not None else None
            return ReplicaFate(True, reason, has_leader, begins_empty=is_here and bool(has_leader))
        if row is None:
            return ReplicaFate(has_leader=False, leader_reason=NOT_IN_ZOOKEEPER)
        maker = self._leads_empty(name.topic, name.partition, row)
        if maker is not None:
            why = (
                f"the log directory of node {maker} is new: it leads the partition with an empty "
                "log, at once or from its next start on, and this replica follows it: its records "
                "are LOST"
            )
            return ReplicaFate(leader_reason=why)
        found = self.leadership(name.topic, row)
        return ReplicaFate(has_leader=found.has_leader, leader_reason=found.reason)

    def _leads_empty(self, topic: str, number: int, row: Mapping[str, Any]) -> int | None:
        """Return the node that leads a partition only because it makes its directory, empty, in
        place of one that was lost. Rule: docs/format.md F1211."""
        for each in () if self.is_of_zookeeper else (self.node, *self.others):
            lacks = each.node_id in row["replicas"] and (topic, number) not in each.present
            made = each.with_new_directory(row) if lacks else row
            if (
                made is not row
                and self._standing(topic, row).leader is None
                and self._standing(topic, made).leader == each.node_id
            ):
                return each.node_id
        return None

    def assigned_to(self, topic_id: str | None, number: int) -> str | None:
        """Return the id of the directory that a partition of this topic id is assigned to."""
        return assigned_directory(self.image, (topic_id, number), self.node_id)

    def offline_fate(self, name: PartitionName) -> ReplicaFate:
        """Return what becomes of a partition whose directory is offline: others can lead it."""
        row = self._row(self.topic_ids.get(name.topic), name.partition)
        if row is not None and self.is_of_zookeeper:
            left = [each for each in row["replicas"] if each != self.node_id]
            row = {**row, "replicas": left}
        leader = None if row is None else self._standing(name.topic, row).leader
        if leader not in (None, self.node_id):
            return ReplicaFate(has_leader=True)
        return ReplicaFate(has_leader=False, leader_reason=OFFLINE)

    def absent(
        self, present: Collection[tuple[str, int]]
    ) -> Iterator[tuple[str, int, ReplicaFate]]:
        """Yield the partitions of the node that have no directory: it makes an empty one."""
        for (topic_id, number), row in self.image.tables["partition"].items():
            topic = self.image.topic_of("topic", (topic_id,))
            if topic is None or (topic, number) in present or self.node_id not in row["replicas"]:
                continue
            found = self.leadership(topic, row)
            leads = self._standing(topic, row).leader == self.node_id
            fate = ReplicaFate(
                has_leader=found.has_leader, begins_empty=leads, leader_reason=found.reason
            )
            if self._leads_empty(topic, number, row) == self.node_id:
                fate = ReplicaFate(begins_empty=True, leader_reason=NEW_DIRECTORY)
            yield topic, number, fate

    def place(self, topic: str, number: int) -> str | None:
        """Return the id of the directory that a partition is assigned to."""
        return self.assigned_to(self.topic_ids.get(topic), number)

    def _row(self, topic_id: str | None, number: int) -> Mapping[str, Any] | None:
        return self.image.tables["partition"].get((topic_id, number))

    def stray_reason(self, topic_id: str | None, name: PartitionName) -> str | None:
        """Return why a directory with this topic's id is set aside, None where it is not, as by
        brokers with ZooKeeper."""
        if self.is_of_zookeeper:
            return None
        if topic_id is None:
            return WITHOUT_ID
        row = self._row(topic_id, name.partition)
        if row is not None:
            if self.node_id in row["replicas"]:
                return None
            others = ", ".join(map(str, row["replicas"]))
            return f"the metadata has its replicas on {others}, not on node {self.node_id}"
        current = self.topic_ids.get(name.topic)
        if current is not None and current != topic_id:
            return f"topic {name.topic} was made again: its id is {current}, not {topic_id}"
        if current is not None:
            return f"topic {name.topic} has no partition {name.partition} by the metadata"
        if not self.image.tables["topic"]:
            return "the metadata is missing: it has no topic"
        return (
            f"the metadata has no topic of the id {topic_id}: it was deleted, or the metadata is "
            "older than the data"
        )

    def possible_leaders(
        self, topic: str, number: int, stopped: Collection[int] = ()
    ) -> Collection[int]:
        """Return which of the nodes can lead a partition once they have started together: any
        that is in sync. None where a broker that is neither among them nor `stopped`
        has a replica: it can lead too. Rule: docs/format.md F1445."""
        row = self._row(self.topic_ids.get(topic), number)
        nodes = {each.node_id: each for each in (self.node, *self.others)}
        known = {*nodes, *stopped}
        registered = {broker_id for (broker_id,) in self.image.tables["broker"]}
        if row is None or (registered & {*row["replicas"]}) - known:
            return ()
        alone = replace(self, running=[each for each in self.running if each not in known])
        leader = alone._standing(topic, row).leader
        eligible = [
            each_id
            for each_id in row["eligible_leader_replicas"] or ()
            if each_id in nodes and nodes[each_id].stopped_cleanly
        ]
        last = {
            each.node_id
            for each in nodes.values()
            if each.node_id in (row["isr"] or eligible)
            and (each.can_lead(row) or (topic, number) not in each.present)
        }
        return last if leader is None else {leader, *last}

    def leadership(self, topic: str, row: Mapping[str, Any]) -> Leadership:
        """Return whether a partition has a leader once the nodes run."""
        found = self._standing(topic, row)
        if found.leader is None:
            return Leadership(False, self._why_leaderless(row, found))
        entitled = (*row["isr"], *row["eligible_leader_replicas"], *row["last_known_elr"])
        if found.leader in entitled:
            return Leadership(True)
        others = f" that {_brokers(found.may_lead)} has" if found.may_lead else ""
        return Leadership(
            True,
            f"{UNCLEAN} is true, and {_brokers([found.leader])} becomes the leader without being "
            f"in sync: records{others} are LOST if it has not got them",
        )

    def _standing(self, topic: str, row: Mapping[str, Any]) -> Standing:
        is_unclean = self._setting(topic, UNCLEAN) == "true"
        if self.is_of_zookeeper:
            # Who registers stays in sync. Rule: docs/format.md F1405.
            ids = {*self.running, self.node_id, *(each.node_id for each in self.others)}
            alive = ids.intersection(row["replicas"])
            leader = row["leader"] if row["leader"] in alive else None
            found = Standing(leader, list(row["isr"]), [], [])
            if leader is None:
                found.leader = found.first(row["replicas"], alive, is_unclean=is_unclean)
            return found
        level = self.image.tables["feature"].get((ELR_VERSION,))
        return standing_after_start(
            row,
            [self.node, *self.others],
            self.running,
            ElectionRules(level is not None and level["level"] > 0, is_unclean),
        )

    def _why_leaderless(self, row: Mapping[str, Any], found: Standing) -> str:
        """Return why there is no leader."""
        own = self.node_id
        if own in found.may_lead:
            place = row["directories"][row["replicas"].index(own)]
            return assigned_elsewhere(place, own)
        if own in (*row["isr"], *row["eligible_leader_replicas"]) and not self.node.stopped_cleanly:
            why = f"node {own} did not stop cleanly and may lack records"
        elif not found.may_lead:
            why = "no replica is in sync by the metadata"
        elif own in row["isr"]:
            why = f"node {own} is no longer in sync once it registers"
        else:
            why = f"node {own} was not in sync by the metadata"
        if found.may_lead:
            return f"{why}{WAITS}{_brokers(found.may_lead)}"
        return f"{why}, and {UNCLEAN} is false"

    def _setting(self, topic: str, setting: str) -> str:
        """Return what the controller takes a setting of a topic for, empty where it is not set."""
        configs = self.image.tables["config"]
        for kind, name in (("topic", topic), ("broker", str(self.node_id)), ("broker", "")):
            row = configs.get((kind, name, setting))
            if row is not None:
                return str(row["value"]).strip().lower()
        return self.settings.get(setting, "").strip().lower()


def _completed(image: MetadataImage) -> MetadataImage:
    """Return the metadata of a cluster with ZooKeeper, which knows neither the directories of
    replicas nor eligible leaders, with the values of a cluster that has none of them."""
    found = MetadataImage({**image.tables, "partition": {}})
    for key, row in image.tables["partition"].items():
        places = [UNASSIGNED] * len(row["replicas"])
        empty = dict.fromkeys(("eligible_leader_replicas", "last_known_elr"), ())
        found.put("partition", key, {**row, **empty, "directories": places})
    return found


def assigned_elsewhere(directory_id: str, node_id: int | None) -> str:
    """Return why a partition has no leader whose directory has another id."""
    return f"the metadata assigns it to directory.id {directory_id}, which node {node_id} has not"


def _brokers(ids: Sequence[int]) -> str:
    return ("broker " if len(ids) == 1 else "brokers ") + ", ".join(map(str, ids))
