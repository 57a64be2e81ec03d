"""Commits in effect and their statuses in DataFrames: what tasks compute reaches the right rows.

The rules are tested in tests/unit/coordination/groups/test_commit_status.py. Rules: F324 to F327.
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.lag.commits import commits_in_effect, with_commit_status
from kafkalog.analysis.lag.groups import group_members, groups, latest_group_records
from tests.support.messages.group_records import commit, frame, group_record

RETENTION_MS = 100_000
TOPICS = "cluster_id string, topic string, topic_id string, is_deleted boolean, created_ms bigint"


def test_the_last_commit_counts_whichever_task_read_it(spark: SparkSession) -> None:
    # F324, T35: a transactional commit counts from its marker on, at 6000 here.
    in_transaction = commit(
        4, 40, is_transactional=True, effective_offset=6, effective_timestamp_ms=6000
    )
    rows = [commit(1, 10), commit(3, 30), in_transaction, commit(8, None), commit(2, 5, topic="u")]
    commits = frame(spark, "offset_commits", *rows).repartition(len(rows))

    def in_effect(at_ms: int | None) -> set[tuple[str, int, bool]]:
        found = commits_in_effect(commits, at_ms).collect()
        return {(row.topic, row.committed_offset, row.has_open_commit) for row in found}

    assert in_effect(999) == set()
    assert in_effect(1000) == {("t", 10, False)}
    assert in_effect(4000) == {("t", 30, True), ("u", 5, False)}
    assert in_effect(6000) == {("t", 40, False), ("u", 5, False)}
    assert in_effect(None) == {("u", 5, False)}


def test_a_commit_is_judged_by_its_own_group_and_topic(spark: SparkSession) -> None:
    # F325 to F327: of one name in two clusters, and with members whose topics are not known.
    def of(group: str, **columns: object) -> dict[str, object]:
        return {**commit(10, 5), "group_id": group, **columns}

    def generation(group: str, *subscribed: list[str] | None) -> dict[str, object]:
        members = [{"member_id": f"m{n}", "subscribed_topics": t} for n, t in enumerate(subscribed)]
        record = group_record(2, 1, protocol_type="consumer", members=members)
        return {**record, "group_id": group}

    commits = [
        *(of("reads"), of("reads other"), of("reads unknown"), of("simple"), of("moved")),
        *(of("simple", cluster_id="d"), of("old", internal_partition=None)),
        *(of("simple", topic="gone"), of("simple", topic="nowhere")),
        *(of("simple", topic="short", committed_offset=1001),),
    ]
    records = [
        generation("reads", ["u"], ["t"]),
        generation("reads other", ["u"]),
        generation("reads unknown", ["u"], None),
    ]
    topics = [
        *(("c", "t", "id-1", False, None), ("c", "t", "id-0", True, 15_000)),
        *(("c", "gone", "id-2", True, None), ("c", "short", "id-3", False, None)),
    ]
    in_effect = commits_in_effect(frame(spark, "offset_commits", *commits))
    latest = latest_group_records(frame(spark, "group_metadata", *records))
    moved = F.when(F.col("group_id") == "moved", 8).cast("int")
    found = with_commit_status(
        in_effect.withColumn("high_watermark", F.lit(1000).cast("long")),
        groups(latest, in_effect).withColumn("offsets_partition", moved),
        group_members(latest),
        spark.createDataFrame(topics, TOPICS),
        at_ms=50_000,
        retention_ms=RETENTION_MS,
    )
    assert found.columns == [*in_effect.columns, "high_watermark", "expires_ms", "commit_status"]
    assert {
        (row.cluster_id, row.group_id, row.topic): (row.expires_ms, row.commit_status)
        for row in found.collect()
    } == {
        ("c", "reads", "t"): (None, "current"),
        ("c", "reads other", "t"): (110_000, "current"),
        ("c", "reads unknown", "t"): (None, "current"),
        ("c", "simple", "t"): (110_000, "current"),
        ("c", "moved", "t"): (110_000, "other_partition"),
        ("d", "simple", "t"): (110_000, "unknown_topic"),
        ("c", "old", "t"): (110_000, "recreated_topic"),
        ("c", "simple", "gone"): (110_000, "deleted_topic"),
        ("c", "simple", "nowhere"): (110_000, "unknown_topic"),
        ("c", "simple", "short"): (110_000, "beyond_log_end"),
    }
