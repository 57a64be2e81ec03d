"""MirrorMaker 2 copies from `kafkalog serve` into a live broker."""

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from kafkalog import serve
from tests.support.broker.kafka_server import KafkaServer
from tests.support.serve.clients import Row, records_of_view
from tests.support.serve.java_client import needs_compiler, records_of_java
from tests.support.serve.mirror_maker import SOURCE, mirror_maker
from tests.support.serve.served_sets import Unpacked

pytestmark = [pytest.mark.deep, needs_compiler, pytest.mark.timeout(600)]

# Compressed, with groups that had read them, and with transactions.
READ = "shop.multi-3-part-0"
TOPICS = ("shop.codec-zstd", READ, "shop.tx")
_WITHIN_SECONDS = 100

Place = tuple[str, int]
Offsets = dict[str, dict[Place, int]]


@pytest.fixture(scope="module")
def expected(unpacked: Unpacked) -> list[Row]:
    """What MirrorMaker reads: committed records, and each record gets the next offset."""
    rows = records_of_view([str(unpacked("kafka44.logs") / "log-dirs")], "read_committed")
    ends: dict[Place, int] = {}
    found = []
    for topic, partition, _, *others in (row for row in rows if row[0] in TOPICS):
        offset = ends.get((topic, partition), 0)
        found.append((f"{SOURCE}.{topic}", partition, offset, *others))
        ends[topic, partition] = offset + 1
    return found  # type: ignore[return-value]


def test_records_and_offsets_of_groups_are_in_the_live_cluster(
    unpacked: Unpacked, tmp_path: Path, expected: list[Row]
) -> None:
    places = sorted({row[:2] for row in expected})
    live = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())
    with (
        serve(str(unpacked("kafka44.logs") / "log-dirs")) as running,
        KafkaServer(tmp_path / "live") as target,
        mirror_maker(tmp_path / "mirror", running.bootstrap_servers, target.bootstrap, TOPICS),
    ):
        admin = AdminClient({"bootstrap.servers": target.bootstrap})
        until(lambda: set(places) <= partitions_of(admin))
        ends = {place: sum(row[:2] == place for row in expected) for place in places}
        until(lambda: end_offsets(admin, places) == ends)
        found = records_of_java("broker", target.bootstrap, "read_uncommitted", places)
        assert found.stops == []
        assert found.rows == expected
        committed = committed_in(live["groups"], READ)
        at_end = {
            group
            for group, offsets in committed.items()
            if offsets.items() <= ends.items() and len(offsets) > 1
        }
        assert len(at_end) == 4
        until(lambda: at_end <= exactly_copied(admin, committed))
        copied = copied_offsets(admin, committed)
    # The topic has the same offsets in both clusters. Of those before the end MirrorMaker keeps
    # some, and lets a group begin at one that is earlier, never later.
    for group, offsets in copied.items():
        for place, offset in offsets.items():
            assert 0 <= offset <= committed[group][place]
    assert len(copied) > len(at_end)


def until(is_so: Callable[[], bool]) -> None:
    end = monotonic() + _WITHIN_SECONDS
    while not is_so():
        assert monotonic() < end
        sleep(0.5)


def partitions_of(admin: AdminClient) -> set[Place]:
    topics = admin.list_topics(timeout=30).topics
    return {(name, number) for name, topic in topics.items() for number in topic.partitions}


def end_offsets(admin: AdminClient, places: list[Place]) -> dict[Place, int]:
    asked = {TopicPartition(*place): OffsetSpec.latest() for place in places}
    found = admin.list_offsets(asked)
    return {(each.topic, each.partition): done.result().offset for each, done in found.items()}


def committed_in(groups: dict[str, Any], topic: str) -> Offsets:
    """The offsets of groups in a topic, as the Admin client got them of the old broker."""
    found: Offsets = {}
    for group, described in groups.items():
        for place, committed in described["offsets"].items():
            name, _, number = place.rpartition("-")
            if name == topic:
                found.setdefault(group, {})[f"{SOURCE}.{topic}", int(number)] = committed["offset"]
    return found


def copied_offsets(admin: AdminClient, groups: Offsets) -> Offsets:
    """The offsets that groups have in the live cluster, of the same partitions."""
    found: Offsets = {}
    for group, places in groups.items():
        asked = [ConsumerGroupTopicPartitions(group)]
        listed = admin.list_consumer_group_offsets(asked)[group].result()
        offsets = {(each.topic, each.partition): each.offset for each in listed.topic_partitions}
        found[group] = {place: offsets[place] for place in places if place in offsets}
    return {group: offsets for group, offsets in found.items() if offsets}


def exactly_copied(admin: AdminClient, groups: Offsets) -> set[str]:
    copied = copied_offsets(admin, groups)
    return {group for group, offsets in groups.items() if copied.get(group) == offsets}
