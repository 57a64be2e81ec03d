"""The configs of Kafka Connect in a dump: their secrets are hidden, whatever the topic's name.

Rule: F957.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.testing import LogDirectory

# As a worker of Kafka 3.9 writes them, with its JsonConverter.
SESSION_KEY = b'{"key":"8vKFNlVUmTDVK3fo1tJlvtKGLhbnaYVRJtQ2fNTYPJA=","algorithm":"HmacSHA256","creation-timestamp":1700000000000}'  # noqa: E501
CONNECTOR = b'{"properties":{"connector.class":"io.debezium.connector.postgresql.PostgresConnector","database.password":"s3cr3t","key.converter":"org.apache.kafka.connect.json.JsonConverter","connection.url":"jdbc:mysql://root:hunter2@db/shop","tasks.max":"1","topics":null}}'
SECRETS = ("8vKFNlVU", "s3cr3t", "hunter2")
RECORDS = [
    (b"session-key", SESSION_KEY),
    (b"connector-shop", CONNECTOR),
    (b"task-shop-0", CONNECTOR),
    (b"connector-old", b'{"schema":{"type":"struct"},"payload":' + CONNECTOR + b"}"),
    (b"commit-shop", b'{"tasks":1}'),
    (b"connector-gone", None),
]


def dumped(folder: Path, records: list[tuple[bytes | None, bytes | None]], *options: str) -> str:
    log_dir = LogDirectory(folder / "kafka-logs")
    log_dir.topic("docker-configs").records(records)
    arguments = ["dump", "--processes", "1", "--deep", log_dir.write(), *options]
    result = CliRunner().invoke(kafkalog, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("output_format", ["text", "json", "csv"])
def test_secrets_are_hidden_and_the_rest_is_shown(output_format: str, tmp_path: Path) -> None:
    text = dumped(tmp_path, [*RECORDS], "--format", output_format)
    assert not [secret for secret in SECRETS if secret in text]
    for shown in ("HmacSHA256", "PostgresConnector", "JsonConverter", "tasks.max", "task-shop-0"):
        assert shown in text


def test_a_hidden_value_is_json_with_the_same_fields(tmp_path: Path) -> None:
    text = dumped(tmp_path, [*RECORDS], "--format", "json")
    rows = [json.loads(line) for line in text.splitlines()]
    found = {row["key"]: row["payload"] for row in rows if row["type"] == "record"}
    expected = json.loads(CONNECTOR)
    expected["properties"] |= {"database.password": "***", "connection.url": "***"}
    assert json.loads(found["connector-shop"]) == json.loads(found["task-shop-0"]) == expected
    assert json.loads(found["session-key"]) == {**json.loads(SESSION_KEY), "key": "***"}
    assert found["connector-gone"] is None


@pytest.mark.parametrize("option", ["--show-secrets", "--raw"])
def test_secrets_are_shown_on_request(option: str, tmp_path: Path) -> None:
    text = dumped(tmp_path, [*RECORDS], option)
    assert all(secret in text for secret in SECRETS)


def test_other_records_stay_as_they_are(tmp_path: Path) -> None:
    values = [
        b"",
        b"{",
        b"[1]",
        b"\xff{",
        b'{"properties": 1}',
        b'{"password":"x"}',
        b'{"properties":{"password":"x"},"more":1}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ]
    records = [(key, value) for value in values for key in (b"task-1", b"session-key", None)]
    hidden, shown = (dumped(tmp_path / name, [*records], *more) for name, more in TWO_WAYS)
    assert hidden.replace("hidden", "shown") == shown


TWO_WAYS: list[tuple[str, tuple[str, ...]]] = [("hidden", ()), ("shown", ("--show-secrets",))]
