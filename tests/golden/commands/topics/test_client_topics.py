"""`kafkalog mirror`, `streams` and `ksql`, and `find` and `dump` over the same topics: what
MirrorMaker and Kafka Streams wrote to brokers 4.3.1 and 4.4.0.

Rules: docs/format.md F1252 to F1255, docs/command-line.md F1256.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kafkalog
from kafkalog.command_line.main import kafkalog as command_line
from kafkalog.exit_codes import ExitCode
from kafkalog.testing import LogDirectory
from tests.support.messages.ksql_topic import TOPIC, command
from tests.support.repository import Unpack


def run(name: str, *arguments: object) -> Result:
    return CliRunner().invoke(command_line, [name, *map(str, arguments), "--processes", "1"])


def rows(name: str, *arguments: object) -> list[dict[str, Any]]:
    result = run(name, *arguments, "--format", "json")
    assert result.exit_code == ExitCode.DONE, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def logs(unpacked: Unpack) -> Path:
    return unpacked("connect43.logs") / "log-dirs"


def test_mirrors_show_what_was_copied(logs: Path) -> None:
    # F1253: orders has 60 records, which word-count had read, as the workers said.
    (checkpoint,) = rows("mirror", logs)
    assert (checkpoint["group_id"], checkpoint["topic"], checkpoint["source_cluster"]) == (
        *("word-count", "a.orders", "a"),
    )
    assert (checkpoint["source_offset"], checkpoint["target_offset"]) == (60, 60)
    (sync,) = rows("mirror", logs, "--by", "offset-sync")
    assert (sync["topic"], sync["partition"], sync["source_offset"]) == ("orders", 0, 59)
    (beat,) = rows("mirror", logs, "--by", "heartbeat")
    assert (beat["source_cluster"], beat["target_cluster"]) == ("a", "b")
    assert 0 <= beat["written_ms"] - beat["heartbeat_ms"] < 5_000
    shown = run("mirror", logs).stdout
    assert "1 partition copied, checkpoints of 1 group, heartbeats of 1 flow, by a.checkpoints" in (
        shown
    )


def test_mirrors_of_a_dedicated_cluster_are_found(unpacked: Unpack) -> None:
    path = unpacked("positions44.logs") / "log-dirs"
    found = {row["group_id"]: row["source_offset"] for row in rows("mirror", path)}
    # What `group_deeds` had the groups commit.
    assert found["lost"] == 365
    assert found["ahead"] == 5000
    table = kafkalog.scan(str(path), "mirror_checkpoints", processes=1).to_table()
    assert dict(zip(*(table[each].to_pylist() for each in ("group_id", "source_offset")),
                    strict=True)) == found  # fmt: skip


def test_without_such_topics_the_command_says_which_names_it_knows(tmp_path: Path) -> None:
    made = LogDirectory(tmp_path / "logs")
    made.topic("orders").records([("a", "b")])
    made.topic("heartbeats").records([("a", "alive")])
    path = made.write()
    assert "not read: 1 record that MirrorMaker did not write" in run("mirror", path).stdout
    assert "_confluent-ksql-default__command_topic" in run("ksql", path).stdout
    assert "__consumer_offsets is not here" in run("streams", path).stdout


def test_streams_are_as_far_as_the_records_that_they_have_read(logs: Path) -> None:
    # F1254: the time of an instance is that of the last record of its topics.
    (last,) = (
        max(row["timestamp_ms"] for row in found if row["type"] == "found")
        for found in [rows("find", logs, "--topic", "orders", "--from-time", "2020-01-01")]
    )
    found = rows("streams", logs)
    assert [(row["topic"], row["committed_offset"], row["stream_time_ms"]) for row in found] == [
        *(("orders", 60, last), ("word-count-counts-repartition", 60, last))
    ]
    refused = run("streams", logs, "--group", "no-such")
    assert refused.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "--group: 'no-such' is not valid" in refused.output
    shown = run("streams", logs, "--group", "word-count").stdout
    assert "1 application of Kafka Streams with 2 partitions" in shown


def test_ksql_shows_the_statements_that_are_in_force(tmp_path: Path) -> None:
    # F1255
    made = LogDirectory(tmp_path / "logs")
    made.topic(TOPIC).records(
        [
            command("stream/`ORDERS`/create", "CREATE STREAM orders WITH (kafka_topic='o');"),
            command("stream/`OLD`/create", "CREATE STREAM old AS SELECT 1;", query="CSAS_OLD_1"),
            command("stream/OLD/drop", "DROP STREAM old;"),
            command(
                "table/`TOTALS`/create",
                "CREATE TABLE totals\n  AS SELECT id FROM orders WITH (ssl_password = 'hunter2');",
                query="CTAS_TOTALS_3",
                sources=["ORDERS"],
            ),
            ("x", "y"),
        ]
    )
    path = made.write()
    found = {row["name"]: row for row in rows("ksql", path)}
    assert list(found) == ["ORDERS", "TOTALS"]
    assert found["TOTALS"]["query_id"] == "CTAS_TOTALS_3"
    assert found["TOTALS"]["sources"] == ["ORDERS"]
    assert [row["state"] for row in rows("ksql", path, "--all")] == [
        *("in force", "dropped", None, "in force")
    ]
    shown = run("ksql", path).stdout
    assert "CREATE TABLE totals AS SELECT id FROM orders WITH (ssl_password = '***');" in shown
    assert f"2 statements in force, 1 with a query, of 4 in {TOPIC}" in shown
    assert "not read: 1 record that ksqlDB did not write" in shown
    (dumped,) = [
        row
        for row in rows("dump", path, "--deep", "--topic", TOPIC, "--offsets", "3:4")
        if row["type"] == "record"
    ]
    assert dumped["key"] == "table/`TOTALS`/create"
    assert dumped["payload"]["plan"]["queryPlan"]["queryId"] == "CTAS_TOTALS_3"
    assert "hunter2" not in json.dumps(dumped)
    shown = run("dump", path, "--deep", "--topic", TOPIC, "--show-secrets").stdout
    assert "hunter2" in shown


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        (("--topic", "a.checkpoints.internal", "--key", "word-count"), {0, 1}),
        (("--topic", "a.checkpoints.internal", "--value-path", "$.upstreamOffset=60"), {1}),
        (
            (
                *("--topic", "a.checkpoints.internal", "--key"),
                '{"group": "word-count", "topic": "a.orders", "partition": 0}',
            ),
            {0, 1},
        ),
        (("--topic", "heartbeats", "--key", "a", "--limit", 1), {4}),
        (("--topic", "__consumer_offsets", "--partition", 0, "--value-path", "$..protocol=stream"),
         {4, 5, 11, 12}),
        (("--topic", "__consumer_offsets", "--partition", 0, "--key", "orders"), {2, 6, 7, 9}),
    ],
)  # fmt: skip
def test_find_compares_decoded_keys_and_values(
    logs: Path, arguments: tuple[object, ...], offsets: set[int]
) -> None:
    # F1256
    found = [row for row in rows("find", logs, *arguments) if row["type"] == "found"]
    assert {row["offset"] for row in found} == offsets


def test_dump_shows_what_streams_commits(logs: Path) -> None:
    # F1254
    dumped = rows("dump", logs, "--deep", "--topic", "__consumer_offsets", "--partition", 0)
    commits = [
        row["payload"]["data"]
        for row in dumped
        if row["type"] == "record" and row["key"]["type"] == "1"
    ]
    # A sink of Connect commits without metadata.
    times = [each["streams"]["streamTime"] for each in commits if each["metadata"]]
    assert all(each["metadata"] or "streams" not in each for each in commits)
    assert times == sorted(times)
    assert {row["stream_time_ms"] for row in rows("streams", logs)} == {times[-1]}
