"""Groups and members in DataFrames: what tasks compute reaches the right rows.

The rules are tested in tests/unit/coordination/groups/test_group_records.py. Rules: F320 to F322.
"""

from pyspark.sql import SparkSession

from kafkalog.analysis.lag.groups import (
    group_members,
    groups,
    latest_group_records,
    member_partitions,
)
from tests.support.messages.group_records import commit, frame, group_record


def test_groups_members_and_their_partitions(spark: SparkSession) -> None:
    # F320 to F322: the records of a partition may come from several tasks.
    assigned = [{"topic": None, "topic_id": "id-1", "partitions": [0, 1]}]
    who = {"member_id": "m", "client_id": "c", "client_host": "/h"}
    records = [
        group_record(3, 0, epoch=4),
        group_record(3, 1, epoch=5),
        group_record(6, 2, epoch=5),
        group_record(5, 3, rack_id="r", subscribed_topics=["b", "a"], **who),
        group_record(8, 4, member_id="m", epoch=5, member_state=0, assigned=assigned),
        {**group_record(2, 5, is_tombstone=True), "group_id": "deleted"},
        {**group_record(3, 9, epoch=1), "group_id": "later"},
    ]
    metadata = frame(spark, "group_metadata", *records).repartition(len(records))
    latest = latest_group_records(metadata, 5000).persist()
    commits = frame(spark, "offset_commits", {**commit(1, 5), "group_id": "commits"})
    found = {row.group_id: row for row in groups(latest, commits).collect()}
    assert {
        name: (row.group_type, row.state, row.epoch, row.target_epoch, row.members, row.is_simple)
        for name, row in found.items()
    } == {
        "g": ("consumer", "Stable", 5, 5, 1, False),
        "deleted": ("classic", "Dead", None, None, 0, False),
        "commits": ("classic", "Empty", None, None, 0, True),
    }
    assert {(row.cluster_id, row.internal_partition) for row in found.values()} == {("c", 7)}
    members = group_members(latest)
    (member,) = members.collect()
    assert (member.member_id, member.client_host, member.rack_id) == ("m", "/h", "r")
    assert (member.member_epoch, member.subscribed_topics) == (5, ["a", "b"])
    topics = spark.createDataFrame([("t", "id-1")], "topic string, topic_id string")
    rows = member_partitions(members, topics).collect()
    assert {(row.group_id, row.topic, row.partition) for row in rows} == {
        ("g", "t", 0),
        ("g", "t", 1),
    }
