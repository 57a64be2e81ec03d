"""Who gets which partitions: what old consumers owned on live brokers, what assignors of new ones
gave their members, and examples in Kafka's own documentation. Rules: F457 to F464."""

import pytest

from kafkalog.coordination.zookeeper.partition_assignment import (
    BrokerPartition,
    ConsumedPartition,
    ThreadId,
    dashed_name,
    range_assignment,
    ranges,
    roundrobin_assignment,
    sorted_partitions,
    sorted_threads,
)
from kafkalog.wire.java_text import java_string_hash
from tests.support.repository import Unpack


def numbered(count: int) -> list[BrokerPartition]:
    return [BrokerPartition(number) for number in range(count)]


def owned(streams: dict[str, dict[str, int]], topic: str, partitions: int) -> dict[int, str]:
    assigned = range_assignment(streams, {topic: numbered(partitions)})
    return {place.partition.partition: thread.name for place, thread in assigned.items()}


def test_the_first_consumers_take_what_does_not_divide() -> None:
    # F460, the example in the old consumer's own documentation
    streams = {"C1": {"t": 2}, "C2": {"t": 2}}
    assert owned(streams, "t", 5) == {0: "C1-0", 1: "C1-0", 2: "C1-1", 3: "C2-0", 4: "C2-1"}


def test_without_a_remainder_they_are_the_ranges_of_the_documents() -> None:
    # F460: from i*N to (i+1)*N - 1
    assert ranges(6, 3) == [range(2), range(2, 4), range(4, 6)]


def test_some_get_nothing_where_consumers_are_more_than_partitions() -> None:
    # F462
    streams = {"a": {"t": 1}, "b": {"t": 1}, "c": {"t": 1}}
    assert owned(streams, "t", 2) == {0: "a-0", 1: "b-0"}
    assert ranges(1, 3) == [range(1), range(1, 1), range(1, 1)]


def test_only_consumers_of_a_topic_share_it() -> None:
    # F458
    streams = {"a": {"t": 1}, "b": {"u": 1}}
    assigned = range_assignment(streams, {"t": numbered(1), "u": numbered(1), "v": numbered(1)})
    assert {place.topic: thread.consumer_id for place, thread in assigned.items()} == {
        "t": "a",
        "u": "b",
    }


@pytest.mark.parametrize(
    ("partitions", "topics_of", "expected"),
    [
        (
            {"topic1": 3, "topic2": 2},
            {"consumer1": "1", "consumer2": "12", "consumer3": "1"},
            {"consumer1": ["1-0"], "consumer2": ["1-1", "2-0", "2-1"], "consumer3": ["1-2"]},
        ),
        (
            {"topic1": 3, "topic2": 3},
            {"consumer1": "12", "consumer2": "12"},
            {"consumer1": ["1-0", "1-1", "2-0", "2-1"], "consumer2": ["1-2", "2-2"]},
        ),
        (
            {"topic1": 5, "topic2": 4},
            {"consumer1": "12", "consumer2": "12", "consumer3": "12", "consumer4": "12"},
            {
                "consumer1": ["1-0", "1-1", "2-0"],
                "consumer2": ["1-2", "2-1"],
                "consumer3": ["1-3", "2-2"],
                "consumer4": ["1-4", "2-3"],
            },
        ),
    ],
)
def test_cases_of_kafkas_own_assignor(
    partitions: dict[str, int], topics_of: dict[str, str], expected: dict[str, list[str]]
) -> None:
    # F457, F460: what RangeAssignorTest of Kafka's clients expects
    streams = {
        consumer: {f"topic{number}": 1 for number in numbers}
        for consumer, numbers in topics_of.items()
    }
    places = {topic: numbered(count) for topic, count in partitions.items()}
    found: dict[str, list[str]] = {}
    for place, thread in range_assignment(streams, places).items():
        name = f"{place.topic.removeprefix('topic')}-{place.partition.partition}"
        found.setdefault(thread.consumer_id, []).append(name)
    assert {consumer: sorted(names) for consumer, names in found.items()} == expected


def test_streams_are_sorted_by_their_names() -> None:
    # F459: as texts, and by UTF-16 units, in which U+1F600 comes before U+FF5E
    names = [thread.name for thread in sorted_threads({"c": {"t": 11}}, "t")]
    assert names == ["c-0", "c-1", "c-10", *(f"c-{number}" for number in range(2, 10))]
    faces = sorted_threads({"\uff5e": {"t": 1}, "\U0001f600": {"t": 1}}, "t")
    assert [thread.consumer_id for thread in faces] == ["\U0001f600", "\uff5e"]


def test_partitions_of_a_broker_stand_together() -> None:
    # F459, F463: so that a consumer has to connect to few brokers
    given = [BrokerPartition(p, b) for p in (10, 2) for b in (1, 0)] + [BrokerPartition(2, 0)]
    assert [partition.name for partition in sorted_partitions(given)] == [
        "0-10",
        "0-2",
        "1-10",
        "1-2",
    ]
    assigned = range_assignment({"a": {"t": 1}, "b": {"t": 1}}, {"t": given})
    brokers = {thread.consumer_id: set[int | None]() for thread in assigned.values()}
    for place, thread in assigned.items():
        brokers[thread.consumer_id].add(place.partition.broker_id)
    assert brokers == {"a": {0}, "b": {1}}
    assert [partition.name for partition in sorted_partitions(reversed(numbered(11)))] == [
        str(number) for number in range(11)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    # By the Java Language: s[0]*31^(n-1) + ... + s[n-1] in 32 bits.
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31))],
)
def test_hashes_are_javas(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


def test_round_robin_goes_by_the_hashes_of_the_names() -> None:
    # F464: hashes of [t,0], [t,1], [t,2] rise by 31 each
    streams = {"a": {"t": 1}, "b": {"t": 1}}
    assigned = roundrobin_assignment(streams, {"t": numbered(3)})
    assert [assigned[ConsumedPartition("t", BrokerPartition(n))].name for n in range(3)] == [
        "a-0",
        "b-0",
        "a-0",
    ]


def test_round_robin_passes_over_who_does_not_consume_the_topic() -> None:
    # F464
    streams = {"a": {"t": 1, "u": 1}, "b": {"u": 2}}
    assigned = roundrobin_assignment(streams, {"t": numbered(2), "u": numbered(4)}, dashed_name)
    of_t = {thread.name for place, thread in assigned.items() if place.topic == "t"}
    assert of_t == {"a-0"}
    assert {thread for place, thread in assigned.items() if place.topic == "u"} == {
        ThreadId("a", 0),
        ThreadId("b", 0),
        ThreadId("b", 1),
    }


@pytest.mark.parametrize("name", ["kafka08", "kafka010"])
def test_old_consumers_owned_what_is_assigned(unpacked: Unpack, name: str) -> None:
    # F457, F460: owners as ConsumerOffsetChecker printed them; of the groups with live members the
    # consumers are those that own anything, and their topics those that they own anything of.
    golden = unpacked(f"{name}.golden")
    for path in sorted(golden.glob("tools/offset_checker_*.txt")):
        lines = [line.split() for line in path.read_text().splitlines() if "Group" not in line]
        told = {(line[1], int(line[2])): line[-1] for line in lines if line[-1] != "none"}
        streams: dict[str, dict[str, int]] = {}
        partitions: dict[str, list[BrokerPartition]] = {}
        for (topic, partition), owner in told.items():
            streams.setdefault(owner.removesuffix("-0"), {})[topic] = 1
            partitions.setdefault(topic, []).append(BrokerPartition(partition))
        assigned = range_assignment(streams, partitions)
        assert {
            (place.topic, place.partition.partition): thread.name
            for place, thread in assigned.items()
        } == told
