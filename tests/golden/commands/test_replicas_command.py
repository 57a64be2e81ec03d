"""`kafkalog replicas` on three real brokers that had diverged, against what came of elections.
Rules: F790 to F793, F795."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.cluster.foretold_elections import (
    Election,
    WrittenRecord,
    foretold,
    replica_rows,
)
from tests.support.repository import Unpack

BROKERS = (11, 12, 13)


@pytest.fixture
def log_dirs(unpacked: Unpack) -> list[Path]:
    nodes = unpacked("diverged44.logs")
    return [*(nodes / f"node-{broker}" / "data" for broker in BROKERS), nodes / "node-1/metadata"]


def run(paths: list[Path], *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["replicas", *map(str, paths), *options])
    return result.exit_code, result.stdout, result.stderr


def test_what_is_said_is_what_came_of_each_election(log_dirs: list[Path], unpacked: Unpack) -> None:
    told = json.loads((unpacked("diverged44.golden") / "elections.json").read_text())
    before = [WrittenRecord(*each) for each in told["before"]]
    found = foretold(log_dirs, before)
    # JSON has neither tuples nor numbers as keys.
    assert json.loads(json.dumps(found)) == told["after"]
    assert all(Election(*each).lost for each in found.values())


def test_a_broker_that_stays_away_does_not_lead(log_dirs: list[Path]) -> None:
    rows = replica_rows(log_dirs, "--without", "11")
    assert {row["broker_id"] for row in rows if row["can_lead"]} == {12, 13}
    # Broker 11 led last, and what it wrote is lost as it is when another leads.
    lost = {(row["broker_id"], row["partition"], row["lost_records"]) for row in rows}
    assert lost >= {
        (row["broker_id"], row["partition"], row["lost_records"])
        for row in replica_rows(log_dirs)
        if row["broker_id"] != 11
    }
    code, _, err = run(log_dirs, "--without", "14")
    assert code == 2 and "brokers of the log directories: 11, 12, 13" in err


def test_partitions_to_elect_are_written_for_the_tool(log_dirs: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "partitions.json"
    code, out, _ = run(log_dirs, "--topic", "orders", "--election-json", str(target))
    assert code == 0
    assert out.splitlines()[-1] == "2 partitions, 2 with replicas that differ"
    named = [{"topic": "orders", "partition": number} for number in (0, 1)]
    assert json.loads(target.read_text()) == {"partitions": named}
    inside = log_dirs[0] / "partitions.json"
    assert run(log_dirs, "--election-json", str(inside))[0] == 2 and not inside.exists()


def test_without_the_clusters_metadata_nobody_knows_who_is_elected(log_dirs: list[Path]) -> None:
    rows = replica_rows(log_dirs[:2])
    assert {(row["is_elected"], row["keep_stopped"]) for row in rows} == {(None, None)}
    # With it, replicas that are not here are named.
    code, _, err = run([*log_dirs[:2], log_dirs[3]])
    assert code == 0 and "orders-0 on 13, orders-1 on 13" in err
