"""The job that plans retention: its table, what it says, its exit codes. Rules: F160 to F168."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.plan_retention import main
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options.parameter_types import Time
from tests.support.jobs.job_runs import table, written_schema
from tests.support.spark.kafka_logs import write_orders_and_users


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """orders-0 in two segments and users-0 in one; the timestamp of each record 1000 + offset."""
    return write_orders_and_users(tmp_path / "logs")


def run(log_dir: Path, *arguments: object) -> int:
    output = log_dir.parent / "tables"
    given = ["--output-dir", output, "--format", "parquet", *arguments]
    return main([str(log_dir), *map(str, given)])


def test_the_table_and_the_sizes_freed(
    spark: SparkSession, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = log_dir.parent / "topics.json"
    configs.write_text(
        json.dumps(
            {"orders": {"cleanup.policy": "delete", "retention.ms": 1, "retention.bytes": -1}}
        )
    )
    assert run(log_dir, "--topic-config", configs, "--as-of", "1970-01-01T00:00:01.004") == 0
    said = capsys.readouterr().out.splitlines()
    size = (log_dir / "orders-0" / f"{0:020d}.log").stat().st_size
    rows = table(spark, log_dir.parent / "tables", "retention_plan")
    assert rows.schema == written_schema("retention_plan")
    found = rows.orderBy("topic", "segment_base_offset").collect()
    assert [(row.topic, row.at_ms, row.goes, row.reason) for row in found] == [
        ("orders", 1004, True, "time"),
        ("orders", 1004, False, "future_timestamp"),
        ("users", 1004, None, "unknown_limits"),
    ]
    assert f"1 of 3 segments would go, {size} bytes freed" in said
    assert "blocked by a timestamp in the future: orders" in said
    # F168: what is missing is named.
    assert (
        "not known for want of settings: users (retention.bytes, retention.ms); "
        "--server-properties or --topic-config, --zookeeper or a log directory with "
        "__cluster_metadata gives them"
    ) in said


def test_limits_that_are_partly_known_answer_as_far_as_they_go(
    spark: SparkSession, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F168, F941
    configs = log_dir.parent / "topics.json"
    configs.write_text(json.dumps({"orders": {"retention.ms": 1, "retention.bytes": -1}}))
    (log_dir / ".kafka_cleanshutdown").touch()
    index = log_dir / "orders-0" / f"{3:020d}.timeindex"
    index.write_bytes(index.read_bytes() + bytes(24))
    assert run(log_dir, "--topic-config", configs, "--as-of", 1004) == 0
    said = capsys.readouterr().out
    size = sum(path.stat().st_size for path in (log_dir / "orders-0").glob("*.log"))
    assert "users (retention.bytes, retention.ms)" in said
    assert "no file says the cleanup.policy of orders, users: the" in said
    assert f"2 of 3 segments would go, {size} bytes freed" in said
    assert (
        "taken for 1970, because zeros are at the end of time indexes: segments of orders" in said
    )
    found = table(spark, log_dir.parent / "tables", "retention_plan").where("topic = 'orders'")
    rows = found.orderBy("segment_base_offset").collect()
    assert [(row.goes, row.expires_at_ms, row.largest_timestamp_from) for row in rows] == [
        (True, 1004, "timeindex"),
        (True, 1004, "timeindex_zeros"),
    ]


@pytest.mark.deep
def test_findings_are_timestamps_in_the_future(spark: SparkSession, log_dir: Path) -> None:
    server = log_dir.parent / "server.properties"
    server.write_text("log.retention.ms=1\n")
    given = ("--server-properties", server, "--fail-on-findings", "--as-of")
    assert run(log_dir, *given, 1001) == ExitCode.FINDINGS
    assert run(log_dir, *given, 1_000_000) == ExitCode.DONE


@pytest.mark.deep
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T02:00:00+02:00", 0),
    ],
)
def test_times_are_milliseconds_or_iso_8601_in_utc(text: str, expected: int) -> None:
    assert Time().convert(text, None, None) == expected


def test_what_is_not_a_time_is_a_wrong_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--as-of", "tomorrow") == ExitCode.WRONG_ARGUMENTS
    assert "--as-of: 'tomorrow' is not a time" in capsys.readouterr().err
