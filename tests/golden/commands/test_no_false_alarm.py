"""`kafkalog recover` says of directories that brokers have stopped, or were killed over, that the
node starts. Rules: docs/format.md F960 to F973."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.golden.damaged_log_dirs import broker_actions
from tests.support.repository import ROOT, Unpack

SETS = ("kafka08", "kafka010", "kafka39zk", "kafka44", "tiered43", "diverged44")


def log_dirs(folder: Path) -> list[Path]:
    """The log directories below a folder."""
    return sorted({path.parent for path in folder.rglob("recovery-point-offset-checkpoint")})


def nodes(*paths: Path) -> list[dict[str, Any]]:
    given = ["recover", *map(str, paths), "--by", "node", "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("name", SETS)
def test_nodes_that_were_stopped_start(name: str, unpacked: Unpack) -> None:
    found = [node for path in log_dirs(unpacked(f"{name}.logs")) for node in nodes(path)]
    assert found
    assert [node["reasons"] for node in found if not node["broker_starts"]] == []


def test_both_directories_of_a_broker_with_zookeeper_are_one_node(unpacked: Unpack) -> None:
    folder = unpacked("kafka39zk.logs") / "log-dirs"
    (node,) = nodes(folder / "d1", folder / "d2")
    assert (node["broker_starts"], node["kafka_version"]) == (True, "3.9")


def test_nodes_that_were_killed_start_as_a_broker_did(unpacked: Unpack) -> None:
    said = broker_actions(unpacked("unclean.golden"))
    variants = unpacked("unclean.logs") / "variants"
    starts = {name: nodes(variants / name / "log-dirs")[0]["broker_starts"] for name in said}
    assert starts == {name: told["broker_started"] for name, told in said.items()}


def test_the_examples_start() -> None:
    found = [node for path in log_dirs(ROOT / "examples") for node in nodes(path)]
    assert found
    assert all(node["broker_starts"] for node in found)
