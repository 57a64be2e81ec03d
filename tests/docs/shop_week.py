"""A week of a small shop's Kafka, invented: what examples/shop-week holds, and what to try on it.

`python -m tests.docs.shop_week DIRECTORY` writes it again. The tutorials and the notebooks read it:

- orders, three partitions: a record per order, JSON, keyed by customer. On Tuesday at 03:12 one
  of partition 1 is broken off in the middle of its JSON.
- customers, compacted: a customer's newest details by key; some customers are deleted.
- group billing commits every quarter of an hour. It stumbles over the broken order and commits the
  same offset again and again, until it is restarted on Tuesday at 07:31.
- group shipping commits every hour and keeps up; on Thursday a third member joins.
- group reports reads everything once a night, at 02:00, for the last time on Saturday.
"""

import json
import math
import os
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kafkalog.format.batch_header import CREATE_TIME
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.catalog import message
from kafkalog.messages.consumer_protocol import ASSIGNMENT, SUBSCRIPTION
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.partition_output import PartitionOutput, WrittenLog, commit_logs
from kafkalog.wire.compression import CompressionType

MONDAY = datetime(2026, 11, 9, tzinfo=UTC)
END = MONDAY + timedelta(days=7)
BROKEN_AT = MONDAY + timedelta(days=1, hours=3, minutes=12)
RESTARTED_AT = MONDAY + timedelta(days=1, hours=7, minutes=31)
ORDERS, CUSTOMERS, PARTITIONS = "orders", "customers", 3
_OFFSET_COMMIT, _GROUP_METADATA = 1, 2
_TOPIC_IDS = {
    ORDERS: "b3JkZXJzLW9yZGVycy0wMQ",
    CUSTOMERS: "Y3VzdG9tZXJzLWN1c3RvMQ",
    CONSUMER_OFFSETS: "b2Zmc2V0cy1vZmZzZXRzMQ",
}


@dataclass(frozen=True)
class Event:
    """A record to be written, and when."""

    at: datetime
    key: bytes | None
    value: bytes | None

    @property
    def time_ms(self) -> int:
        return int(self.at.timestamp() * 1000)


@dataclass(frozen=True)
class Member:
    """A consumer of a group, and its partitions of the topic orders."""

    client_id: str
    host: str
    partitions: tuple[int, ...]


def orders(chance: random.Random) -> dict[int, list[Event]]:
    """The week's orders by partition: few at night, most in the evening."""
    logs: dict[int, list[Event]] = {partition: [] for partition in range(PARTITIONS)}
    numbers = iter(range(10_001, 100_000))
    for hour in range(7 * 24):
        rate = 4 + 30 * math.sin(math.pi * (hour % 24) / 24) ** 2
        minutes = sorted(
            chance.uniform(0, 60) for _ in range(round(rate * chance.uniform(0.8, 1.2)))
        )
        for minute in minutes:
            at = MONDAY + timedelta(hours=hour, minutes=minute)
            if len(logs[1]) and logs[1][-1].at < BROKEN_AT <= at:
                logs[1].append(
                    Event(BROKEN_AT, b"c-22", b'{"order": 99999, "customer": "c-22", "am')
                )
            _add_order(logs, at, next(numbers), chance)
    return logs


def _add_order(
    logs: dict[int, list[Event]], at: datetime, number: int, chance: random.Random
) -> None:
    # One customer orders much more than the others: a key that stands out.
    customer = 7 if chance.random() < 0.15 else chance.randrange(60)
    value = {
        "order": number,
        "customer": f"c-{customer:02}",
        "amount": round(chance.lognormvariate(3, 0.8), 2),
        "items": chance.randint(1, 6),
    }
    key = f"c-{customer:02}".encode()
    logs[customer % PARTITIONS].append(Event(at, key, json.dumps(value).encode()))


def customers(chance: random.Random) -> list[Event]:
    """Customers and what becomes of them: all are there on Monday, later some change or go."""
    events = [
        _customer(MONDAY + timedelta(seconds=number), number, "basic", chance)
        for number in range(60)
    ]
    changes = sorted(chance.uniform(600, 7 * 24 * 3600 - 600) for _ in range(240))
    for second in changes:
        at, number = MONDAY + timedelta(seconds=second), chance.randrange(60)
        if chance.random() < 0.08:
            events.append(Event(at, f"c-{number:02}".encode(), None))
        else:
            tier = chance.choice(("basic", "silver", "gold"))
            events.append(_customer(at, number, tier, chance))
    return events


def _customer(at: datetime, number: int, tier: str, chance: random.Random) -> Event:
    value = {"customer": f"c-{number:02}", "tier": tier, "points": chance.randrange(1000)}
    return Event(at, f"c-{number:02}".encode(), json.dumps(value).encode())


def read_until(log: list[Event], at: datetime) -> int:
    """The offset behind the last record that was there at a moment."""
    return sum(event.at <= at for event in log)


def group_events(logs: Mapping[int, list[Event]]) -> list[list[Event]]:
    """What the coordinator wrote, a list for each batch, in order of time."""
    batches = [*_billing(logs), *_shipping(logs), *_reports(logs)]
    return sorted(batches, key=lambda batch: batch[0].at)


def _billing(logs: Mapping[int, list[Event]]) -> Iterator[list[Event]]:
    members = [Member("billing-1", "10.0.0.11", (0, 1)), Member("billing-2", "10.0.0.12", (2,))]
    yield [_generation("billing", MONDAY, 41, members)]
    yield [_generation("billing", RESTARTED_AT - timedelta(seconds=40), 42, [])]
    again = [Member("billing-1", "10.0.0.21", (0, 1)), Member("billing-2", "10.0.0.22", (2,))]
    yield [_generation("billing", RESTARTED_AT, 43, again)]
    stuck = next(number for number, event in enumerate(logs[1]) if event.at == BROKEN_AT)
    for at in _every(timedelta(minutes=15)):
        offsets = {partition: read_until(log, at) for partition, log in logs.items()}
        if BROKEN_AT <= at < RESTARTED_AT:
            offsets[1] = stuck
        yield _commits("billing", at, offsets)


def _shipping(logs: Mapping[int, list[Event]]) -> Iterator[list[Event]]:
    two = [Member("shipping-1", "10.0.0.31", (0, 1)), Member("shipping-2", "10.0.0.32", (2,))]
    hosts = ("10.0.0.31", "10.0.0.32", "10.0.0.33")
    three = [Member(f"shipping-{n + 1}", host, (n,)) for n, host in enumerate(hosts)]
    yield [_generation("shipping", MONDAY, 7, two)]
    yield [_generation("shipping", MONDAY + timedelta(days=3, hours=10), 8, three)]
    for at in _every(timedelta(hours=1)):
        yield _commits("shipping", at, {p: read_until(log, at) for p, log in logs.items()})


def _reports(logs: Mapping[int, list[Event]]) -> Iterator[list[Event]]:
    for day in range(6):
        at = MONDAY + timedelta(days=day, hours=2)
        reader = [Member("reports-nightly", "10.0.0.41", (0, 1, 2))]
        yield [_generation("reports", at - timedelta(minutes=2), 2 * day + 1, reader)]
        yield _commits("reports", at, {p: read_until(log, at) for p, log in logs.items()})
        yield [_generation("reports", at + timedelta(seconds=5), 2 * day + 2, [])]


def _every(step: timedelta) -> Iterator[datetime]:
    """Moments at regular distances, the last one a little before the end of the week."""
    at = MONDAY + step
    while at < END:
        yield at
        at += step
    yield END - timedelta(seconds=20)


def _commits(group: str, at: datetime, offsets: Mapping[int, int]) -> list[Event]:
    """A commit for each partition of orders."""
    events = []
    for partition, offset in offsets.items():
        key = {"group": group, "topic": ORDERS, "partition": partition}
        value = {
            "offset": offset,
            "leaderEpoch": 0,
            "metadata": "",
            "commitTimestamp": int(at.timestamp() * 1000),
        }
        written = write_record_value(CONSUMER_OFFSETS, _OFFSET_COMMIT, 3, value)
        events.append(Event(at, write_record_key(CONSUMER_OFFSETS, _OFFSET_COMMIT, key), written))
    return events


def _generation(group: str, at: datetime, number: int, members: list[Member]) -> Event:
    """A generation of a classic group as its coordinator writes it; without members it is empty."""
    value = {
        "protocolType": "consumer",
        "generation": number,
        "protocol": "range" if members else None,
        "leader": _member_id(members[0]) if members else None,
        "currentStateTimestamp": int(at.timestamp() * 1000),
        "members": [_member(member) for member in members],
    }
    key = write_record_key(CONSUMER_OFFSETS, _GROUP_METADATA, {"group": group})
    written = write_record_value(CONSUMER_OFFSETS, _GROUP_METADATA, 3, value)
    return Event(at, key, written)


def _member(member: Member) -> dict[str, object]:
    mine = [{"topic": ORDERS, "partitions": list(member.partitions)}]
    topics = {"topics": [ORDERS], "userData": None, "ownedPartitions": []}
    return {
        "memberId": _member_id(member),
        "groupInstanceId": None,
        "clientId": member.client_id,
        "clientHost": f"/{member.host}",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
        "subscription": _protocol(SUBSCRIPTION, topics),
        "assignment": _protocol(ASSIGNMENT, {"assignedPartitions": mine, "userData": None}),
    }


def _member_id(member: Member) -> str:
    # A client's id and a UUID, which here is made of where it runs.
    return f"{member.client_id}-00000000-0000-4000-8000-{member.host.replace('.', ''):0>12}"


def _protocol(name: str, values: dict[str, Any]) -> bytes:
    return (1).to_bytes(2, "big") + write_message(message(name), 1, values)


def hourly(events: Iterable[Event]) -> list[list[Event]]:
    """Events in batches of an hour each."""
    batches: dict[datetime, list[Event]] = {}
    for event in events:
        batches.setdefault(event.at.replace(minute=0, second=0, microsecond=0), []).append(event)
    return list(batches.values())


def write_partition(
    log_dir: str, topic: str, partition: int, batches: list[list[Event]], codec: CompressionType
) -> WrittenLog:
    """One partition, its segments up to 32 KiB."""
    settings = LogSettings(segment_bytes=32 * 1024)
    at_ms = batches[0][0].time_ms
    output = PartitionOutput(
        log_dir,
        (topic, partition),
        settings,
        start_offset=0,
        attempt=("0" * 16, "0" * 16),
        now_ms=lambda: at_ms,
        topic_id=_TOPIC_IDS[topic],
        flush=lambda descriptor: None,
    )
    for batch in batches:
        at_ms = batch[-1].time_ms
        start = output.log.next_offset
        records = [
            Record(start + number, event.time_ms, CREATE_TIME, event.key, event.value)
            for number, event in enumerate(batch)
        ]
        output.log.append(write_batch(records, BatchFields(leader_epoch=0, compression=codec)))
    return output.finish()


def write_shop_week(log_dir: str) -> None:
    """The log directory, as a broker that was stopped cleanly leaves it."""
    chance = random.Random(20261109)
    logs = orders(chance)
    written = [
        write_partition(log_dir, ORDERS, partition, hourly(log), CompressionType.ZSTD)
        for partition, log in logs.items()
    ]
    details = [[event] for event in customers(chance)]
    written.append(write_partition(log_dir, CUSTOMERS, 0, details, CompressionType.NONE))
    groups = group_events(logs)
    written.append(write_partition(log_dir, CONSUMER_OFFSETS, 0, groups, CompressionType.NONE))
    commit_logs(log_dir, written)
    for name, text in (
        ("meta.properties", "version=1\ncluster.id=shop-week-example-0001\nnode.id=1\n"),
        ("cleaner-offset-checkpoint", f"0\n2\n{CONSUMER_OFFSETS} 0 0\n{CUSTOMERS} 0 0\n"),
        (".kafka_cleanshutdown", '{"version":0,"brokerEpoch":1}'),
    ):
        with open(os.path.join(log_dir, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    write_shop_week(sys.argv[1])
