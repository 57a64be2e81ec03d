"""Groups and their members as their coordinators have them, now or at a past time, from view
`group_metadata`. Rules: docs/format.md F320 to F322.

cluster_id, internal_partition and group_id identify a group, as in view `offset_commits`; null is a
cluster like others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafkalog.coordination.groups.group_records import (
    DEFAULT_ASSIGNOR,
    GROUP_RECORD_COLUMNS,
    GroupKey,
    LatestRecords,
    group_key,
    known_groups,
)
from kafkalog.coordination.groups.group_records import group_members as members_of

GROUP_KEY = GroupKey._fields
# One task has all records of a partition of `__consumer_offsets`, and with it of its groups.
_OFFSETS_PARTITION = ("cluster_id", "internal_partition")
_KEY_SCHEMA = "cluster_id string, internal_partition int, group_id string, group_type string"
# What LatestRecords looks at, and the number of the row.
_DECISIVE = (
    *(*GROUP_KEY, "record_type", "member_id", "subscribed_topic_regex"),
    *("record_offset", "record_timestamp_ms"),
)
_ROW = "row"
_Rows = list[dict[str, Any]]


def latest_group_records(group_metadata: DataFrame, at_ms: int | None = None) -> DataFrame:
    """Return the rows of view `group_metadata` that count, tombstones among them: of each key the
    last record, of those written up to `at_ms`. The columns are GROUP_RECORD_COLUMNS and
    input_path."""
    records = group_metadata.select(*GROUP_RECORD_COLUMNS, "input_path")

    def latest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept = LatestRecords(at_ms)
        schema = None
        for batch in batches:
            schema = batch.schema
            for row in _latest_of(batch, at_ms):
                kept.add(row)
        if schema is not None:
            yield pa.RecordBatch.from_pylist(kept.records(), schema=schema)

    # Several tasks may have read the records of a partition.
    in_order = records.mapInArrow(latest, records.schema).repartition(*_OFFSETS_PARTITION)
    return in_order.mapInArrow(latest, records.schema)


def _latest_of(batch: pa.RecordBatch, at_ms: int | None) -> _Rows:
    """Return the rows of a batch that count, the only ones to become Python's: a record of a large
    classic group has all members, and there is one for each generation."""
    latest = LatestRecords(at_ms)
    for row, key in enumerate(batch.select(_DECISIVE).to_pylist()):
        latest.add({**key, _ROW: row})
    rows = [record[_ROW] for record in latest.records()]
    found: _Rows = batch.take(pa.array(rows, pa.int64())).to_pylist()
    return found


def group_members(latest: DataFrame) -> DataFrame:
    """Return a row for each member: the key of its group, group_type, member_id, instance_id,
    client_id, client_host, rack_id, member_epoch, member_state, server_assignor, subscribed_topics,
    and assigned, topics by name or id with their partitions.

    `latest` are rows of latest_group_records. Members of classic groups are those of the last
    generation. Tasks of streams groups are in view `messages` only: assigned is null.
    """
    assigned = latest.schema["assigned"].dataType.simpleString()
    schema = _schema(
        f"{_KEY_SCHEMA}, member_id string, instance_id string, client_id string, "
        "client_host string, rack_id string, member_epoch int, member_state int, "
        f"server_assignor string, subscribed_topics array<string>, assigned {assigned}"
    )

    def rows(records: _Rows) -> Iterator[dict[str, Any]]:
        for member in members_of(records):
            topics = member.subscribed_topics
            row = {**member.group._asdict(), **member._asdict()}
            yield row | {"subscribed_topics": None if topics is None else sorted(topics)}

    return latest.groupBy(*_OFFSETS_PARTITION).applyInArrow(by_rows(rows, schema), schema)


def groups(
    latest: DataFrame, commits: DataFrame, default_assignor: str = DEFAULT_ASSIGNOR
) -> DataFrame:
    """Return a row for each group: its key, group_type, state, protocol_type, assignor, epoch,
    target_epoch, state_timestamp_ms, members (how many) and is_simple.

    `latest` are rows of latest_group_records; `commits` are rows of view `offset_commits` that are
    in effect or wait for the end of their transactions: some groups only commit. Groups of which
    only tombstones are left are Dead. The state is null where the group's record cannot be read.
    """
    schema = _schema(
        f"{_KEY_SCHEMA}, state string, protocol_type string, assignor string, epoch int, "
        "target_epoch int, state_timestamp_ms bigint, members int, is_simple boolean"
    )

    def rows(found: _Rows) -> Iterator[dict[str, Any]]:
        records = [row for row in found if row["record_type"] is not None]
        committing = {group_key(row) for row in found if row["record_type"] is None}
        for key, group in known_groups(records, committing, default_assignor).items():
            yield {**key._asdict(), **group._asdict()}

    committing = commits.select(*GROUP_KEY).distinct()
    known = latest.unionByName(committing, allowMissingColumns=True)
    return known.groupBy(*_OFFSETS_PARTITION).applyInArrow(by_rows(rows, schema), schema)


def _schema(columns: str) -> StructType:
    return cast(StructType, StructType.fromDDL(columns))


def by_rows(
    make: Callable[[list[dict[str, Any]]], Iterator[dict[str, Any]]], schema: StructType
) -> Callable[[pa.Table], pa.Table]:
    """Return a function of Arrow tables that makes rows of rows."""
    arrow_schema = to_arrow_schema(schema)

    def made(table: pa.Table) -> pa.Table:
        return pa.Table.from_pylist(list(make(table.to_pylist())), schema=arrow_schema)

    return made


def member_partitions(members: DataFrame, topic_ids: DataFrame) -> DataFrame:
    """Return a row for each partition of a member: the key of its group, topic, partition,
    topic_id, member_id, instance_id, client_id, client_host.

    `members` are rows of group_members. `topic_ids` has topic and topic_id; the topic of another id
    is null.
    """
    who = ("member_id", "instance_id", "client_id", "client_host")
    assigned = members.select(*GROUP_KEY, *who, F.explode("assigned").alias("each"))
    rows = assigned.select(
        *GROUP_KEY,
        *who,
        "each.topic",
        "each.topic_id",
        F.explode("each.partitions").alias("partition"),
    )
    names = (
        topic_ids.where("topic_id IS NOT NULL")
        .groupBy(F.col("topic_id").alias("id"))
        .agg(F.max("topic").alias("name"))
    )
    named = rows.join(F.broadcast(names), rows["topic_id"] == names["id"], "left")
    return named.select(
        *GROUP_KEY, F.coalesce("topic", "name").alias("topic"), "partition", "topic_id", *who
    )


def offset_storage() -> Column:
    """Return where the group of a row commits: groups of ZooKeeper have no internal_partition."""
    return F.when(F.col("internal_partition").isNull(), "zookeeper").otherwise("kafka")


def joined_by_group(
    rows: DataFrame,
    others: DataFrame,
    how: str = "left",
    condition: Column | None = None,
    key: Sequence[str] = GROUP_KEY,
) -> DataFrame:
    """Return the rows joined with those of the same group, or of the same `key`, whose key is in
    columns `of_...`; null is a cluster like others."""
    others = others.withColumnsRenamed({name: f"of_{name}" for name in key})
    same = F.lit(True) if condition is None else condition
    for name in key:
        same = same & F.col(name).eqNullSafe(F.col(f"of_{name}"))
    return rows.join(others, same, how)
