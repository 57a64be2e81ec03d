"""Who owned which partitions when, and what set each rebalance off, from the changes of znodes in
their order. Rules: docs/zookeeper.md F449, F451 to F455, F461."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkalog.coordination.zookeeper.consumer_znodes import broker_partition
from kafkalog.coordination.zookeeper.found_cluster import broker_place, found_consumer
from kafkalog.coordination.zookeeper.kafka_directories import BROKER_REGISTRY, kafka_rows
from kafkalog.coordination.zookeeper.partition_assignment import ConsumedPartition
from kafkalog.coordination.zookeeper.registration import Cause, RegistryChange, triggered_groups
from kafkalog.coordination.zookeeper.topic_filters import Subscription
from kafkalog.coordination.zookeeper.znode_paths import PathTemplate

CREATE, SET_DATA, DELETE, SESSION_END = "create", "set_data", "delete", "session_end"
# An ownership that ended without a transaction that is still logged.
NOT_LOGGED = "not_logged"
_ENDS = (DELETE, SESSION_END, NOT_LOGGED)
_CONSUMER = PathTemplate("/consumers/[group_id]/ids/[consumer_id]")
_OWNER = PathTemplate("/consumers/[group_id]/owners/[topic]/[broker_partition]")
_BROKER = PathTemplate("/brokers/ids/[broker_id]")
_TOPIC = PathTemplate("/brokers/topics/[topic]")
_OLDEST_TOPIC = PathTemplate("/brokers/topics/[topic]/[broker_id]")


class ZnodeChange(NamedTuple):
    """One change of a znode; `path` is that below the cluster's root. `change` is CREATE, SET_DATA,
    DELETE or SESSION_END, the end of the session of an ephemeral one, or NOT_LOGGED where it is not
    there any more. Without a logged transaction, `zxid` and `time_ms` are None."""

    path: str
    change: str
    data: bytes | None
    session_id: int
    zxid: int | None
    time_ms: int | None


class Moment(NamedTuple):
    """When something happened; None without a transaction that is still logged."""

    zxid: int | None
    time_ms: int | None


class Trigger(NamedTuple):
    """The change that set a rebalance off."""

    cause: Cause
    name: str
    at: Moment


class Ownership(NamedTuple):
    """One consumer's time with a partition, from its claim to its release (None while it lasts);
    `release` is `released`, `session_end` or `not_logged`. `unowned_ms` is how long it had no owner
    before."""

    group_id: str
    place: ConsumedPartition
    owner: str
    session_id: int
    claimed: Moment
    unowned_ms: int | None
    claim_trigger: Trigger | None
    released: Moment | None
    release: str | None
    release_trigger: Trigger | None


class BrokerPlace(NamedTuple):
    """Where a broker id was registered, and when."""

    broker_id: str
    place: str
    at: Moment


_Key = tuple[str, ConsumedPartition]


@dataclass(slots=True)
class OwnershipReplay:
    """Takes the changes of a cluster's znodes in their order and gives the ownerships that end."""

    _groups: dict[str, dict[str, Subscription]] = field(default_factory=dict)
    _brokers: set[str] = field(default_factory=set)
    _held: dict[_Key, Ownership] = field(default_factory=dict)
    _released_ms: dict[_Key, int | None] = field(default_factory=dict)
    _triggers: dict[str, Trigger] = field(default_factory=dict)
    _has_oldest_topics: bool = False
    broker_places: list[BrokerPlace] = field(default_factory=list)

    def take(self, change: ZnodeChange) -> Iterator[Ownership]:
        """Yield the next change; the ownership that it ends, if it does."""
        owner = _OWNER.names(change.path)
        if owner is not None:
            partition = broker_partition(owner["broker_partition"])
            if partition is not None:
                key = owner["group_id"], ConsumedPartition(owner["topic"], partition)
                yield from self._owner(key, change)
            return
        cause = self._registry_change(change)
        if cause is None:
            return
        trigger = Trigger(cause.cause, cause.name, Moment(change.zxid, change.time_ms))
        for group_id in triggered_groups(cause, self._groups):
            if change.zxid is not None:
                self._triggers[group_id] = trigger
            else:  # what set the group off last is not known any more
                self._triggers.pop(group_id, None)

    def still_held(self) -> Iterator[Ownership]:
        """At the end: what has not been released."""
        yield from self._held.values()

    def _owner(self, key: _Key, change: ZnodeChange) -> Iterator[Ownership]:
        at, trigger = Moment(change.zxid, change.time_ms), self._triggers.get(key[0])
        if change.change == CREATE:
            held = self._held.get(key)
            owner = (change.data or b"").decode("utf-8", "replace")
            if held is not None:
                if (held.session_id, held.owner) == (change.session_id, owner):
                    return  # a snapshot has it that was made while it was claimed
                yield self._ended_unseen(key)
            before_ms, now_ms = self._released_ms.get(key), at.time_ms
            is_known = before_ms is not None and now_ms is not None
            unowned_ms = (now_ms or 0) - (before_ms or 0) if is_known else None
            self._held[key] = Ownership(
                *key, owner, change.session_id, at, unowned_ms, trigger, None, None, None
            )
        elif change.change == NOT_LOGGED and key in self._held:
            yield self._ended_unseen(key)
        elif change.change in _ENDS and key in self._held:
            self._released_ms[key] = at.time_ms
            is_own = change.change == DELETE  # no watch makes a session end
            yield self._held.pop(key)._replace(
                released=at,
                release="released" if is_own else SESSION_END,
                release_trigger=trigger if is_own else None,
            )

    def _ended_unseen(self, key: _Key) -> Ownership:
        self._released_ms.pop(key, None)
        return self._held.pop(key)._replace(released=Moment(None, None), release=NOT_LOGGED)

    def _registry_change(self, change: ZnodeChange) -> RegistryChange | None:
        consumer, broker = _CONSUMER.names(change.path), _BROKER.names(change.path)
        if consumer is not None:
            return self._consumer(consumer["group_id"], consumer["consumer_id"], change)
        if broker is not None:
            return self._broker(broker["broker_id"], change)
        oldest, topic = _OLDEST_TOPIC.names(change.path), _TOPIC.names(change.path)
        if oldest is not None and oldest["broker_id"].isdigit():
            self._has_oldest_topics = True
            return RegistryChange(Cause.PARTITIONS_CHANGED, oldest["topic"])
        if topic is None:
            return None
        causes = {
            CREATE: Cause.TOPIC_ADDED,
            SET_DATA: Cause.PARTITIONS_CHANGED,
            DELETE: Cause.TOPIC_DELETED,
        }
        cause = causes.get(change.change)
        return None if cause is None else RegistryChange(cause, topic["topic"])

    def _consumer(
        self, group_id: str, consumer_id: str, change: ZnodeChange
    ) -> RegistryChange | None:
        consumers = self._groups.setdefault(group_id, {})
        if change.change in _ENDS:
            consumers.pop(consumer_id, None)
            return RegistryChange(Cause.MEMBER_LEFT, consumer_id, group_id)
        # What cannot be read consumes nothing that is known.
        found = found_consumer(change.data, change.session_id).subscription
        consumers[consumer_id] = found or Subscription.of_nothing()
        if change.change != CREATE:
            return None
        return RegistryChange(Cause.MEMBER_JOINED, consumer_id, group_id)

    def _broker(self, broker_id: str, change: ZnodeChange) -> RegistryChange | None:
        had_none = not self._brokers
        if change.change in _ENDS:
            self._brokers.discard(broker_id)
            # Consumers of 0.8 and later do not watch for it (F453).
            left = RegistryChange(Cause.BROKER_LEFT, broker_id)
            return left if self._has_oldest_topics else None
        self._brokers.add(broker_id)
        for row in kafka_rows(change.path, change.data, BROKER_REGISTRY):
            if "reason" not in row.values:
                place = BrokerPlace(
                    broker_id, broker_place(row.values), Moment(change.zxid, change.time_ms)
                )
                self.broker_places.append(place)
        joined = RegistryChange(Cause.BROKER_JOINED, broker_id)
        return joined if self._has_oldest_topics or had_none else None


def moved_brokers(places: Iterable[BrokerPlace]) -> dict[str, list[BrokerPlace]]:
    """Return the broker ids that were registered in several places, with these in their order: a
    broker that moved has two or more, two brokers with one id go back and forth."""
    runs: dict[str, list[BrokerPlace]] = {}
    for place in places:
        run = runs.setdefault(place.broker_id, [])
        if not run or run[-1].place != place.place:
            run.append(place)
    return {broker_id: run for broker_id, run in runs.items() if len(run) > 1}
