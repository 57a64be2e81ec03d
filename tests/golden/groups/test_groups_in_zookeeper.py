"""`kafkalog groups --zookeeper` against what kafka-consumer-groups and ConsumerOffsetChecker of
0.10 printed of groups that commit to ZooKeeper. Rules: F490 to F495."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.repository import Unpack

Place = tuple[str, str, int]


@pytest.fixture
def given(unpacked: Unpack) -> list[str]:
    zookeeper = unpacked("kafka010.zookeeper") / "zookeeper-live"
    return [str(unpacked("kafka010.logs") / "log-dirs"), "--zookeeper", str(zookeeper)]


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["groups", *arguments, "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: str) -> list[dict[str, Any]]:
    code, out, err = run(*arguments, "--format", "json")
    assert code == ExitCode.DONE, err
    return [json.loads(line) for line in out.splitlines()]


def tool_lines(golden: Path) -> dict[Place, tuple[int, int, int, str | None]]:
    """Offset, end, lag and consumer as the tool printed them with --zookeeper."""
    found = {}
    for path in (golden / "tools").glob("groups_zk_g-*.txt"):
        group = f"old.{path.stem.removeprefix('groups_zk_')}"
        for line in path.read_text().split("\n")[2:]:
            if line:
                topic, partition, offset, end, lag, consumer = line.split()
                owner = None if consumer == "-" else consumer
                found[group, topic, int(partition)] = (int(offset), int(end), int(lag), owner)
    return found


def test_every_line_of_describe_is_that_of_the_tool(given: list[str], unpacked: Unpack) -> None:
    found = {
        (row["group"], row["topic"], row["partition"], row["consumer_id"]): row
        for row in rows(*given)
    }
    expected = tool_lines(unpacked("kafka010.golden"))
    assert len(expected) == 11
    for (group, topic, partition), (offset, end, lag, owner) in expected.items():
        row = found[group, topic, partition, owner]
        assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (offset, end, lag)


def test_groups_are_those_of_the_tool_with_their_states_and_members(
    given: list[str], unpacked: Unpack
) -> None:
    listed = (unpacked("kafka010.golden") / "tools/groups_zk_list.txt").read_text().split()
    old = {row["group"] for row in rows(*given, "--list") if row["type"] == "zookeeper"}
    # This one commits to Kafka, and ZooKeeper has its consumer's name alone.
    assert old == {*listed} - {"old.g-old-kafka"}
    states = {
        row["group"]: (row["state"], row["members"], row["coordinator_id"])
        for row in rows(*given, "--state")
        if row["type"] == "zookeeper"
    }
    assert states == {
        "old.g-old-zk": ("Stable", 2, None),
        "old.g-old-dual": ("Stable", 1, None),
        "old.g-old-filter": ("Stable", 1, None),
        "old.g-old-gone": ("Empty", 0, None),
    }
    owned: dict[str, int] = {}
    for *_, owner in tool_lines(unpacked("kafka010.golden")).values():
        if owner is not None:
            owned[owner] = owned.get(owner, 0) + 1
    members = rows(*given, "--members", "--verbose")
    parts = {row["consumer_id"]: row["partitions"] for row in members if row["host"] is None}
    assert parts == owned
    (first,) = (row for row in members if row["consumer_id"] == "old.g-old-zk_old.c2")
    assert first["assignment"] == "old.multi-3:2"


def test_a_group_that_commits_to_zookeeper_alone_is_known_and_lags(given: list[str]) -> None:
    (row,) = rows(*given, "--lagging", "--group", "old.g-old-gone")
    assert (row["to_read"], row["state"], row["members"]) == (823, "Empty", 0)
    code, _, err = run(given[0], "--group", "old.g-old-gone")
    assert (code, "kafkalog groups --zookeeper DIR" in err) == (ExitCode.WRONG_ARGUMENTS, True)


def test_its_table_is_that_of_the_job(given: list[str], tmp_path: Path) -> None:
    output = ["--output-dir", str(tmp_path), "--format", "json"]
    assert run(*given, *output)[0] == ExitCode.DONE
    lines = [
        json.loads(line)
        for file in (tmp_path / "consumer_lag").rglob("*.json")
        for line in file.read_text().splitlines()
    ]
    stores = {row["group_id"]: row["offset_storage"] for row in lines}
    assert stores["old.g-old-gone"] == "zookeeper"
    assert {row["offset_storage"] for row in lines if row["group_id"] == "old.g-old-dual"} == {
        "kafka",
        "zookeeper",
    }


@pytest.mark.parametrize("table", ["--why=old.g-old-zk", "--history=old.g-old-zk", "--resume"])
def test_what_is_told_of_groups_in_kafka_alone_is_refused(given: list[str], table: str) -> None:
    code, _, err = run(*given, table)
    assert code == ExitCode.WRONG_ARGUMENTS
    assert f"--zookeeper cannot be used with {table.split('=')[0]}" in err


def test_topics_and_patterns_choose_rows(given: list[str], unpacked: Unpack) -> None:
    expected = tool_lines(unpacked("kafka010.golden"))

    def places(*options: str) -> set[Place]:
        found = rows(*given, *options)
        return {(row["group"], row["topic"], row["partition"]) for row in found}

    of_lz4 = {place for place in expected if place[1] == "old.codec-lz4"}
    assert len(of_lz4) == 2
    assert places("--topic", "old.codec-lz4") == of_lz4
    assert places("--topic-pattern", "lz4$", "--group-pattern", "gone|zk") == {
        place for place in of_lz4 if place[0] == "old.g-old-gone"
    }
    listed = {row["group"] for row in rows(*given, "--list", "--group-pattern", "old.g-old-[gz]")}
    assert listed == {"old.g-old-gone", "old.g-old-zk"}
    code, out, err = run(*given, "--topic", "old.codec-lz5")
    assert (code, out) == (ExitCode.WRONG_ARGUMENTS, "")
    assert "--topic: 'old.codec-lz5' is not valid" in err
    assert "did you mean old.codec-lz4" in err


def test_too_much_lag_is_a_finding(given: list[str], unpacked: Unpack) -> None:
    # Logs of that time have records alone, so that the lag is what is left to read.
    most = max(lag for _, _, lag, _ in tool_lines(unpacked("kafka010.golden")).values())
    at_least = [*given, "--fail-on-findings", "--max-lag"]
    code, _, err = run(*at_least, str(most - 1))
    assert (code, f"findings: {most} records to read in one" in err) == (ExitCode.FINDINGS, True)
    assert run(*at_least, str(most))[0] == ExitCode.DONE
    assert run(*given, "--max-lag", str(most - 1))[0] == ExitCode.DONE
    code, _, err = run(*given, "--state", "--max-lag", "1")
    assert (code, "--max-lag cannot be used with --state" in err) == (2, True)
