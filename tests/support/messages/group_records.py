"""Rows of the views `group_metadata` and `offset_commits` written down by hand, for tests of what
is made of them."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kafkalog.spark.tables import spark_schema


def frame(spark: SparkSession, view: str, *rows: dict[str, Any]) -> DataFrame:
    """The rows as the view has them; what they do not name is null."""
    schema = spark_schema(view)
    return spark.createDataFrame(
        [tuple(row.get(name) for name in schema.names) for row in rows], schema
    )


def group_record(record_type: int, record_offset: int, **columns: Any) -> dict[str, Any]:
    """A record about group g at that offset, a second after 0 for each."""
    kinds = {2: "classic", 10: "share", 11: "share", 14: "share"}
    kind = kinds.get(record_type, "consumer" if record_type < 17 else "streams")
    return {
        "cluster_id": "c",
        "internal_partition": 7,
        "group_id": "g",
        "group_type": kind,
        "record_type": record_type,
        "record_offset": record_offset,
        "record_timestamp_ms": 1000 * record_offset,
        "is_tombstone": False,
        **columns,
    }


def commit(record_offset: int, committed_offset: int | None, **columns: Any) -> dict[str, Any]:
    """A commit of group g for t-0 that took effect at once, a tombstone for None."""
    return {
        "cluster_id": "c",
        "internal_partition": 7,
        "group_id": "g",
        "topic": "t",
        "partition": 0,
        "record_offset": record_offset,
        "record_timestamp_ms": 1000 * record_offset,
        "commit_timestamp_ms": None if committed_offset is None else 1000 * record_offset,
        "is_tombstone": committed_offset is None,
        "committed_offset": committed_offset,
        "is_transactional": False,
        "is_confirmed": True,
        "effect": "applied",
        "effective_offset": record_offset,
        "effective_timestamp_ms": 1000 * record_offset,
        **columns,
    }
