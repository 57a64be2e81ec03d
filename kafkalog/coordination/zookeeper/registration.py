"""What brokers and consumers register in ZooKeeper, what consumers watch, and which groups a
change makes rebalance. Rules: docs/zookeeper.md F436 to F438 and F450 to F456.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from kafkalog.coordination.zookeeper.topic_filters import Subscription
from kafkalog.errors import UnsupportedFormatError

BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"


class Action(Enum):
    """What a consumer does at a step of its registration."""

    CREATE = "create"
    WATCH_CHILDREN = "watch_children"
    WATCH_DATA = "watch_data"
    REBALANCE = "rebalance"


class Step(NamedTuple):
    """One of them, and the path that it is about."""

    action: Action
    path: str


class Cause(Enum):
    """The change that a watch saw before a rebalance."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    BROKER_JOINED = "broker_joined"
    BROKER_LEFT = "broker_left"
    TOPIC_ADDED = "topic_added"
    TOPIC_DELETED = "topic_deleted"
    PARTITIONS_CHANGED = "partitions_changed"


class RegistryChange(NamedTuple):
    """A change of a registry: who or what came, went or changed. `name` is a consumer id, a broker
    id or a topic; `group_id` is None but for members."""

    cause: Cause
    name: str
    group_id: str | None = None


# The subscription of each consumer of each group.
Groups = Mapping[str, Mapping[str, Subscription]]


def consumer_ids_path(group_id: str) -> str:
    """Return the directory in which the consumers of a group register."""
    return f"/consumers/{group_id}/ids"


def registration_steps(
    group_id: str, consumer_id: str, subscription: Subscription
) -> Iterator[Step]:
    """Yield what a consumer does when it starts, in order: the five steps of the documents, and
    the watch on each topic that it names, which they leave out."""
    ids = consumer_ids_path(group_id)
    yield Step(Action.CREATE, f"{ids}/{consumer_id}")
    yield Step(Action.WATCH_CHILDREN, ids)
    yield Step(Action.WATCH_CHILDREN, BROKER_IDS)
    if subscription.is_filter:
        yield Step(Action.WATCH_CHILDREN, BROKER_TOPICS)
    for topic in subscription.streams if not subscription.is_filter else ():
        yield Step(Action.WATCH_DATA, f"{BROKER_TOPICS}/{topic}")
    yield Step(Action.REBALANCE, f"/consumers/{group_id}")


def triggered_groups(change: RegistryChange, groups: Groups) -> set[str]:
    """Return the groups that rebalance because of a change: of a member its own, of a broker all,
    of a topic those that have it by a filter, of its partitions those that consume it."""
    if change.cause in (Cause.MEMBER_JOINED, Cause.MEMBER_LEFT):
        return {group_id for group_id in groups if group_id == change.group_id}
    if change.cause in (Cause.BROKER_JOINED, Cause.BROKER_LEFT):
        return {group_id for group_id, consumers in groups.items() if consumers}
    by_filter = change.cause is not Cause.PARTITIONS_CHANGED
    return {
        group_id
        for group_id, consumers in groups.items()
        if any(
            (subscription.is_filter or not by_filter) and _consumes(subscription, change.name)
            for subscription in consumers.values()
        )
    }


def _consumes(subscription: Subscription, topic: str) -> bool:
    """Return whether a topic is known to be consumed."""
    try:
        return subscription.streams_of(topic) > 0
    except UnsupportedFormatError:
        return False
