"""What `kafkalog replicas` says of the elections that could come, in the form in which
tests/broker/cluster/test_replicas_on_brokers.py sees them happen; that test also makes the files of
tests/golden/data/diverged44."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog

TOPIC = "orders"
OFFSETS = "__consumer_offsets"
OUTCOMES = {"commit_transaction": "committed", "abort_transaction": "aborted"}


class WrittenRecord(NamedTuple):
    """A record in a broker's log of the topic, by kafka-dump-log."""

    broker: int
    partition: int
    offset: int
    value: str


Records = Sequence[WrittenRecord]


class Election(NamedTuple):
    """What came of an election: where followers ended their logs (partition's name, broker, end),
    the values that no broker has any more, of transactions with their outcome, and what groups have
    committed where a commit was lost (group, partition, offset)."""

    truncated: list[tuple[str, int, int]]
    lost: list[str]
    transactions: list[tuple[str, str]]
    committed: list[tuple[str, int, int | None]]

    @classmethod
    def of(
        cls,
        truncated: Iterable[tuple[str, int, int]],
        lost: Iterable[str],
        transactions: Iterable[tuple[str, str]],
        committed: Iterable[tuple[str, int, int | None]],
    ) -> "Election":
        return cls(*(sorted(set(each)) for each in (truncated, lost, transactions, committed)))  # type: ignore[arg-type,type-var]


def replica_rows(paths: Iterable[Path], *options: str) -> list[dict[str, Any]]:
    topics = ("--topic", TOPIC, "--topic", OFFSETS)
    given = ["replicas", *map(str, paths), *topics, *options, "--format", "json"]
    result = CliRunner().invoke(kafkalog, [*given, "--processes", "1"])
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def foretold(paths: Sequence[Path], before: Records) -> dict[int, Election]:
    """What the command says of each choice."""
    losses = replica_rows(paths, "--by", "loss")
    return {
        row["broker_id"]: _election(row["broker_id"], rows, losses, before)
        for rows in [replica_rows(paths)]
        for row in rows
    }


def _election(
    choice: int, rows: list[dict[str, Any]], losses: list[dict[str, Any]], before: Records
) -> Election:
    lost = [row for row in losses if row["leader"] == choice]
    values = {(each.broker, each.partition, each.offset): each.value for each in before}
    return Election.of(
        (
            (f"{row['topic']}-{row['partition']}", each["broker_id"], each["end_offset"])
            for row in rows
            if row["broker_id"] == choice
            for each in row["truncations"]
        ),
        (
            each.value
            for each in before
            for row in lost
            if row["kind"] == "records"
            and (row["topic"], row["partition"]) == (TOPIC, each.partition)
            and each.broker in row["broker_ids"]
            and row["first_offset"] <= each.offset <= row["last_offset"]
        ),
        (
            (values[row["broker_ids"][0], row["partition"], row["first_offset"]], row["outcome"])
            for row in lost
            if row["kind"] == "transaction"
        ),
        (
            (row["group_id"], row["committed_partition"], row["remaining_offset"])
            for row in lost
            if row["kind"] == "commit"
        ),
    )
