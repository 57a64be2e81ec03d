"""`kafkalog retention`, by the rules of a broker's retention. Rules: F160 to F168."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.schemas import table_fields
from tests.support.spark.kafka_logs import write_orders_and_users

AT = "1970-01-01T00:00:01.004"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """orders-0 in two segments and users-0 in one; the timestamp of each record 1000 + offset."""
    return write_orders_and_users(tmp_path / "logs")


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    path = tmp_path / "topics.json"
    limits = {"cleanup.policy": "delete", "retention.ms": 1, "retention.bytes": -1}
    path.write_text(json.dumps({"orders": limits}))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    given = ["retention", *map(str, arguments), "--as-of", AT, "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--format", "json")[1].splitlines()]


def test_each_segment_has_its_reason_and_what_is_missing_is_named(
    log_dir: Path, configs: Path
) -> None:
    # F162, F163, F168
    given = (log_dir, "--topic-config", configs)
    found = rows(*given, "--by", "segment")
    assert list(found[0]) == [field["name"] for field in table_fields("retention_plan")]
    assert [(row["topic"], row["goes"], row["reason"]) for row in found] == [
        ("orders", True, "time"),
        ("orders", False, "future_timestamp"),
        ("users", None, "unknown_limits"),
    ]
    code, out, _ = run(*given)
    assert code == ExitCode.FINDINGS
    size = (log_dir / "orders-0" / f"{0:020d}.log").stat().st_size
    assert f"1 of 3 segments would go, {size} bytes freed" in out
    assert "blocked by a timestamp in the future: orders" in out
    assert "users (retention.bytes, retention.ms)" in out
    assert "no file says the cleanup.policy of users: the" in out


def test_topics_come_with_what_they_free_most_first(log_dir: Path, configs: Path) -> None:
    size = (log_dir / "orders-0" / f"{0:020d}.log").stat().st_size
    orders, users = rows(log_dir, "--topic-config", configs)
    assert (orders["topic"], orders["segments_going"], orders["bytes_freed"]) == ("orders", 1, size)
    assert users["missing_settings"] == "cleanup.policy, retention.bytes, retention.ms"
    (only,) = rows(log_dir, "--topic-config", configs, "--topic", "users")
    assert only == users


def test_columns_are_checked_before_anything_is_read(log_dir: Path) -> None:
    code, _, error = run(log_dir / "nowhere", "--columns", "nope")
    assert code == ExitCode.WRONG_ARGUMENTS
    assert "nope" in error


def test_a_setting_is_tried_and_those_that_are_missing_are_named(log_dir: Path) -> None:
    # F162, F168: at 1004 ms, all limits of orders are given but one.
    given = (log_dir, "--topic", "orders", "--set", "retention.ms=1ms")
    _, out, _ = run(*given)
    assert "orders (retention.bytes)" in out
    policy = ("--set", "cleanup.policy=delete", "--set", "retention.bytes=-1")
    assert [row["reason"] for row in rows(*given, *policy, "--by", "segment")] == [
        *("time", "future_timestamp")
    ]


def test_what_is_set_wins_over_the_file_and_only_for_the_topics_that_are_meant(
    log_dir: Path, configs: Path
) -> None:
    given = (log_dir, "--topic-config", configs, "--set", "retention.ms=1d")
    found = {row["topic"]: row for row in rows(*given, "--by", "segment")}
    assert found["orders"]["retention_ms"] == found["users"]["retention_ms"] == 86_400_000
    found = {row["topic"]: row for row in rows(*given, "--by", "segment", "--topic", "orders")}
    assert found["orders"]["retention_ms"] == 86_400_000


def test_what_goes_within_a_day_and_a_week_is_summed_up(log_dir: Path, configs: Path) -> None:
    # All records are of the first two seconds of 1970.
    sizes = [path.stat().st_size for path in sorted((log_dir / "orders-0").glob("*.log"))]
    for setting, day, week in (
        *(("1ms", sum(sizes), sum(sizes)), ("2d", 0, sum(sizes)), ("30d", 0, 0)),
    ):
        given = (log_dir, "--topic-config", configs, "--set", f"retention.ms={setting}")
        (orders,) = [row for row in rows(*given) if row["topic"] == "orders"]
        assert (orders["bytes_within_day"], orders["bytes_within_week"]) == (day, week)


@pytest.mark.parametrize("setting", ["retention.ms", "retention.ms=soon", "segment.bytes=1"])
def test_a_setting_has_a_known_name_and_a_value(log_dir: Path, setting: str) -> None:
    code, _, err = run(log_dir, "--set", setting)
    assert (code, "--set" in err) == (ExitCode.WRONG_ARGUMENTS, True)


def test_the_metadata_is_not_judged_by_the_settings_of_topics(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1293
    properties = tmp_path / "server.properties"
    properties.write_text("log.retention.hours=168\n")
    log_dirs = unpacked("kafka44.logs") / "log-dirs"
    given = ["retention", str(log_dirs), "--server-properties", str(properties)]
    result = CliRunner().invoke(kafkalog, [*given, "--processes", "1"])
    assert "not judged: __cluster_metadata: controllers and brokers delete" in result.output
    assert "want of settings: __cluster_metadata" not in result.output


def test_a_policy_that_nothing_gives_is_kafkas_default_and_that_is_said(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1351: the broker that wrote these had no log.cleanup.policy in its file.
    log_dirs = unpacked("kafka44.logs") / "log-dirs"
    properties = tmp_path / "server.properties"
    properties.write_text("node.id=1\n")
    given = (log_dirs, "--set", "retention.ms=1ms", "--by", "segment")
    assumed, known = rows(*given), rows(*given, "--server-properties", properties)
    assert [(row["file"], row["cleanup_policy"]) for row in assumed] == [
        (row["file"], row["cleanup_policy"]) for row in known
    ]
    sources = {row["topic"]: row["cleanup_policy_from"] for row in assumed}
    assert (sources["shop.tx"], sources["shop.compact_delete"]) == ("assumed", "metadata")
    _, out, _ = run(*given)
    assert "no file says the cleanup.policy of " in out
    assert "--topic-config gives what topics do not set themselves" in out
