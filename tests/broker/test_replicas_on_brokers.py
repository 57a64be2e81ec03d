"""Three real brokers that have diverged: for every choice of a leader `kafkalog replicas` says
which records, transactions and commits are lost, as then happens. Rules: F790 to F793, F795."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.diverged_brokers import (
    BROKERS,
    PARTITIONS,
    TERMS,
    TOPIC,
    committed,
    copied,
    diverged_brokers,
    restore,
)
from tests.support.broker.java_tools import run_dump
from tests.support.broker.kraft_cluster import KraftCluster

OFFSETS = "__consumer_offsets"
RECORD = re.compile(r"\| offset: (\d+) .* payload: (\S+)")
TRUNCATION = re.compile(rf"partition=((?:{TOPIC}|{OFFSETS})-\d+), .*Truncating to offset (\d+) ")
GROUPS = ("readers", "others", "newcomers")

# Broker, partition, offset.
Records = dict[tuple[int, int, int], str]


def rows(paths: list[Path], *options: str) -> list[dict[str, Any]]:
    topics = ("--topic", TOPIC, "--topic", OFFSETS)
    given = ["replicas", *map(str, paths), *topics, *options, "--format", "json"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def dumped(home: Path) -> Records:
    """The records of the topic in each broker's log, by Kafka's own tool."""
    paths = sorted(home.glob(f"node-*/data/{TOPIC}-*/*.log"))
    found: Records = {}
    place = (0, 0)
    for line in run_dump(paths).text.splitlines():
        if match := re.fullmatch(rf"Dumping .*node-(\d+)/data/{TOPIC}-(\d+)/\d+\.log", line):
            place = int(match[1]), int(match[2])
        elif (match := RECORD.match(line)) and not match[2].startswith("endTxnMarker"):
            found[*place, int(match[1])] = match[2]
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


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_each_election_loses_what_was_said(tmp_path: Path) -> None:
    with diverged_brokers(tmp_path / "cluster") as cluster:
        copies = copied(cluster, tmp_path / "copies")
        before = dumped(tmp_path / "copies")
        written = sum(records + 2 for _, records in TERMS) * PARTITIONS
        assert len(set(before.values())) == written + 22 * PARTITIONS
        partitions = tmp_path / "partitions.json"
        replicas = rows(copies, "--election-json", str(partitions))
        losses = rows(copies, "--by", "loss")
        assert {row["broker_id"] for row in replicas if row["lost_records"]} == set(BROKERS)
        for choice in BROKERS:
            mine = [row for row in replicas if row["broker_id"] == choice]
            lost = [row for row in losses if row["leader"] == choice]
            restore(cluster, tmp_path / "copies")
            elect(cluster, choice, {n for row in mine for n in row["keep_stopped"]}, partitions)
            now = {group: committed(cluster, group) for group in GROUPS}
            cluster.stop()
            after = dumped(cluster.home)
            compare_records(choice, lost, before, after)
            compare_transactions(lost, before, after)
            foretold = {
                (row["group_id"], row["committed_partition"]): row["remaining_offset"]
                for row in lost
                if row["kind"] == "commit"
            }
            assert foretold == {
                (group, partition): now[group][partition] for group, partition in foretold
            }
            truncated = {
                (f"{row['topic']}-{row['partition']}", each["broker_id"], each["end_offset"])
                for row in mine
                for each in row["truncations"]
            }
            assert truncated == truncations(cluster)


def truncations(cluster: KraftCluster) -> set[tuple[str, int, int]]:
    """Where each broker, by its own log, ended a partition's log at the last."""
    found = {
        (match[1], broker): int(match[2])
        for broker in BROKERS
        for match in TRUNCATION.finditer(cluster.nodes[broker].log)
    }
    return {(*place, end) for place, end in found.items()}


def compare_records(
    choice: int, lost: list[dict[str, Any]], before: Records, after: Records
) -> None:
    foretold = {
        value
        for (broker, partition, offset), value in before.items()
        for row in lost
        if row["kind"] == "records"
        and (row["topic"], row["partition"]) == (TOPIC, partition)
        and broker in row["broker_ids"]
        and row["first_offset"] <= offset <= row["last_offset"]
    }
    assert foretold == set(before.values()) - set(after.values())
    chosen = {place[1:]: value for place, value in before.items() if place[0] == choice}
    for broker in BROKERS:
        assert {place[1:]: v for place, v in after.items() if place[0] == broker} == chosen
    assert len(foretold) == sum(
        row["records"] for row in lost if row["kind"] == "records" and row["topic"] == TOPIC
    )


def compare_transactions(lost: list[dict[str, Any]], before: Records, after: Records) -> None:
    foretold = [
        (before[row["broker_ids"][0], row["partition"], row["first_offset"]], row["outcome"])
        for row in lost
        if row["kind"] == "transaction"
    ]
    gone = set(before.values()) - set(after.values())
    outcomes = {"commit_transaction": "committed", "abort_transaction": "aborted"}
    assert sorted(foretold) == sorted(
        (value, outcomes[value.rpartition("-")[2]]) for value in gone if "_transaction" in value
    )
