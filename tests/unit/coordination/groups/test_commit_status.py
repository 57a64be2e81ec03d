"""Which commits count at a time, which are stale, and when they expire; which partition of
`__consumer_offsets` groups belong to, by their own evidence. Rules: F323 to F327.

The expectations follow ClassicGroup, ConsumerGroup and StreamsGroup (offsetExpirationCondition,
isSubscribedToTopic) and OffsetMetadataManager.cleanupExpiredOffsets of Kafka 4.x.
That the partition is that of Java's hash is in tests/spark/groups/test_offsets_topic.py.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.coordination.groups.commit_status import (
    GroupFacts,
    KnownTopic,
    commit_status,
    expires_ms,
    is_confirmed,
    offsets_partition_of,
    partition_count,
    subscribed_by_all,
)
from kafkalog.coordination.groups.group_records import group_key
from tests.support.lag.plain_groups import plain_commits, plain_groups
from tests.support.messages.group_records import commit, group_record

RETENTION_MS = 100_000
# Later than the first commit, by ZooKeeper's clock; brokers have their own.
CREATED_MS = 1500
# All lie in 7; g0 is one that belongs there, the place of the others is unknown, except one.
BELONGS = {"g0": 7, "moved": 8}
KNOWN = ("c", "t", "id-1", False)


def committed(*rows: dict[str, Any], at_ms: int | None = None) -> list[dict[str, Any]]:
    return plain_commits(rows, at_ms)


def test_a_commit_that_only_waits_is_still_known_by_its_input() -> None:
    waiting = {"effect": "open", "is_transactional": True, "effective_offset": None}
    (row,) = committed(commit(1, 5, input_path="/logs", **waiting))
    assert (row["input_path"], row["committed_offset"], row["has_open_commit"]) == (
        "/logs",
        None,
        True,
    )


def test_a_negative_offset_is_none() -> None:
    # F324: ListConsumerGroupOffsetsHandler of Kafka's Admin client.
    (row,) = committed(commit(1, 5), commit(2, -1))
    assert (row["committed_offset"], row["commit_timestamp_ms"]) == (None, 2000)


@dataclass(frozen=True)
class Case:
    """A commit of a group of its own, records of the group, and topics: what is to come of it."""

    row: dict[str, Any]
    expires_ms: int | None
    status: str = "current"
    records: tuple[dict[str, Any], ...] = ()
    waiting: tuple[dict[str, Any], ...] = ()
    topics: tuple[tuple[Any, ...], ...] = (KNOWN,)
    group_id: str | None = None

    def name(self, number: int) -> str:
        return self.group_id or f"g{number}"


def check(*cases: Case, at_ms: int = 50_000) -> None:
    """Judge all cases at once: each has a group and a topic of its own."""
    assert judged(cases, at_ms) == {
        case.name(number): (case.expires_ms, case.status) for number, case in enumerate(cases)
    }


def judged(cases: Sequence[Case], at_ms: int) -> dict[str, tuple[int | None, str]]:
    commits, records, topics = [], [], []
    for number, case in enumerate(cases):
        own_id, topic = {"group_id": case.name(number)}, f"t{number}"
        commits += [{**row, **own_id, "topic": topic} for row in (case.row, *case.waiting)]
        records += [{**_renamed(record, topic), **own_id} for record in case.records]
        topics += [KnownTopic(row[0], topic, row[2], row[3], CREATED_MS) for row in case.topics]
    in_effect = plain_commits(tuple(commits))
    groups, members = plain_groups(tuple(records), in_effect)
    found = {}
    for row in in_effect:
        key = group_key(row)
        subscribed = subscribed_by_all(
            member.subscribed_topics for member in members if member.group == key
        )
        group = groups[key]
        facts = GroupFacts(
            *(group.group_type, group.state, group.protocol_type, group.state_timestamp_ms),
            *(subscribed, BELONGS.get(key.group_id)),
        )
        own = [topic for topic in topics if (topic.cluster_id, topic.topic) == ("c", row["topic"])]
        status = commit_status(row, facts, own, 1000, at_ms=at_ms, retention_ms=RETENTION_MS)
        found[key.group_id] = (expires_ms(row, facts, RETENTION_MS), status)
    return found


def _renamed(record: dict[str, Any], topic: str) -> dict[str, Any]:
    """With the case's own topic for t."""
    return json.loads(json.dumps(record).replace('"t"', f'"{topic}"'))


def classic_group(*subscribed: list[str] | None, **columns: Any) -> dict[str, Any]:
    """A generation whose members subscribe these topics."""
    members = [
        {"member_id": f"m{number}", "subscribed_topics": topics}
        for number, topics in enumerate(subscribed)
    ]
    return group_record(2, 1, **{"protocol_type": "consumer", "members": members, **columns})


def consumer_group(*subscribed: list[str]) -> tuple[dict[str, Any], ...]:
    members = (
        group_record(5, 2, member_id=f"m{number}", subscribed_topics=topics)
        for number, topics in enumerate(subscribed)
    )
    return group_record(3, 1, epoch=1), *members


def open_commit(record_offset: int, committed_offset: int) -> dict[str, Any]:
    waits = {"is_transactional": True, "effect": "open"}
    nothing = {"effective_offset": None, "effective_timestamp_ms": None}
    return commit(record_offset, committed_offset, **waits, **nothing)


def test_what_counts_at_a_moment() -> None:
    # F324, T35: a transactional commit counts from its marker on, at 6000 here.
    in_transaction = commit(
        4, 40, is_transactional=True, effective_offset=6, effective_timestamp_ms=6000
    )
    rows = [commit(1, 10), commit(3, 30), in_transaction, commit(8, None)]
    found = {
        at: [
            (row["committed_offset"], row["has_open_commit"]) for row in committed(*rows, at_ms=at)
        ]
        for at in (999, 1000, 3999, 4000, 5999, 6000, 7999, 8000)
    }
    assert found == {
        999: [],
        1000: [(10, False)],
        3999: [(30, False)],
        4000: [(30, True)],
        5999: [(30, True)],
        6000: [(40, False)],
        7999: [(40, False)],
        8000: [],
    }
    assert committed(*rows) == []


def test_a_commit_of_format_0_counts_from_its_own_time_on() -> None:
    # F324
    row = commit(5, 10, record_timestamp_ms=None, effective_timestamp_ms=None)
    assert committed(row, at_ms=4999) == []
    assert [found["committed_offset"] for found in committed(row, at_ms=5000)] == [10]


def test_a_commit_that_only_waits_has_no_offset_yet() -> None:
    # F300
    (row,) = committed(open_commit(5, 10))
    assert (row["group_id"], row["committed_offset"], row["has_open_commit"]) == ("g", None, True)


def test_status_of_a_commit() -> None:
    # F327, F303, T38: a commit for an earlier topic of the name, or above the log, has no lag.
    earlier = ("c", "t", "id-0", True)
    check(
        Case(commit(10, 5), 110_000, "current"),
        Case(commit(10, 5), 110_000, "other_partition", topics=(), group_id="moved"),
        Case(commit(10, 5), 110_000, "unknown_topic", topics=()),
        # Another cluster's topic of that name is another topic.
        Case(commit(10, 5), 110_000, "unknown_topic", topics=(("d", "t", "id-1", False),)),
        Case(commit(10, 5), 110_000, "deleted_topic", topics=(("c", "t", "id-1", True),)),
        Case(commit(10, 5, topic_id="id-1"), 110_000, "current", topics=(KNOWN, earlier)),
        Case(commit(10, 5, topic_id="id-0"), 110_000, "recreated_topic", topics=(KNOWN, earlier)),
        Case(commit(10, 5, topic_id="id-0"), 110_000, "recreated_topic"),
        # Where the topic's own id is not known nothing tells.
        Case(commit(10, 5, topic_id="id-0"), 110_000, topics=(("c", "t", None, False),)),
        # F494: what is in ZooKeeper is of no partition of the offsets topic.
        Case(commit(1, 5, internal_partition=None), 101_000, "recreated_topic"),
        Case(commit(2, 5, internal_partition=None), 102_000, "current"),
        Case(commit(1, 5), 101_000, "current"),
        Case(commit(10, 1000), 110_000, "current"),
        Case(commit(10, 1001), 110_000, "beyond_log_end"),
        Case(commit(10, 5, is_confirmed=False), 110_000, "unconfirmed"),
        Case(commit(10, 5, is_confirmed=None), 110_000, "current"),
    )


def test_a_commit_expires_with_the_millisecond() -> None:
    # F325, T36: version 1 names the time itself.
    explicit = commit(10, 5, version=1, expire_timestamp_ms=110_000)
    for at_ms, status in ((109_999, "current"), (110_000, "expired")):
        check(
            Case(commit(10, 5), 110_000, status),
            Case(explicit, 110_000, status),
            # Staler things are said first.
            Case(commit(10, 5), 110_000, "unknown_topic", topics=()),
            at_ms=at_ms,
        )


def test_commits_of_classic_groups() -> None:
    # F325, F326
    def case(expires_ms: int | None, *subscribed: list[str] | None, **columns: Any) -> Case:
        return Case(commit(10, 5), expires_ms, records=(classic_group(*subscribed, **columns),))

    check(
        case(130_000, state_timestamp_ms=30_000),  # Empty since then
        case(110_000, state_timestamp_ms=None),  # an older record: the commit's own time
        case(None, ["t"]),
        case(None, ["u"], ["t"]),
        case(110_000, ["u"]),
        case(None, None),
        case(None, ["u"], None),
        case(None, reason="unknown_version", members=None, protocol_type=None),  # T37
        case(None, None, protocol_type="connect"),
        case(130_000, protocol_type="connect", state_timestamp_ms=30_000),
        case(110_000, protocol_type="", state_timestamp_ms=30_000),
        Case(commit(10, 5, expire_timestamp_ms=20_000), None, records=(classic_group(["t"]),)),
    )


def test_commits_of_groups_of_other_types() -> None:
    # F325, F326
    streams, member = group_record(17, 1, epoch=1), group_record(19, 2, member_id="m")
    check(
        Case(commit(10, 5), 110_000, records=consumer_group()),
        Case(commit(10, 5), 110_000, records=consumer_group(["u"])),
        Case(commit(10, 5), None, records=consumer_group(["u"], ["t"])),
        Case(commit(10, 5), 110_000, records=(streams,)),
        Case(commit(10, 5), None, records=(streams, member)),
    )


def test_a_commit_stays_while_another_waits_for_its_transaction() -> None:
    # F326
    case = Case(commit(10, 5), None, "current", waiting=(open_commit(11, 6),))
    check(case, at_ms=200_000)


def belongs(groups: dict[str, int], partitions: list[int]) -> dict[str, int]:
    """Where groups belong that are in some partitions of a topic, as far as that is known."""
    count = partition_count(partitions)
    if count is None:
        return {}
    places = {name: offsets_partition_of(name, count) for name in groups}
    in_place = sum(places[name] == place for name, place in groups.items())
    return places if is_confirmed(in_place, len(groups)) else {}


def test_how_many_partitions_there_are_is_believed_where_groups_confirm_it() -> None:
    # F323: the hash of "a" is 97, so that of 6 partitions it belongs to 1, b to 2 and c to 3.
    everywhere = [*range(6), 3, 3]
    assert belongs({"a": 1, "b": 2, "c": 0}, everywhere) == {"a": 1, "b": 2, "c": 3}
    # One of the partitions is missing, or most groups lie elsewhere: unknown.
    assert belongs({"a": 1, "b": 2}, [0, 1, 2, 4, 5]) == {}
    assert belongs({"a": 1, "b": 5, "c": 4}, everywhere) == {}
    assert belongs({"a": 1}, []) == {}
