"""Range assignment and rebalances of any sizes. Rules: F457, F460 to F462, F464."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.coordination.zookeeper.partition_assignment import (
    Assignment,
    BrokerPartition,
    ConsumedPartition,
    range_assignment,
    ranges,
    roundrobin_assignment,
    sorted_threads,
)
from kafkalog.coordination.zookeeper.rebalancing import GroupRegistry, rebalanced_owners

NAMES = st.text("abc-_.0é\U0001f600", min_size=1, max_size=5)
STREAMS = st.dictionaries(
    NAMES, st.dictionaries(st.sampled_from(["t", "u", "v"]), st.integers(0, 5)), max_size=6
)
PARTITIONS = st.one_of(
    st.integers(0, 20).map(lambda count: [BrokerPartition(number) for number in range(count)]),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)).map(lambda p: BrokerPartition(*p))),
)
REGISTRIES = st.dictionaries(st.sampled_from(["t", "u", "v"]), PARTITIONS)
Given = dict[str, dict[str, int]]
Places = dict[str, list[BrokerPartition]]


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_ranges_share_all_out_and_differ_by_at_most_one(partitions: int, consumers: int) -> None:
    shares = ranges(partitions, consumers)
    assert [number for share in shares for number in share] == list(range(partitions))
    sizes = [len(share) for share in shares]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1


def consumed(streams: Given, partitions: Places) -> set[ConsumedPartition]:
    return {
        ConsumedPartition(topic, partition)
        for topic, found in partitions.items()
        if sorted_threads(streams, topic)
        for partition in found
    }


@given(STREAMS, REGISTRIES)
def test_every_partition_goes_to_one_stream_that_consumes_its_topic(
    streams: Given, partitions: Places
) -> None:
    for assigned in (
        range_assignment(streams, partitions),
        roundrobin_assignment(streams, partitions),
    ):
        assert set(assigned) == consumed(streams, partitions)
        for place, thread in assigned.items():
            assert thread.number < streams[thread.consumer_id][place.topic]


def shares(assigned: Assignment, topic: str, streams: Given) -> list[int]:
    counts = Counter(thread for place, thread in assigned.items() if place.topic == topic)
    return [counts[thread] for thread in sorted_threads(streams, topic)]


@given(STREAMS, REGISTRIES)
def test_shares_of_a_topic_differ_by_at_most_one(streams: Given, partitions: Places) -> None:
    assigned = range_assignment(streams, partitions)
    for topic in partitions:
        sizes = shares(assigned, topic, streams)
        assert max(sizes, default=0) - min(sizes, default=0) <= 1


@given(STREAMS, REGISTRIES, st.data())
def test_rebalances_end_with_what_is_assigned(
    streams: Given, partitions: Places, data: st.DataObject
) -> None:
    assigned = range_assignment(streams, partitions)
    threads = sorted({thread for topic in "tuv" for thread in sorted_threads(streams, topic)})
    places = st.sampled_from(sorted(assigned))
    before = st.dictionaries(places, st.sampled_from(threads)) if assigned else st.just({})
    registry = GroupRegistry(streams, partitions, data.draw(before))
    order = data.draw(st.permutations(sorted(streams)))
    assert rebalanced_owners(registry, order) == assigned
