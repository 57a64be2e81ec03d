"""`kafkalog keys`: what the keys of topics come to. Rules: F1245 to F1247."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.schemas import table_fields
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.golden.fixture_sets import consumed
from tests.support.repository import Unpack


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["keys", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--format", "json")[1].splitlines()]


@pytest.fixture
def log_dir(tmp_path: Path) -> str:
    made = LogDirectory(tmp_path / "logs")
    orders = made.topic("orders", partitions=2)
    orders.records([ProducerRecord("a", "1"), ProducerRecord("b", None)], partition=0)
    orders.records([ProducerRecord("c", "x" * 997), ProducerRecord(None, "y")], partition=1)
    made.topic("plain").records([("k", "v")])
    return str(made.write())


def test_a_topic_is_the_sum_of_its_partitions(log_dir: str) -> None:
    (orders,) = [row for row in rows(log_dir) if row["topic"] == "orders"]
    assert (orders["partitions"], orders["records"], orders["distinct_keys"]) == (2, 4, 3)
    assert (orders["keyless_records"], orders["tombstones"]) == (1, 1)
    assert orders["bytes"] == 2 + 1 + 998 + 1
    assert orders["heaviest_key_share"] == pytest.approx(998 / 1002, abs=0.0001)


def test_topics_without_keys_are_named(tmp_path: Path) -> None:
    made = LogDirectory(tmp_path / "logs")
    made.topic("keyed").records([("k", "v")])
    made.topic("plain").records([ProducerRecord(None, "y"), ProducerRecord(None, "z")])
    _, out, _ = run(made.write(), "--by", "key")
    assert out.splitlines()[-2:] == ["3 records of 2 topics read", "no record has a key in plain"]


def test_partitions_have_the_columns_of_the_table(log_dir: str) -> None:
    found = rows(log_dir, "--by", "partition", "--topic", "orders")
    assert list(found[0]) == [field["name"] for field in table_fields("key_usage")]
    largest = {row["partition"]: row["largest_record_offset"] for row in found}
    assert largest == {0: 0, 1: 0}


def test_the_key_with_most_bytes_comes_first(log_dir: str) -> None:
    # F1246
    found = rows(log_dir, "--by", "key", "--topic", "orders")
    assert [(row["key"], row["partition"], row["bytes"]) for row in found] == [
        *(("c", 1, 998), ("a", 0, 2), ("b", 0, 1))
    ]


def test_a_key_of_several_partitions_is_their_sum_and_names_none(tmp_path: Path) -> None:
    made = LogDirectory(tmp_path / "logs")
    orders = made.topic("orders", partitions=2)
    orders.records([ProducerRecord("a", "1"), ProducerRecord("b", "22")], partition=0)
    orders.records([ProducerRecord("a", "333")], partition=1)
    found = rows(str(made.write()), "--by", "key", "--topic", "orders")
    assert [(row["key"], row["partition"], row["records"], row["bytes"]) for row in found] == [
        *(("a", None, 2, 6), ("b", 0, 1, 3))
    ]


def test_retries_without_idempotence_are_named(tmp_path: Path) -> None:
    # F1247
    made = LogDirectory(tmp_path / "logs")
    topic = made.topic("orders")
    batch = [ProducerRecord("a", "1", timestamp_ms=5), ProducerRecord("b", "2", timestamp_ms=6)]
    topic.records(batch)
    topic.records(batch)
    code, out, _ = run(made.write())
    assert code == ExitCode.DONE
    assert "orders: 2 records with the key, value and time of one shortly before" in out


def test_topics_of_brokers_are_read_if_they_are_named(unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    assert not [row for row in rows(logs) if row["topic"].startswith("__")]
    found = rows(logs, "--topic", "__consumer_offsets")
    assert sum(row["records"] for row in found) > 0


def test_repeats_and_keys_are_those_among_what_a_consumer_received(unpacked: Unpack) -> None:
    # F1245, F1247
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    received = sorted(
        consumed(golden, "shop.idem", "read_uncommitted"), key=lambda row: row["offset"]
    )
    kept = [(row["key"], row["value"]) for row in received if row["value"] is not None]
    repeated = sum(each in kept[max(0, number - 1000) : number] for number, each in enumerate(kept))
    (row,) = rows(logs, "--topic", "shop.idem")
    assert row["repeated_records"] == repeated > 0
    keys = [each["key"] for each in received if each["key"] is not None]
    assert (row["distinct_keys"], row["records"]) == (len(set(keys)), len(received))
    assert row["tombstones"] == len(
        [each for each in received if each["value"] is None and each["key"] is not None]
    )
