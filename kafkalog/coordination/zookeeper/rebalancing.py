"""The nine steps of a consumer that rebalances, as pure functions.

Rules: docs/zookeeper.md F457 to F462.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafkalog.coordination.zookeeper.partition_assignment import (
    Assignor,
    BrokerPartition,
    ConsumedPartition,
    Streams,
    ThreadId,
    range_assignment,
)

Owners = Mapping[ConsumedPartition, ThreadId]


class GroupRegistry(NamedTuple):
    """What a consumer reads before it rebalances: the streams that each consumer of its group has
    registered, the partitions of topics, and who owns them in the group."""

    streams: Streams
    partitions: Mapping[str, Sequence[BrokerPartition]]
    owners: Owners


class Rebalance(NamedTuple):
    """What a consumer takes out of the owner registry, what it puts in, and what it is assigned
    but another consumer has not released: while there is any of that it puts in nothing."""

    releases: tuple[ConsumedPartition, ...]
    claims: dict[ConsumedPartition, ThreadId]
    waits_for: dict[ConsumedPartition, ThreadId]


def rebalance(
    registry: GroupRegistry, consumer_id: str, assignor: Assignor = range_assignment
) -> Rebalance:
    """Return one attempt of one consumer.

    Steps 1 to 7 assign (every consumer computes the same assignment), step 8 releases
    all that the consumer has, step 9 claims all that it is assigned, or nothing.
    """
    assigned = {
        place: thread
        for place, thread in assignor(registry.streams, registry.partitions).items()
        if thread.consumer_id == consumer_id
    }
    releases = tuple(
        place for place, owner in registry.owners.items() if owner.consumer_id == consumer_id
    )
    waits_for = {
        place: registry.owners[place]
        for place in assigned
        if place in registry.owners and place not in releases
    }
    return Rebalance(releases, {} if waits_for else assigned, waits_for)


def owners_after(owners: Owners, change: Rebalance) -> dict[ConsumedPartition, ThreadId]:
    """Return the owner registry after an attempt."""
    released = set(change.releases)
    kept = {place: owner for place, owner in owners.items() if place not in released}
    return {**kept, **change.claims}


def rebalanced_owners(
    registry: GroupRegistry,
    order: Iterable[str] | None = None,
    assignor: Assignor = range_assignment,
) -> dict[ConsumedPartition, ThreadId]:
    """Return the owner registry after all consumers of the group have rebalanced, in any order.

    A consumer that has to wait tries again after the others. Owners that are no longer registered
    keep what they have until their sessions end: consumers that wait for them get nothing.
    """
    owners = dict(registry.owners)
    waiting = list(registry.streams if order is None else order)
    for _ in range(2):  # in the first round all release, so that no second one waits in vain
        refused = []
        for consumer_id in waiting:
            change = rebalance(registry._replace(owners=owners), consumer_id, assignor)
            owners = owners_after(owners, change)
            if change.waits_for:
                refused.append(consumer_id)
        waiting = refused
    return owners
