"""Which commits count at a moment, which are stale, and when they expire. Rules: F324 to F327.

The expectations follow ClassicGroup, ConsumerGroup and StreamsGroup (offsetExpirationCondition,
isSubscribedToTopic) and OffsetMetadataManager.cleanupExpiredOffsets of Kafka 4.x.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.commits import commits_in_effect, with_commit_status
from kafkalog.analysis.groups import group_members, groups, latest_group_records
from tests.spark.group_records import commit, frame, group_record

pytestmark = pytest.mark.spark

RETENTION_MS = 100_000
TOPICS = "cluster_id string, topic string, topic_id string, is_deleted boolean"
KNOWN = ("c", "t", "id-1", False)


def committed(spark: SparkSession, *rows: dict[str, Any], at_ms: int | None = None) -> list[Row]:
    return commits_in_effect(frame(spark, "offset_commits", *rows), at_ms).collect()


def with_status(
    spark: SparkSession,
    row: dict[str, Any],
    *records: dict[str, Any],
    waiting: dict[str, Any] | None = None,
    topics: tuple[tuple[Any, ...], ...] = (KNOWN,),
    at_ms: int = 50_000,
) -> tuple[int | None, str]:
    """When the commit expires, and its status."""
    rows = [row] if waiting is None else [row, waiting]
    commits = commits_in_effect(frame(spark, "offset_commits", *rows))
    latest = latest_group_records(frame(spark, "group_metadata", *records))
    found = with_commit_status(
        commits.withColumn("high_watermark", F.lit(1000).cast("long")),
        groups(latest, commits),
        group_members(latest),
        spark.createDataFrame(list(topics), TOPICS),
        at_ms=at_ms,
        retention_ms=RETENTION_MS,
    )
    assert found.columns == [*commits.columns, "high_watermark", "expires_ms", "commit_status"]
    (status,) = found.collect()
    return status.expires_ms, status.commit_status


def classic_group(*subscribed: list[str] | None, **columns: Any) -> dict[str, Any]:
    """A generation whose members subscribe these topics."""
    members = [
        {"member_id": f"m{number}", "subscribed_topics": topics}
        for number, topics in enumerate(subscribed)
    ]
    return group_record(2, 1, **{"protocol_type": "consumer", "members": members, **columns})


def consumer_group(*subscribed: list[str]) -> list[dict[str, Any]]:
    return [group_record(3, 1, epoch=1)] + [
        group_record(5, 2, member_id=f"m{number}", subscribed_topics=topics)
        for number, topics in enumerate(subscribed)
    ]


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
    waits = commit(
        5,
        10,
        is_transactional=True,
        effect="open",
        effective_offset=None,
        effective_timestamp_ms=None,
    )
    (row,) = committed(spark, waits)
    assert (row.group_id, row.committed_offset, row.has_open_commit) == ("g", None, True)


@pytest.mark.parametrize(
    ("row", "topics", "status"),
    [
        (commit(10, 5), (KNOWN,), "current"),
        (commit(10, 5), (), "unknown_topic"),
        # Another cluster's topic of that name is another topic.
        (commit(10, 5), (("d", "t", "id-1", False),), "unknown_topic"),
        (commit(10, 5), (("c", "t", "id-1", True),), "deleted_topic"),
        (commit(10, 5, topic_id="id-1"), (KNOWN, ("c", "t", "id-0", True)), "current"),
        (commit(10, 5, topic_id="id-0"), (KNOWN, ("c", "t", "id-0", True)), "recreated_topic"),
        (commit(10, 5, topic_id="id-0"), (KNOWN,), "recreated_topic"),
        # Where the topic's own id is not known nothing tells.
        (commit(10, 5, topic_id="id-0"), (("c", "t", None, False),), "current"),
        (commit(10, 1000), (KNOWN,), "current"),
        (commit(10, 1001), (KNOWN,), "beyond_log_end"),
        (commit(10, 5, is_confirmed=False), (KNOWN,), "unconfirmed"),
        (commit(10, 5, is_confirmed=None), (KNOWN,), "current"),
    ],
)
def test_status_of_a_commit(
    spark: SparkSession, row: dict[str, Any], topics: tuple[Any, ...], status: str
) -> None:
    # F327, F303, T38: a commit for an earlier topic of the name, or above the log, is no lag.
    assert with_status(spark, row, topics=topics) == (110_000, status)


def test_a_commit_expires_with_the_millisecond(spark: SparkSession) -> None:
    # F325
    row = commit(10, 5)
    assert with_status(spark, row, at_ms=109_999) == (110_000, "current")
    assert with_status(spark, row, at_ms=110_000) == (110_000, "expired")
    # T36: version 1 names the time itself.
    explicit = commit(10, 5, version=1, expire_timestamp_ms=20_000)
    assert with_status(spark, explicit, at_ms=19_999) == (20_000, "current")
    assert with_status(spark, explicit, at_ms=20_000) == (20_000, "expired")


def test_commits_of_classic_groups(spark: SparkSession) -> None:
    # F325, F326
    row = commit(10, 5)

    def expires(*subscribed: list[str] | None, **columns: Any) -> int | None:
        return with_status(spark, row, classic_group(*subscribed, **columns))[0]

    assert expires(state_timestamp_ms=30_000) == 130_000  # Empty since then
    assert expires(state_timestamp_ms=None) == 110_000  # an older record: the commit's own time
    assert expires(["t"]) is None
    assert expires(["u"], ["t"]) is None
    assert expires(["u"]) == 110_000
    assert expires(None) is None
    assert expires(["u"], None) is None
    assert expires(None, protocol_type="connect") is None
    assert expires(protocol_type="connect", state_timestamp_ms=30_000) == 130_000
    assert expires(protocol_type="", state_timestamp_ms=30_000) == 110_000
    explicit = commit(10, 5, expire_timestamp_ms=20_000)
    assert with_status(spark, explicit, classic_group(["t"]))[0] is None


def test_commits_of_consumer_and_streams_groups(spark: SparkSession) -> None:
    # F325, F326
    row = commit(10, 5)
    assert with_status(spark, row, *consumer_group())[0] == 110_000
    assert with_status(spark, row, *consumer_group(["u"]))[0] == 110_000
    assert with_status(spark, row, *consumer_group(["u"], ["t"]))[0] is None
    streams, member = group_record(17, 1, epoch=1), group_record(19, 2, member_id="m")
    assert with_status(spark, row, streams)[0] == 110_000
    assert with_status(spark, row, streams, member)[0] is None


def test_a_commit_stays_while_another_waits_for_its_transaction(spark: SparkSession) -> None:
    # F326
    waits = commit(
        11,
        6,
        is_transactional=True,
        effect="open",
        effective_offset=None,
        effective_timestamp_ms=None,
    )
    assert with_status(spark, commit(10, 5), waiting=waits, at_ms=200_000) == (None, "current")
