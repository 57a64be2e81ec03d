"""`kafkalog ls` and `kafkalog check` name times that cannot be right. Rule: F1248."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.words import time_ms
from tests.support.golden.fixture_sets import consumed
from tests.support.repository import Unpack


@pytest.mark.parametrize("command", ["ls", "check", "check --no-indexes"])
def test_topics_with_times_that_a_consumer_received_are_named(
    unpacked: Unpack, command: str
) -> None:
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    given = [*command.split(), str(logs), "--processes", "1", "--topic"]
    for topic in ("shop.idem", "shop.share"):
        received = consumed(golden, topic, "read_uncommitted")
        times = [row["timestamp"] for row in received]
        is_early = min(times) < time_ms("2000-01-01T00:00:00Z")
        result = CliRunner().invoke(kafkalog, [*given, topic])
        assert ("times before 2000 in 1 topic" in result.output) == is_early
        is_ahead = max(times) >= time_ms("2100-01-01T00:00:00Z")
        assert ("times ahead of the clock in 1 topic" in result.output) == is_ahead
        said = result.output.splitlines()
        lines = [each for each in said if each.startswith("wrong times: times")]
        for line in lines:
            typed = shlex.split(line.rpartition("; kafkalog ")[2].removesuffix(" lists them"))
            shown = CliRunner().invoke(kafkalog, [*typed, "--format", "json"])
            rows = [json.loads(each) for each in shown.stdout.splitlines()]
            early = {time for time in times if time < time_ms("2000-01-01T00:00:00Z")}
            late = {time for time in times if time >= time_ms("2100-01-01T00:00:00Z")}
            found = {row["timestamp_ms"] for row in rows if row["type"] == "found"}
            assert found <= (early if "before" in line else late)
            assert found


def test_the_time_that_a_broker_gives_is_right_whatever_the_producer_gave(unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    asked = ["ls", str(logs), "--topic", "shop.append.time", "--format", "json"]
    result = CliRunner().invoke(kafkalog, asked)
    (row,) = map(json.loads, result.stdout.splitlines())
    assert row["max_timestamp_ms"] > time_ms("2026-01-01T00:00:00Z")
    assert "wrong times" not in result.output


def test_check_says_that_no_time_is_wrong(unpacked: Unpack) -> None:
    # F1248
    logs = unpacked("restore44.logs") / "snapshots" / "node1" / "data"
    result = CliRunner().invoke(kafkalog, ["check", str(logs), "--processes", "1"])
    assert "records; indexes sound" in result.stdout
    (records,) = re.findall(r"([0-9,]+) records", result.stdout)
    assert f"wrong times: none in {records} records: " in result.stderr
