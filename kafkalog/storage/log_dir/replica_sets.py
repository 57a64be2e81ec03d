"""Whether two places of one partition can be replicas of it. Rule: docs/format.md F170."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Where a partition is, and what the files there say of who keeps it; None is not known."""

    path: str
    cluster_id: str | None
    broker_id: int | None
    topic_id: str | None


def why_no_replicas(one: ReplicaPlace, other: ReplicaPlace) -> str | None:
    """What speaks against two places being replicas of one partition; None if nothing does."""
    if one.broker_id is None or other.broker_id is None:
        return (
            "one of them is a replica or a copy, and no meta.properties tells of which broker; "
            "name only one"
        )
    if one.cluster_id and other.cluster_id and one.cluster_id != other.cluster_id:
        return f"they are of different clusters, {one.cluster_id} and {other.cluster_id}"
    if one.broker_id == other.broker_id:
        return f"both say that they are of broker {one.broker_id}: one is a copy; name only one"
    if one.topic_id and other.topic_id and one.topic_id != other.topic_id:
        return (
            f"they are of different topics of one name, {one.topic_id} and {other.topic_id}: the "
            "topic was deleted and created again"
        )
    return None
