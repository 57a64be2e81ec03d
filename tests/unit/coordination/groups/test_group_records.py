"""States of groups that no fixture is in, and groups at a past time. Rules: F320 to F322."""

from typing import Any

import pytest

from kafkalog.coordination.groups.group_records import Group, GroupMember
from tests.support.lag.plain_groups import plain_commits, plain_groups
from tests.support.messages.group_records import commit, group_record

CLASSIC_MEMBER = {"member_id": "m", "client_id": "c", "client_host": "/h", "session_timeout_ms": 1}


def described(
    *records: dict[str, Any], commits: tuple[Any, ...] = (), at_ms: int | None = None
) -> Group:
    found, _ = plain_groups(records, plain_commits(commits, at_ms), at_ms)
    (group,) = found.values()
    return group


def members(*records: dict[str, Any], at_ms: int | None = None) -> list[GroupMember]:
    return plain_groups(records, [], at_ms)[1]


def consumer_group(epoch: int, target: int, *members: tuple[int, int]) -> list[dict[str, Any]]:
    """The records of a group whose members are at these epochs, in these states."""
    records = [group_record(3, 0, epoch=epoch), group_record(6, 1, epoch=target)]
    for number, (member_epoch, state) in enumerate(members):
        name = {"member_id": f"m{number}"}
        records.append(group_record(5, 2, client_id="c", **name))
        records.append(group_record(8, 3, epoch=member_epoch, member_state=state, **name))
    return records


@pytest.mark.parametrize(
    ("records", "state"),
    [
        # By ConsumerGroup.maybeUpdateGroupState and ConsumerGroupMember.isReconciledTo.
        (consumer_group(5, 5), "Empty"),
        (consumer_group(6, 5, (5, 0)), "Assigning"),
        (consumer_group(5, 5, (5, 0), (5, 0)), "Stable"),
        (consumer_group(5, 5, (5, 0), (4, 0)), "Reconciling"),
        (consumer_group(5, 5, (5, 0), (5, 1)), "Reconciling"),
        (consumer_group(5, 5, (5, 2)), "Reconciling"),
        # A member that has not been given anything yet.
        ([*consumer_group(5, 5), group_record(5, 4, member_id="m")], "Reconciling"),
        # A group that was never assigned.
        ([group_record(3, 0, epoch=1), group_record(5, 1, member_id="m")], "Assigning"),
    ],
)
def test_states_of_consumer_groups(records: list[dict[str, Any]], state: str) -> None:
    # F321
    assert described(*records).state == state


def test_states_of_streams_groups() -> None:
    # F321: by StreamsGroup.maybeUpdateGroupState; its members' code of stable is 1.
    group = group_record(17, 0, epoch=3, validated_topology_epoch=2)
    member = group_record(19, 1, member_id="m", client_id="c")
    has = group_record(22, 2, member_id="m", epoch=3, member_state=1)
    target, topology = group_record(20, 3, epoch=3), group_record(23, 4, epoch=2)
    assert described(group, target, topology).state == "Empty"
    assert described(group, member, has, target).state == "NotReady"
    newer = group_record(23, 5, epoch=4)
    assert described(group, member, has, target, topology, newer).state == "NotReady"
    assert described(group, member, has, target, topology).state == "Stable"
    waiting = group_record(22, 5, member_id="m", epoch=3, member_state=3)
    assert described(group, member, waiting, target, topology).state == "Reconciling"


def test_a_group_that_became_another_type_and_one_that_is_missing() -> None:
    # F320: what is deleted of the one type says nothing of the other.
    classic = group_record(2, 0, epoch=8, protocol_type="consumer", members=[])
    gone = group_record(2, 1, is_tombstone=True)
    row = described(classic, gone, *consumer_group(9, 9))
    assert (row.group_type, row.state, row.epoch) == ("consumer", "Empty", 9)
    assert described(classic, gone).state == "Dead"
    # Commits make a group of it again: a simple one.
    row = described(classic, gone, commits=(commit(2, 5),))
    assert (row.group_type, row.state, row.is_simple) == ("classic", "Empty", True)
    assert described(gone, commits=(commit(2, 5), commit(3, None))).state == "Dead"


def test_a_group_without_a_protocol_type_is_simple() -> None:
    # F320: as brokers write it when such a group is deleted or expires in parts.
    row = described(group_record(2, 0, epoch=0, protocol_type="", members=[]))
    assert (row.state, row.protocol_type, row.is_simple) == ("Empty", None, True)
    row = described(group_record(2, 0, epoch=1, protocol_type="consumer", members=[]))
    assert (row.state, row.protocol_type, row.is_simple) == ("Empty", "consumer", False)


def test_what_cannot_be_read_is_not_known() -> None:
    # T37: types that are not known name no group; of a version that is not known only the key is.
    newer = group_record(2, 5, reason="unknown_version", version=9)
    unknown = group_record(9, 6, group_id=None, group_type=None, reason="unknown_type")
    row = described(newer, unknown, commits=(commit(7, 1),))
    found = (row.key.group_id, row.group_type, row.state, row.is_simple, row.members)
    assert found == ("g", "classic", None, False, 0)
    member = group_record(5, 7, member_id="m", reason="unknown_version", version=9)
    (found_member,) = members(*consumer_group(5, 5), member)
    assert (found_member.member_id, found_member.subscribed_topics, found_member.assigned) == (
        "m",
        None,
        None,
    )


def test_a_group_at_a_past_moment() -> None:
    # F320: records up to that moment count, the moment included.
    records = [
        group_record(2, 1, protocol_type="consumer", protocol="range", members=[CLASSIC_MEMBER]),
        group_record(2, 2, protocol_type="consumer", members=[]),
        group_record(2, 3, is_tombstone=True),
    ]
    states = [described(*records, at_ms=at).state for at in (1000, 1999, 2000, 2999, 3000)]
    assert states == ["Stable", "Stable", "Empty", "Empty", "Dead"]
    assert plain_groups(tuple(records), [], 999) == ({}, [])
    (member,) = members(*records, at_ms=1000)
    assert (member.member_id, member.client_host) == ("m", "/h")


def test_topics_of_a_member_with_a_regular_expression() -> None:
    # F322: the record of the expression tells which topics it matches.
    records = [
        group_record(5, 1, member_id="m", subscribed_topics=["a"], subscribed_topic_regex="b.*"),
        group_record(16, 2, subscribed_topics=["b1", "a"], subscribed_topic_regex="b.*"),
        group_record(16, 3, subscribed_topics=["c1"], subscribed_topic_regex="c.*"),
    ]
    (member,) = members(*records)
    assert member.subscribed_topics == frozenset({"a", "b1"})


def test_the_assignor_of_a_consumer_group() -> None:
    # F321: most members decide; where none asks, the broker's default.
    records = consumer_group(5, 5, (5, 0), (5, 0), (5, 0))
    assert described(*records).assignor == "uniform"
    for record, asked in zip(records[2::2], ("range", "range", "uniform"), strict=True):
        record["server_assignor"] = asked
    assert described(*records).assignor == "range"
