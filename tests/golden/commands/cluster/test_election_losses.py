"""`kafkalog recover` on the directories of all nodes: what is lost by who leads, as `kafkalog
replicas` says it, whose answers tests compare with brokers. Rules: docs/format.md F1445 and F795;
set restore44 of tests/golden/README.md."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.repository import Unpack

Row = dict[str, Any]
_LOST = "election_lost_records"
# The node's copy of the metadata was taken when the topic was not there yet, or not any more.
_OF_OTHER_TIMES = ("new-late", "doomed")


@pytest.fixture(scope="module")
def nodes(unpacked: Unpack) -> list[Path]:
    return sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(kafkalog, [command, *map(str, arguments), "--processes", "1"])


def rows(command: str, *arguments: object) -> dict[tuple[str, int, int], Row]:
    found = run(command, *arguments, "--format", "json").stdout.splitlines()
    every = map(json.loads, found)
    return {(row["topic"], row["partition"], row["broker_id"]): row for row in every}


def test_each_node_that_can_lead_has_what_is_lost_with_it(nodes: list[Path]) -> None:
    planned, choices = rows("recover", *nodes), rows("replicas", *nodes)
    expected = {
        key: row["lost_records"] for key, row in choices.items() if key[0] not in _OF_OTHER_TIMES
    }
    assert sum(map(bool, expected.values())) > 30
    assert {key: planned[key][_LOST] for key in expected} == expected


def test_a_leader_that_begins_empty_loses_all_records(nodes: list[Path]) -> None:
    # F928. Node 3 has deleted the topic, by metadata that the other two controllers do not have.
    planned = rows("recover", *nodes)
    everything = rows("replicas", *nodes[:2], "--topic", "doomed", "--without", "1,2")
    (lost,) = {row["lost_records"] for row in everything.values()}
    assert planned["doomed", 0, 3]["begins_empty"]
    assert planned["doomed", 0, 3][_LOST] == lost > 0
    assert planned["doomed", 0, 2][_LOST] == 0


def test_the_last_line_says_it_and_how_to_see_more(nodes: list[Path]) -> None:
    result = run("recover", *nodes, "--topic", "events")
    assert result.exit_code == ExitCode.FINDINGS
    most = [
        max(row["lost_records"] for key, row in choices if key[1] == number)
        for choices in [rows("replicas", *nodes, "--topic", "events").items()]
        for number in range(4)
    ]
    last = result.stdout.splitlines()[-1]
    assert f"LOST BY ELECTION: up to {sum(most):,} records of 4 partitions" in last
    assert "nothing is lost" not in result.stdout
    assert f"kafkalog replicas {' '.join(map(str, nodes))}" in result.stdout
    assert "BROKER-ID" in result.stdout


def test_of_some_nodes_it_is_not_judged(nodes: list[Path]) -> None:
    # The third broker could lead too.
    for given in (nodes[:1], nodes[:2]):
        assert {row[_LOST] for row in rows("recover", *given).values()} == {None}
        assert "what elections lose" in run("recover", *given).stdout
    assert "BROKER-ID" not in run("recover", nodes[0], "--all").stdout


def test_replicas_that_end_alike_lose_nothing(nodes: list[Path], tmp_path: Path) -> None:
    """Each node gets the log of node 1, as after a stop that all followers had caught up with."""
    given = [shutil.copytree(node, tmp_path / str(number)) for number, node in enumerate(nodes)]
    for node in given[1:]:
        shutil.rmtree(node / "plain-0")
        shutil.copytree(given[0] / "plain-0", node / "plain-0")
        epochs = (given[0] / "recovery-point-offset-checkpoint").read_text()
        (node / "recovery-point-offset-checkpoint").write_text(epochs)
    planned = rows("recover", *given, "--topic", "plain")
    assert [row[_LOST] for row in planned.values()] == [0, 0, 0]
