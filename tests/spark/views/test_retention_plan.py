"""View `retention_plan`. Rules: F160 to F168."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.support.repository import ROOT
from tests.support.spark.kafka_logs import kafkalog_read, said_by_error, write_orders_and_users

SCHEMA = ROOT / "schemas" / "tables" / "retention_plan.json"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """orders-0 in two segments, the timestamp of each record 1000 + offset; users-0 in one."""
    place = write_orders_and_users(tmp_path / "logs")
    (place / ".kafka_cleanshutdown").touch()
    return place


def test_every_segment_has_a_row_with_limits_and_where_they_come_from(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    server, topics = tmp_path / "server.properties", tmp_path / "topics.json"
    server.write_text("log.retention.minutes=1\n")
    topics.write_text(json.dumps({"orders": {"retention.ms": "100"}}))
    frame = kafkalog_read(
        spark,
        log_dir,
        view="retention_plan",
        asOf=1104,
        serverProperties=server,
        topicConfig=topics,
    )
    assert frame.schema == StructType.fromJson(json.loads(SCHEMA.read_text()))
    rows = frame.orderBy("topic", "segment_base_offset").collect()
    assert [
        (row.topic, row.segment_base_offset, row.is_last_segment, row.goes, row.reason)
        for row in rows
    ] == [
        ("orders", 0, False, True, "time"),
        ("orders", 3, True, False, "within_limits"),
        ("users", 0, True, False, "within_limits"),
    ]
    assert [
        (row.retention_ms, row.retention_ms_from, row.cleanup_policy_from, row.expires_at_ms)
        for row in rows
    ] == [
        (100, "topic", "default", 1103),
        (100, "topic", "default", 1106),
        (60_000, "server", "assumed", 61_003),
    ]
    assert {(row.cluster_id, row.broker_id, row.input_path) for row in rows} == {
        ("cluster", 1, str(log_dir))
    }


@pytest.mark.deep
def test_the_time_of_the_plan_must_be_given(spark: SparkSession, log_dir: Path) -> None:
    error = said_by_error(lambda: kafkalog_read(spark, log_dir, view="retention_plan").count())
    assert "OptionError: asOf: missing" in error
