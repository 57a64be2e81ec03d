"""Consumers that subscribe to `kafkalog serve`, in groups that a live broker had."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import Consumer

from kafkalog import serve
from tests.support.serve.raw_client import raw_client

Unpacked = Callable[[str], Path]
# This group had read one of the topic's 1100 records.
GROUP, TOPIC, COMMITTED, END = "shop.g with spaces/and:ünicode", "shop.idem", 1, 1100
SHARED = ["shop.multi-3-part-0", "shop.empty"]
_WITHIN_SECONDS = 30

of_both_protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture(scope="module")
def address(unpacked: Unpacked) -> Iterator[str]:
    with serve(str(unpacked("kafka44.logs") / "log-dirs")) as running:
        yield running.bootstrap_servers


@contextmanager
def consumer(address: str, group: str, protocol: str) -> Iterator[Consumer]:
    found = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        yield found
    finally:
        found.close()


def first_message(consumer: Consumer) -> Any:
    end = monotonic() + _WITHIN_SECONDS
    while monotonic() < end:
        message: Any = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None
            return message
    raise AssertionError("no message came")


@of_both_protocols
def test_a_group_goes_on_where_it_had_stopped_and_again_where_it_stops_now(
    unpacked: Unpacked, protocol: str
) -> None:
    path = str(unpacked("kafka44.logs") / "log-dirs")
    for _ in range(2):
        with serve(path) as running:
            with consumer(running.bootstrap_servers, GROUP, protocol) as first:
                first.subscribe([TOPIC])
                message = first_message(first)
                assert message.offset() == COMMITTED
                first.commit(message=message, asynchronous=False)
            with consumer(running.bootstrap_servers, GROUP, protocol) as second:
                second.subscribe([TOPIC])
                assert first_message(second).offset() == COMMITTED + 1
        # The next server knows nothing of it.


@of_both_protocols
def test_members_share_the_partitions_and_take_over_those_of_who_leaves(
    address: str, protocol: str
) -> None:
    group = f"new-{protocol}"
    with consumer(address, group, protocol) as stays:
        stays.subscribe(SHARED)
        with consumer(address, group, protocol) as leaves:
            leaves.subscribe(SHARED)
            until(
                lambda: (
                    len(stays.assignment()) + len(leaves.assignment()) == 7
                    and 0 < len(stays.assignment()) < 7
                ),
                stays,
                leaves,
            )
            with raw_client(address) as client:
                listed = client.ask("ListGroups", typesFilter=[protocol])["groups"]
                assert (group, "Stable") in {(g["groupId"], g["groupState"]) for g in listed}
        until(lambda: len(stays.assignment()) == 7, stays)


def until(is_so: Callable[[], bool], *consumers: Consumer) -> None:
    end = monotonic() + _WITHIN_SECONDS
    while not is_so():
        assert monotonic() < end, [each.assignment() for each in consumers]
        for each in consumers:
            each.poll(0.05)


def test_without_groups_nobody_can_join(unpacked: Unpacked) -> None:
    path = str(unpacked("kafka44.logs") / "log-dirs")
    with serve(path, groups=False) as running, raw_client(running.bootstrap_servers) as client:
        offered = {each["apiKey"] for each in client.ask("ApiVersions", 0)["apiKeys"]}
        join_group, offset_commit, heartbeat, describe_groups = 11, 8, 68, 15
        assert not offered & {join_group, offset_commit, heartbeat}
        assert describe_groups in offered
