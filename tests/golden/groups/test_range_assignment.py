"""What assignors of real consumers gave the members of their groups, decoded from the records of
`__consumer_offsets`. Rules: F457, F460."""

import pytest

from kafkalog.coordination.zookeeper.partition_assignment import BrokerPartition, range_assignment
from tests.support.golden.coordinator_rows import coordinator_rows
from tests.support.golden.fixture_sets import segments
from tests.support.repository import Unpack


@pytest.mark.parametrize(
    ("name", "most_members"), [("kafka44", 2), ("kafka39zk", 2), ("kafka010", 1)]
)
def test_members_of_range_groups_have_what_is_assigned(
    unpacked: Unpack, name: str, most_members: int
) -> None:
    logs = unpacked(f"{name}.logs")
    on_disk: dict[str, set[int]] = {}
    for segment in segments(logs):
        on_disk.setdefault(segment.topic, set()).add(segment.partition)
    members, whole = [0], 0
    for row in coordinator_rows("group_metadata", logs):
        if row["group_type"] != "classic" or row["protocol"] != "range" or not row["members"]:
            continue
        told = {
            (each["topic"], number): member["member_id"]
            for member in row["members"]
            for each in member["assigned"]
            for number in each["partitions"]
        }
        numbers: dict[str, set[int]] = {}
        for topic, number in told:
            numbers.setdefault(topic, set()).add(number)
        # Of a topic that was deleted since, what was assigned is all there is to go by.
        whole += sum(topic in on_disk for topic in numbers)
        partitions = {
            topic: [BrokerPartition(number) for number in sorted(on_disk.get(topic, assigned))]
            for topic, assigned in numbers.items()
        }
        # A new consumer is what one stream of an old one was.
        streams = {
            member["member_id"]: dict.fromkeys(member["subscribed_topics"], 1)
            for member in row["members"]
        }
        assigned = range_assignment(streams, partitions)
        assert {
            (place.topic, place.partition.partition): thread.consumer_id
            for place, thread in assigned.items()
        } == told
        members.append(len(streams))
    assert max(members) == most_members
    assert whole >= len(members) - 1 > 0
