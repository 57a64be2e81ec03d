"""What old consumers have and should have: owners against the assignment, sessions, offsets.

Rules: docs/zookeeper.md F444 to F464 and F466 to F469.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from kafkalog.coordination.zookeeper.found_cluster import (
    FoundCluster,
    FoundGroup,
    FoundOffset,
    FoundOwner,
)
from kafkalog.coordination.zookeeper.partition_assignment import (
    Assignment,
    Assignor,
    BrokerPartition,
    ConsumedPartition,
    Streams,
    dashed_name,
    range_assignment,
    roundrobin_assignment,
    sorted_partitions,
)
from kafkalog.words import counted

# Streams times topics of a group beyond which no assignment is computed.
MOST_ASSIGNED_STREAMS = 2_000_000
# What the comparison of all consumers with all topics, or partitions, may take.
MOST_COMPARISONS = 20_000_000
_ROUNDROBIN: tuple[Assignor, ...] = (
    roundrobin_assignment,
    partial(roundrobin_assignment, name=dashed_name),
)
_NAMED_TOPICS = 5


class ConsumerFinding(NamedTuple):
    """Something that is not as it should be, and what it is about."""

    finding: str
    detail: str
    group_id: str | None = None
    topic: str | None = None
    partition: BrokerPartition | None = None
    consumer_id: str | None = None
    broker_id: int | None = None
    other_cluster_id: str | None = None


class PartitionAudit(NamedTuple):
    """A partition that a group consumes, owns or has an offset for. `assigned` is the stream that
    it is assigned to, None for no consumer; `is_computed` is False where that is not known."""

    place: ConsumedPartition
    owner: FoundOwner | None
    assigned: str | None
    is_computed: bool
    strategy: str | None
    offset: FoundOffset | None
    findings: tuple[ConsumerFinding, ...]


class GroupAssignment(NamedTuple):
    """What the group's consumers are assigned, and the strategies that the owners agree with, None
    where they agree with none; `fault` says why nothing is assigned, `streams` what they
    consume."""

    assigned: Assignment
    strategy: str | None
    fault: str | None = None
    streams: Streams = MappingProxyType({})


def group_assignment(group: FoundGroup, cluster: FoundCluster) -> GroupAssignment:
    """Return the assignment by that strategy which the owners agree with, otherwise by range, which
    is Kafka's default."""
    for consumer_id, consumer in group.consumers.items():
        if consumer.subscription is None:
            return GroupAssignment({}, None, f"{consumer_id}: {consumer.fault}")
    if len(group.consumers) * len(cluster.topics) > MOST_COMPARISONS:
        detail = f"more than {MOST_COMPARISONS} pairs of consumer and topic"
        return GroupAssignment({}, None, detail)
    streams = group_streams(group, cluster)
    of_topic: Counter[str] = Counter()
    for topics in streams.values():
        of_topic.update(topics)
    if of_topic.total() > MOST_ASSIGNED_STREAMS:
        return GroupAssignment({}, None, f"more than {MOST_ASSIGNED_STREAMS} streams and topics")
    partitions = {topic: sorted_partitions(cluster.topics[topic]) for topic in of_topic}
    by_range = range_assignment(streams, partitions)
    owned = {place: owner.owner for place, owner in group.owners.items() if owner.owner}
    if not owned:
        return GroupAssignment(by_range, None, streams=streams)
    agreeing = [("range", by_range)] if _agrees(by_range, owned) else []
    steps = max(of_topic.values(), default=0) * len(by_range)
    for assignor in _ROUNDROBIN if steps <= MOST_COMPARISONS else ():
        assigned = assignor(streams, partitions)
        if _agrees(assigned, owned):
            agreeing.append(("roundrobin", assigned))
    if not agreeing:
        return GroupAssignment(by_range, None, streams=streams)
    strategy = " or ".join(dict.fromkeys(name for name, _ in agreeing))
    return GroupAssignment(agreeing[0][1], strategy, streams=streams)


def group_streams(group: FoundGroup, cluster: FoundCluster) -> Streams:
    """Return how many streams each consumer of a group has for which topics; consumers whose
    subscription cannot be read have none."""
    return {
        consumer_id: {
            topic: count
            for topic in cluster.topics
            if (count := consumer.subscription.streams_of(topic)) > 0
        }
        for consumer_id, consumer in group.consumers.items()
        if consumer.subscription is not None
    }


def _agrees(assigned: Assignment, owned: Mapping[ConsumedPartition, str]) -> bool:
    return all(place in assigned and assigned[place].name == owned[place] for place in owned)


class GroupAudit(NamedTuple):
    """Every partition that is a group's in whatever way, and what is to be said of its consumers
    and of the group as a whole."""

    partitions: list[PartitionAudit]
    findings: list[ConsumerFinding]


def group_audit(
    group_id: str, group: FoundGroup, cluster: FoundCluster, sessions: Collection[int] | None
) -> GroupAudit:
    """Return the audit of a group. `sessions` are those that were live, None where that is not
    known."""
    assignment = group_assignment(group, cluster)
    places = {*assignment.assigned, *group.owners, *group.offsets}
    partitions = [
        _partition_audit(place, group_id, group, cluster, assignment, sessions)
        for place in sorted(places, key=_by_name)
    ]
    return GroupAudit(partitions, list(_group_findings(group_id, group, assignment)))


def _by_name(place: ConsumedPartition) -> tuple[str, int, int]:
    broker_id = place.partition.broker_id
    return place.topic, -1 if broker_id is None else broker_id, place.partition.partition


def _partition_audit(
    place: ConsumedPartition,
    group_id: str,
    group: FoundGroup,
    cluster: FoundCluster,
    assignment: GroupAssignment,
    sessions: Collection[int] | None,
) -> PartitionAudit:
    owner, offset = group.owners.get(place), group.offsets.get(place)
    thread = assignment.assigned.get(place)
    assigned = None if thread is None else thread.name
    is_computed = assignment.fault is None
    found = [
        *_owner_findings(owner, assigned, group, sessions, is_computed=is_computed),
        *_offset_findings(place, offset, cluster),
    ]
    consumer_id = owner.consumer_id if owner else None
    findings = tuple(
        ConsumerFinding(kind, detail, group_id, place.topic, place.partition, consumer_id)
        for kind, detail in found
    )
    strategy = assignment.strategy
    return PartitionAudit(place, owner, assigned, is_computed, strategy, offset, findings)


def _owner_findings(
    owner: FoundOwner | None,
    assigned: str | None,
    group: FoundGroup,
    sessions: Collection[int] | None,
    *,
    is_computed: bool,
) -> Iterator[tuple[str, str]]:
    if owner is None:
        if assigned is not None:
            yield "partition_without_owner", f"no consumer has claimed what {assigned} is assigned"
        return
    if owner.fault is not None:
        yield "owner_unreadable", owner.fault
        return
    if sessions is not None and owner.session_id not in sessions:
        yield "owner_without_session", f"session {owner.session_id:#x} of {owner.owner} has ended"
    if owner.consumer_id not in group.consumers:
        yield "owner_not_registered", f"{owner.consumer_id} is not among the group's consumers"
    elif is_computed and owner.owner != assigned:
        thread = assigned or "no consumer"
        yield "owner_not_assigned", f"{owner.owner} owns what {thread} is assigned"


def _offset_findings(
    place: ConsumedPartition, offset: FoundOffset | None, cluster: FoundCluster
) -> Iterator[tuple[str, str]]:
    if offset is None:
        return
    if offset.offset is None:
        yield "offset_not_decimal", offset.fault or ""
    elif offset.offset < 0:
        yield "offset_negative", f"offset {offset.offset}"
    partitions = cluster.topics.get(place.topic)
    if partitions is None:
        yield "offset_for_missing_topic", f"topic {place.topic} is not registered"
    elif place.partition not in partitions:
        yield "offset_for_missing_partition", f"{place.topic} has no {place.partition.name}"


def _group_findings(
    group_id: str, group: FoundGroup, assignment: GroupAssignment
) -> Iterator[ConsumerFinding]:
    for consumer_id, consumer in group.consumers.items():
        if consumer.fault is not None:
            yield ConsumerFinding(
                "subscription_unreadable", consumer.fault, group_id, consumer_id=consumer_id
            )
    for path, fault in group.unnamed.items():
        yield ConsumerFinding("name_unreadable", f"{path}: {fault}", group_id)
    if assignment.fault is not None and not any(
        consumer.fault for consumer in group.consumers.values()
    ):
        yield ConsumerFinding("assignment_unknown", assignment.fault, group_id)
    if assignment.fault is None:
        yield from _idle_consumers(group_id, assignment)
    if group.offsets and not group.consumers:
        yield ConsumerFinding(
            "group_without_members",
            f"{counted(len(group.offsets), 'offset')} and no consumer",
            group_id,
        )


def _idle_consumers(group_id: str, assignment: GroupAssignment) -> Iterator[ConsumerFinding]:
    """Yield consumers that get nothing of any of their topics: there are more streams than
    partitions."""
    busy = {thread.consumer_id for thread in assignment.assigned.values()}
    for consumer_id, topics in assignment.streams.items():
        if consumer_id not in busy:
            named = ", ".join(sorted(topics)[:_NAMED_TOPICS]) or "an existing topic"
            more = len(topics) - _NAMED_TOPICS
            detail = f"assigned nothing of {named}" + (f" and {more} more" if more > 0 else "")
            yield ConsumerFinding(
                "consumer_without_partitions", detail, group_id, consumer_id=consumer_id
            )
