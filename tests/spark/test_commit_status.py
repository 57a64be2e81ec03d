"""Which commits count at a moment, which are stale, and when they expire. Rules: F324 to F327.

The expectations follow ClassicGroup, ConsumerGroup and StreamsGroup (offsetExpirationCondition,
isSubscribedToTopic) and OffsetMetadataManager.cleanupExpiredOffsets of Kafka 4.x.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.lag.commits import commits_in_effect, with_commit_status
from kafkalog.analysis.lag.groups import group_members, groups, latest_group_records
from kafkalog.coordination.groups.commit_status import CommitJudge, KnownTopic
from kafkalog.coordination.groups.group_records import group_key
from tests.support.messages.group_records import commit, frame, group_record
from tests.support.spark.plain_groups import plain_commits, plain_groups

pytestmark = pytest.mark.spark

RETENTION_MS = 100_000
TOPICS = "cluster_id string, topic string, topic_id string, is_deleted boolean"
# Later than the first commit, by ZooKeeper's clock; brokers have their own.
CREATED_MS = 1500
# All lie in 7; g0 is one that belongs there, of the others nobody knows where, but one.
BELONGS_TO = "CASE group_id WHEN 'g0' THEN 7 WHEN 'moved' THEN 8 END"
BELONGS = {"g0": 7, "moved": 8}
KNOWN = ("c", "t", "id-1", False)


def committed(spark: SparkSession, *rows: dict[str, Any], at_ms: int | None = None) -> list[Row]:
    found = commits_in_effect(frame(spark, "offset_commits", *rows), at_ms).collect()
    names = ("topic", "partition", "input_path", "committed_offset", "commit_timestamp_ms")
    assert [
        (row["has_open_commit"], *(row[name] for name in names))
        for row in plain_commits(rows, at_ms)
    ] == [(row.has_open_commit, *(row[name] for name in names)) for row in found]
    return found


def test_a_commit_that_only_waits_is_still_known_by_its_input(spark: SparkSession) -> None:
    waiting = {"effect": "open", "is_transactional": True, "effective_offset": None}
    (row,) = committed(spark, commit(1, 5, input_path="/logs", **waiting))
    assert (row.input_path, row.committed_offset, row.has_open_commit) == ("/logs", None, True)


def test_a_negative_offset_is_none(spark: SparkSession) -> None:
    # F324: ListConsumerGroupOffsetsHandler of Kafka's Admin client.
    (row,) = committed(spark, commit(1, 5), commit(2, -1))
    assert (row.committed_offset, row.commit_timestamp_ms) == (None, 2000)


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


def check(spark: SparkSession, *cases: Case, at_ms: int = 50_000) -> None:
    """All cases in one query: each has a group and a topic of its own."""
    commits, records, topics = [], [], []
    for number, case in enumerate(cases):
        group, topic = {"group_id": case.name(number)}, f"t{number}"
        commits += [{**row, **group, "topic": topic} for row in (case.row, *case.waiting)]
        records += [{**_renamed(record, topic), **group} for record in case.records]
        topics += [(cluster, topic, *rest) for cluster, _, *rest in case.topics]
    in_effect = commits_in_effect(frame(spark, "offset_commits", *commits))
    latest = latest_group_records(frame(spark, "group_metadata", *records))
    found = with_commit_status(
        in_effect.withColumn("high_watermark", F.lit(1000).cast("long")),
        groups(latest, in_effect).withColumn("offsets_partition", F.expr(BELONGS_TO)),
        group_members(latest),
        spark.createDataFrame(topics, TOPICS).withColumn("created_ms", F.lit(CREATED_MS)),
        at_ms=at_ms,
        retention_ms=RETENTION_MS,
    )
    assert found.columns == [*in_effect.columns, "high_watermark", "expires_ms", "commit_status"]
    told = {row.group_id: (row.expires_ms, row.commit_status) for row in found.collect()}
    expected = {
        case.name(number): (case.expires_ms, case.status) for number, case in enumerate(cases)
    }
    assert told == expected
    in_kafka = [row for row in commits if row["internal_partition"] is not None]
    plain = judged_plainly(in_kafka, records, topics, at_ms)
    assert plain == {group: expected[group] for group in plain}
    assert len(plain) == len({row["group_id"] for row in in_kafka})


def judged_plainly(
    commits: list[dict[str, Any]],
    records: list[dict[str, Any]],
    topics: list[tuple[Any, ...]],
    at_ms: int,
) -> dict[str, tuple[int | None, str]]:
    """The same by the rules for one machine, which know no groups of ZooKeeper's."""
    in_effect = plain_commits(tuple(commits))
    found, members = plain_groups(tuple(records), in_effect)
    belongs_to = {key: BELONGS.get(key.group_id) for key in found}
    judge = CommitJudge(
        found,
        members,
        [KnownTopic(*topic) for topic in topics],
        {key: place for key, place in belongs_to.items() if place is not None},
        RETENTION_MS,
    )
    return {
        row["group_id"]: (
            judge.expires_ms(row, group_key(row)),
            judge.status(row, group_key(row), 1000, at_ms),
        )
        for row in in_effect
    }


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


def test_what_counts_at_a_moment(spark: SparkSession) -> None:
    # F324, T35: a transactional commit counts from its marker on, at 6000 here.
    in_transaction = commit(
        4, 40, is_transactional=True, effective_offset=6, effective_timestamp_ms=6000
    )
    rows = [commit(1, 10), commit(3, 30), in_transaction, commit(8, None)]
    found = {
        at: [
            (row.committed_offset, row.has_open_commit) for row in committed(spark, *rows, at_ms=at)
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
    assert committed(spark, *rows) == []


def test_a_commit_of_format_0_counts_from_its_own_time_on(spark: SparkSession) -> None:
    # F324
    row = commit(5, 10, record_timestamp_ms=None, effective_timestamp_ms=None)
    assert committed(spark, row, at_ms=4999) == []
    assert [found.committed_offset for found in committed(spark, row, at_ms=5000)] == [10]


def test_a_commit_that_only_waits_has_no_offset_yet(spark: SparkSession) -> None:
    # F300
    (row,) = committed(spark, open_commit(5, 10))
    assert (row.group_id, row.committed_offset, row.has_open_commit) == ("g", None, True)


def test_status_of_a_commit(spark: SparkSession) -> None:
    # F327, F303, T38: a commit for an earlier topic of the name, or above the log, is no lag.
    earlier = ("c", "t", "id-0", True)
    check(
        spark,
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


@pytest.mark.deep
def test_a_commit_expires_with_the_millisecond(spark: SparkSession) -> None:
    # F325, T36: version 1 names the time itself.
    explicit = commit(10, 5, version=1, expire_timestamp_ms=110_000)
    for at_ms, status in ((109_999, "current"), (110_000, "expired")):
        check(
            spark,
            Case(commit(10, 5), 110_000, status),
            Case(explicit, 110_000, status),
            # Staler things are said first.
            Case(commit(10, 5), 110_000, "unknown_topic", topics=()),
            at_ms=at_ms,
        )


def test_commits_of_classic_groups(spark: SparkSession) -> None:
    # F325, F326
    def case(expires_ms: int | None, *subscribed: list[str] | None, **columns: Any) -> Case:
        return Case(commit(10, 5), expires_ms, records=(classic_group(*subscribed, **columns),))

    check(
        spark,
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


@pytest.mark.deep
def test_commits_of_groups_of_other_types(spark: SparkSession) -> None:
    # F325, F326
    streams, member = group_record(17, 1, epoch=1), group_record(19, 2, member_id="m")
    check(
        spark,
        Case(commit(10, 5), 110_000, records=consumer_group()),
        Case(commit(10, 5), 110_000, records=consumer_group(["u"])),
        Case(commit(10, 5), None, records=consumer_group(["u"], ["t"])),
        Case(commit(10, 5), 110_000, records=(streams,)),
        Case(commit(10, 5), None, records=(streams, member)),
    )


@pytest.mark.deep
def test_a_commit_stays_while_another_waits_for_its_transaction(spark: SparkSession) -> None:
    # F326
    case = Case(commit(10, 5), None, "current", waiting=(open_commit(11, 6),))
    check(spark, case, at_ms=200_000)
