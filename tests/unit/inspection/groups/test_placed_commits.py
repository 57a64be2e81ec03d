"""Rows of groups for table `consumer_lag`, before and after the logs of their topics are known.

The rules of statuses are tested in tests/unit/coordination/groups/test_commit_status.py.
Rules: F320 to F327.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kafkalog.columns.table_rows import table_batch
from kafkalog.coordination.groups.commit_status import KnownTopic, KnownTopics
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.inspection.groups.placed_commits import (
    PLACED_SCHEMA,
    PartitionFacts,
    PlacedCommits,
    placed_commits,
    with_statuses,
)
from tests.support.lag.plain_groups import latest_records
from tests.support.messages.group_records import commit, group_record

UNKNOWN = PartitionFacts(None, None, None)


def placed(
    commits: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]] = (),
    facts: PartitionFacts = UNKNOWN,
) -> PlacedCommits:
    """The rows of one partition, in which topic id-1 is t."""
    kept = CommitsInEffect()
    for row in commits:
        kept.add(table_batch("offset_commits", [row], {"input_path": "/logs"}, COMMIT_COLUMNS))
    found = placed_commits(
        kept.rows(),
        latest_records({**record, "input_path": "/logs"} for record in records),
        {"id-1": "t"},
        facts,
    )
    assert found.rows.schema == PLACED_SCHEMA
    found.rows.validate(full=True)
    return found


def judged(found: PlacedCommits, confirmed: frozenset[str | None] = frozenset()) -> dict[Any, Any]:
    """When commits expire, and their statuses, where the logs end at 1000."""
    topics: dict[tuple[str | None, str], list[KnownTopic]] = {
        ("c", "t"): [
            KnownTopic("c", "t", "id-1", is_deleted=False),
            KnownTopic("c", "t", "id-0", is_deleted=True, created_ms=15_000),
        ],
        ("c", "gone"): [KnownTopic("c", "gone", "id-2", is_deleted=True)],
        ("c", "short"): [KnownTopic("c", "short", "id-3", is_deleted=False)],
    }
    ends = pa.array([1000] * len(found.rows), pa.int64())
    ended = found.rows.append_column("high_watermark", ends)
    judged_rows = with_statuses(
        ended, KnownTopics(topics, confirmed), LagQuestion(50_000, retention_ms=100_000)
    )
    return {
        (row["cluster_id"], row["group_id"], row["topic"]): (
            row["expires_ms"],
            row["commit_status"],
        )
        for row in judged_rows.to_pylist()
    }


def generation(group: str, *members: dict[str, Any]) -> dict[str, Any]:
    record = group_record(2, 1, protocol_type="consumer", epoch=4, members=list(members))
    return {**record, "group_id": group}


def test_a_commit_has_the_member_of_its_partition_and_so_has_a_partition_without_a_commit() -> None:
    # F322: the assignment of a consumer group has topic ids.
    assigned = [
        {"topic": None, "topic_id": "id-1", "partitions": [0, 1]},
        {"topic": None, "topic_id": "of no known topic", "partitions": [0]},
    ]
    member = {"member_id": "m", "client_id": "c-1", "client_host": "/h"}
    records = [
        group_record(3, 1, epoch=5),
        group_record(6, 2, epoch=5),
        group_record(5, 3, subscribed_topics=["t"], **member),
        group_record(8, 4, epoch=5, member_state=0, member_id="m", assigned=assigned),
        {**group_record(2, 5, protocol_type="consumer", members=[]), "group_id": "idle"},
    ]
    found = placed([commit(9, 40), commit(10, 7, topic="u")], records, PartitionFacts(50, 3, 8000))
    names = ("topic", "partition", "committed_offset", "member_id", "is_subscribed", "input_path")
    of_topics = found.rows.to_pylist()
    assert {tuple(row[name] for name in names) for row in of_topics} == {
        ("t", 0, 40, "m", True, "/logs"),
        ("t", 1, None, "m", True, "/logs"),
        ("u", 0, 7, None, False, "/logs"),
    }
    group = ("group_type", "group_state", "group_epoch", "member_count")
    assert {tuple(row[name] for name in group) for row in of_topics} == {
        ("consumer", "Stable", 5, 1)
    }
    assert {row["client_host"] for row in of_topics if row["member_id"]} == {"/h"}
    assert {
        (row["coordinator_broker_id"], row["commits_complete_from_ms"]) for row in of_topics
    } == {(3, 8000)}
    # A group without commits and members has no row, and is counted.
    assert len(found.groups) == 2


def test_a_partition_without_groups_has_no_rows() -> None:
    for found in (placed([]), placed([commit(1, 5), commit(2, None)])):
        assert (len(found.rows), found.groups) == (0, {})


def test_a_commit_is_judged_by_its_own_group_and_topic() -> None:
    # F325 to F327: with unknown topics of members, and a topic of one name in two clusters.
    def of(group: str, **columns: object) -> dict[str, object]:
        return {**commit(10, 5), "group_id": group, **columns}

    def members(*subscribed: list[str] | None) -> list[dict[str, Any]]:
        return [{"member_id": f"m{n}", "subscribed_topics": t} for n, t in enumerate(subscribed)]

    commits = [
        *(of("reads"), of("reads other"), of("reads unknown"), of("simple")),
        *(of("simple", topic="gone"), of("simple", topic="nowhere")),
        of("simple", topic="short", committed_offset=1001),
    ]
    records = [
        generation("reads", *members(["u"], ["t"])),
        generation("reads other", *members(["u"])),
        generation("reads unknown", *members(["u"], None)),
    ]
    assert judged(placed(commits, records)) == {
        ("c", "reads", "t"): (None, "current"),
        ("c", "reads other", "t"): (110_000, "current"),
        ("c", "reads unknown", "t"): (None, "current"),
        ("c", "simple", "t"): (110_000, "current"),
        ("c", "simple", "gone"): (110_000, "deleted_topic"),
        ("c", "simple", "nowhere"): (110_000, "unknown_topic"),
        ("c", "simple", "short"): (110_000, "beyond_log_end"),
    }
    elsewhere = placed([of("simple", cluster_id="d")])
    assert judged(elsewhere) == {("d", "simple", "t"): (110_000, "unknown_topic")}


def test_a_group_is_in_another_partition_where_other_groups_confirm_how_many_there_are() -> None:
    # F323: the hash of "a" is 97, so that of 6 partitions it belongs to 1, and "g", 103, to 1 too.
    facts = PartitionFacts(6, None, None)
    rows = placed([{**commit(10, 5), "group_id": "a"}], facts=facts)
    assert judged(rows, frozenset("c"))["c", "a", "t"] == (110_000, "other_partition")
    assert judged(rows)["c", "a", "t"] == (110_000, "current")
    at_home = {"internal_partition": 1}
    rows = placed(
        [{**commit(10, 5), "group_id": "a", **at_home}, commit(11, 5, **at_home)], facts=facts
    )
    assert judged(rows, frozenset("c"))["c", "a", "t"] == (110_000, "current")
    assert (len(rows.groups), rows.groups_in_place) == (2, 2)
