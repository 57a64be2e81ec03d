"""Three real brokers that have diverged: for every choice of a leader `kafkalog replicas` says
which records, transactions and commits are lost, as then happens. Rules: F790 to F793, F795."""

import json
import re
import time
from pathlib import Path

import pytest

from tests.support.broker.cluster.diverged_brokers import (
    BROKERS,
    PARTITIONS,
    TERMS,
    committed,
    copied,
    diverged_brokers,
    restore,
)
from tests.support.broker.cluster.foretold_elections import (
    OFFSETS,
    OUTCOMES,
    TOPIC,
    Election,
    Records,
    WrittenRecord,
    foretold,
    replica_rows,
)
from tests.support.broker.cluster.kraft_cluster import KraftCluster
from tests.support.broker.java_tools import run_dump
from tests.support.repository import Unpack

FILE = re.compile(rf"Dumping .*(?:node|broker)-(\d+)(?:/data)?/{TOPIC}-(\d+)/\d+\.log")
RECORD = re.compile(r"\| offset: (\d+) .* payload: (\S+)")
TRUNCATION = re.compile(rf"partition=((?:{TOPIC}|{OFFSETS})-\d+), .*Truncating to offset (\d+) ")


def dumped(home: Path) -> Records:
    """The records of the topic in each broker's log, by Kafka's own tool."""
    paths = sorted(home.rglob(f"{TOPIC}-*/*.log"))
    found: list[WrittenRecord] = []
    place = (0, 0)
    for line in run_dump(paths).text.splitlines():
        if match := FILE.fullmatch(line):
            place = int(match[1]), int(match[2])
        elif match := RECORD.match(line):
            found.append(WrittenRecord(*place, int(match[1]), match[2]))
    return found


def elect(cluster: KraftCluster, choice: int, stopped: set[int], partitions: Path) -> None:
    """Have the choice elected by Kafka's tool, and the others follow it."""
    cluster.start(1)
    cluster.start(*(broker for broker in BROKERS if broker not in stopped))
    unclean = ("--election-type", "unclean", "--path-to-json-file", str(partitions))
    cluster.run("LeaderElectionCommand", *unclean)
    if stopped:
        cluster.start(*stopped)
    deadline = time.monotonic() + 120
    behind = "?"
    while behind.strip():
        assert time.monotonic() < deadline, behind
        time.sleep(1)
        lines = cluster.run("TopicCommand", "--describe", "--under-replicated-partitions")
        behind = lines.stdout.decode()
    described = cluster.run("TopicCommand", "--describe", "--topic", f"{TOPIC}|{OFFSETS}").text
    assert re.findall(r"Leader: (\d+)", described) == [str(choice)] * (PARTITIONS + 1)


def truncations(cluster: KraftCluster) -> set[tuple[str, int, int]]:
    """Where each broker, by its own log, ended a partition's log at the last."""
    found = {
        (match[1], broker): int(match[2])
        for broker in BROKERS
        for match in TRUNCATION.finditer(cluster.nodes[broker].log)
    }
    return {(*place, end) for place, end in found.items()}


def happened(cluster: KraftCluster, choice: int, before: Records, expected: Election) -> Election:
    """What has come of an election, by what Kafka's tools and clients say; of commits
    those that are expected to change."""
    now = {group: committed(cluster, group) for group, _, _ in expected.committed}
    cluster.stop()
    after = dumped(cluster.home)
    chosen = [each[1:] for each in before if each.broker == choice]
    for broker in BROKERS:
        assert [each[1:] for each in after if each.broker == broker] == chosen
    gone = {each.value for each in before} - {each.value for each in after}
    transactions = {value for value in gone if value.endswith("_transaction")}
    return Election.of(
        truncations(cluster),
        gone,
        ((value, OUTCOMES[value.rpartition("-")[2]]) for value in transactions),
        ((group, place, now[group][place]) for group, place, _ in expected.committed),
    )


def test_kafkas_tool_reads_what_is_kept(unpacked: Unpack, tmp_path: Path) -> None:
    nodes = unpacked("diverged44.logs")
    told = json.loads((unpacked("diverged44.golden") / "elections.json").read_text())
    lost = set(Election(*told["after"]["13"]).lost)
    paths = [*(nodes / f"node-{broker}" / "data" for broker in BROKERS)]
    replica_rows(paths, "--leader", "13", "--export", str(tmp_path / "kept"))
    expected = [WrittenRecord(*each) for each in told["before"]]
    assert dumped(tmp_path / "kept") == [each for each in expected if each.value in lost]


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_each_election_loses_what_was_said(tmp_path: Path) -> None:
    with diverged_brokers(tmp_path / "cluster") as cluster:
        copies = copied(cluster, tmp_path / "copies")
        before = dumped(tmp_path / "copies")
        written = sum(records + 2 for _, records in (*TERMS, (0, 20)))
        assert len({each.value for each in before}) == written * PARTITIONS
        partitions = tmp_path / "partitions.json"
        stopped: dict[int, set[int]] = {broker: set() for broker in BROKERS}
        for row in replica_rows(copies, "--election-json", str(partitions)):
            stopped[row["broker_id"]].update(row["keep_stopped"])
        expected = foretold(copies, before)
        found = {}
        for choice in BROKERS:
            restore(cluster, tmp_path / "copies")
            elect(cluster, choice, stopped[choice], partitions)
            found[choice] = happened(cluster, choice, before, expected[choice])
        (tmp_path / "elections.json").write_text(json.dumps({"before": before, "after": found}))
        assert found == expected
        assert all(election.lost and election.committed for election in found.values())
