"""`kafkalog migrate-offsets` on data directories of real clusters, against what
ConsumerOffsetChecker printed of the groups. Rules: F470, F471, F475, F484."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.repository import Unpack
from tests.support.zookeeper.checked_offsets import checked_offsets

# The broker 0.10.2.2 did not write the cluster's id into its log directory yet.
VOUCHED = "--allow-unknown-cluster"
# A hundred years: no offset of the copy is too old, whenever the tests run.
KEPT = ("--offsets-retention", "52560000")


@pytest.fixture(scope="module")
def inputs(unpacked: Unpack) -> list[str]:
    (offsets,) = unpacked("kafka010.logs").rglob("__consumer_offsets-1")
    data_dir = unpacked("kafka010.zookeeper") / "zookeeper-live"
    return [str(offsets.parent), "--zookeeper", str(data_dir)]


def run(*arguments: object) -> tuple[int, str, str]:
    given = ["migrate-offsets", *map(str, arguments), *KEPT, "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--format", "json")[1].splitlines()]


def test_both_stores_are_what_the_tools_of_that_time_printed(
    inputs: list[str], unpacked: Unpack
) -> None:
    told = checked_offsets(unpacked("kafka010.golden"))
    assert told
    found = {
        (row["group_id"], row["topic"], row["partition"]): row
        for row in rows(*inputs, VOUCHED, "--by", "partition")
    }
    for key, offset in told.items():
        row = found[key]
        assert offset in (row["zookeeper_offset"], row["kafka_offset"])
    phases = {row["group_id"]: row["phase"] for row in rows(*inputs, VOUCHED)}
    assert phases["old.g-old-zk"] == "zookeeper"
    assert phases["old.g-old-dual"] == "dual_commit"
    assert phases["old.g-old-kafka"] == "kafka"
    code, out, _ = run(*inputs, VOUCHED)
    assert code == ExitCode.FINDINGS
    assert "to Kafka: 1 offset to move; refused: 8 of groups with members" in out
    assert out.splitlines()[-1] == "findings: 8 not moved to Kafka (of groups with members)"


def test_clusters_whose_ids_are_not_known_are_not_compared(inputs: list[str]) -> None:
    # F485
    code, _, error = run(*inputs)
    assert code == ExitCode.WRONG_ARGUMENTS
    assert VOUCHED in error


def test_what_is_written_is_a_log_that_is_read_again(inputs: list[str], tmp_path: Path) -> None:
    target = tmp_path / "segments"
    code, out, _ = run(*inputs, VOUCHED, "--allow-active-groups", "--write-segments", target)
    assert code == ExitCode.DONE
    (line,) = (line for line in out.splitlines() if line.startswith("wrote "))
    logs = find_partitions([str(target)])
    assert line.startswith(f"wrote 9 commits in {len(logs)} segment")
    assert {log.topic for log in logs} == {"__consumer_offsets"}
    # As `kafkalog salvage` refuses a directory that exists.
    code, _, error = run(*inputs, VOUCHED, "--write-segments", target)
    assert code == ExitCode.UNREADABLE_INPUT
    assert str(target) in error
