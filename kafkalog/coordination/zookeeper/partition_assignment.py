"""How consumers that balance among themselves divide the partitions of their topics.

The old consumer's assignors `range` and `roundrobin`, as pure functions of what is registered in
ZooKeeper. Rules: docs/zookeeper.md F457 to F464.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kafkalog.wire.java_text import java_order, java_string_hash


class BrokerPartition(NamedTuple):
    """A partition of a topic; `broker_id` is None from Kafka 0.8 on, where partitions belong to the
    topic and no longer to a broker."""

    partition: int
    broker_id: int | None = None

    @property
    def name(self) -> str:
        """Its name in the directories of offsets and owners."""
        return str(self.partition) if self.broker_id is None else self.oldest_name

    @property
    def oldest_name(self) -> str:
        """Its name in Kafka 0.7, `[broker-partition]`."""
        return f"{self.broker_id}-{self.partition}"


class ConsumedPartition(NamedTuple):
    """A partition with its topic."""

    topic: str
    partition: BrokerPartition


class ThreadId(NamedTuple):
    """One stream of a consumer: what a partition is assigned to and what owners are named by."""

    consumer_id: str
    number: int

    @property
    def name(self) -> str:
        """As the value of an owner's znode has it."""
        return f"{self.consumer_id}-{self.number}"


# The streams of each consumer by topic: what the consumers of a group have registered.
Streams = Mapping[str, Mapping[str, int]]
Assignment = dict[ConsumedPartition, ThreadId]
Assignor = Callable[[Streams, Mapping[str, Sequence[BrokerPartition]]], Assignment]


def sorted_partitions(partitions: Iterable[BrokerPartition]) -> list[BrokerPartition]:
    """Without doubles, in the order in which they are dealt out: by number from 0.8 on, by name
    before, so that those of a broker are adjacent and `0-10` comes before `0-2`."""

    def rank(partition: BrokerPartition) -> tuple[str, int]:
        if partition.broker_id is None:
            return "", partition.partition
        return partition.oldest_name, 0

    return sorted(set(partitions), key=rank)


def sorted_threads(streams: Streams, topic: str) -> list[ThreadId]:
    """Return all streams that consume a topic, in the order of their names: stream 10 before 2."""
    threads = [
        ThreadId(consumer_id, number)
        for consumer_id, topics in streams.items()
        for number in range(topics.get(topic, 0))
    ]
    return sorted(threads, key=lambda thread: java_order(thread.name))


def ranges(partitions: int, consumers: int) -> list[range]:
    """Yield which of the sorted partitions each of the sorted consumers gets: N or N + 1 in a row,
    the first ones the larger share, so that none is left over. No consumers, no ranges."""
    if consumers == 0:
        return []
    each, larger = divmod(partitions, consumers)
    starts = [index * each + min(index, larger) for index in range(consumers)]
    return [range(start, end) for start, end in zip(starts, [*starts[1:], partitions], strict=True)]


def range_assignment(
    streams: Streams, partitions: Mapping[str, Sequence[BrokerPartition]]
) -> Assignment:
    """Return each topic by itself, in ranges. Topics without consumers stay unassigned."""
    assigned: Assignment = {}
    for topic in _consumed_topics(streams):
        threads = sorted_threads(streams, topic)
        in_order = sorted_partitions(partitions.get(topic, ()))
        for thread, share in zip(threads, ranges(len(in_order), len(threads)), strict=True):
            for place in share:
                assigned[ConsumedPartition(topic, in_order[place])] = thread
    return assigned


def bracketed_name(place: ConsumedPartition) -> str:
    """Return a partition as Kafka 0.8 to 0.10 print it, whose hash is its place in the round."""
    return f"[{place.topic},{place.partition.name}]"


def dashed_name(place: ConsumedPartition) -> str:
    """Assign as `roundrobin` does from Kafka 0.11 on."""
    return f"{place.topic}-{place.partition.name}"


def roundrobin_assignment(
    streams: Streams,
    partitions: Mapping[str, Sequence[BrokerPartition]],
    name: Callable[[ConsumedPartition], str] = bracketed_name,
) -> Assignment:
    """Return all partitions of all topics in the order of the hashes of their names, one after the
    other to the next stream that consumes the topic."""
    topics = _consumed_topics(streams)
    every = {thread for topic in topics for thread in sorted_threads(streams, topic)}
    circle = sorted(every, key=lambda thread: java_order(thread.name))
    places = [
        ConsumedPartition(topic, partition)
        for topic in topics
        for partition in sorted_partitions(partitions.get(topic, ()))
    ]
    assigned: Assignment = {}
    at = 0
    for place in sorted(places, key=lambda place: java_string_hash(name(place))):
        while circle[at].number >= streams[circle[at].consumer_id].get(place.topic, 0):
            at = (at + 1) % len(circle)
        assigned[place] = circle[at]
        at = (at + 1) % len(circle)
    return assigned


def _consumed_topics(streams: Streams) -> list[str]:
    return sorted({topic for topics in streams.values() for topic, n in topics.items() if n > 0})
