"""What old consumers write below /consumers. Rules: docs/zookeeper.md F444 to F449."""

from __future__ import annotations

import re
from typing import NamedTuple

from kafkalog.coordination.zookeeper.partition_assignment import BrokerPartition, ThreadId
from kafkalog.coordination.zookeeper.topic_filters import Subscription, SubscriptionPattern
from kafkalog.coordination.zookeeper.znode_data import (
    malformed,
    name_number,
    optional_int,
    read_long,
    read_object,
    timestamp_field,
    znode_text,
)

# Streams are threads of a process; what says more is not believed, as each is assigned to.
MOST_STREAMS = 10_000
_OLDEST_FILTER = re.compile(r"([*!])([0-9]{1,9})\1(.*)", re.DOTALL | re.ASCII)
_OLDEST_PATTERNS = {"*": SubscriptionPattern.WHITE_LIST, "!": SubscriptionPattern.BLACK_LIST}
_PATTERNS = {pattern.value: pattern for pattern in SubscriptionPattern}


class ConsumerRegistration(NamedTuple):
    """The data of /consumers/[group_id]/ids/[consumer_id]; in 0.7 it has no version and no time."""

    subscription: Subscription
    version: int | None = None
    timestamp_ms: int | None = None


def read_consumer(data: bytes | None) -> ConsumerRegistration:
    """Return a consumer's registration, of any generation. Raises CorruptDataError."""
    text = znode_text(data)
    oldest = _OLDEST_FILTER.fullmatch(text)
    if oldest:
        streams = {oldest[3]: _streams(int(oldest[2]))}
        return ConsumerRegistration(Subscription(_OLDEST_PATTERNS[oldest[1]], streams))
    values = read_object(data)
    subscribed = values.get("subscription")
    if not isinstance(subscribed, dict):  # in 0.7 a topic may be called so, with its streams
        streams = {topic: _streams(count) for topic, count in values.items()}
        return ConsumerRegistration(Subscription(SubscriptionPattern.STATIC, streams))
    pattern = _PATTERNS.get(str(values.get("pattern")))
    if pattern is None:
        malformed(f"field pattern is none of {', '.join(_PATTERNS)}")
    streams = {topic: _streams(count) for topic, count in subscribed.items()}
    return ConsumerRegistration(
        Subscription(pattern, streams), optional_int(values, "version"), timestamp_field(values)
    )


def _streams(count: object) -> int:
    if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MOST_STREAMS:
        return count
    return malformed(f"no number of streams from 1 to {MOST_STREAMS}: {str(count)[:100]!r}")


def read_offset(data: bytes | None) -> int:
    """Return a committed offset. Raises CorruptDataError for anything but decimal digits."""
    return read_long(data)


def read_owner(data: bytes | None) -> ThreadId:
    """Return the owner of a partition. Raises CorruptDataError."""
    text = znode_text(data)
    consumer_id, _, number_text = text.rpartition("-")
    number = name_number(number_text)
    if not consumer_id or number is None:
        malformed(f"no consumer id, dash and number of a stream: {text[:100]!r}")
    return ThreadId(consumer_id, number)


def broker_partition(name: str) -> BrokerPartition | None:
    """Return the partition that a name in offsets or owners is: `[partition]`, or
    `[broker-partition]` in 0.7; None for other names."""
    first, dash, second = name.partition("-")
    numbers = [name_number(part) for part in ((first, second) if dash else (first,))]
    if numbers[0] is None or numbers[-1] is None:
        return None
    return BrokerPartition(numbers[-1], numbers[0] if dash else None)
