"""What a commit of Delta says of a file: the form is that of Delta's protocol, and the values are
those that Delta's own writer had for the same rows."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kafkalog.lake.delta.delta_actions import (
    add_action,
    file_in_log,
    metadata_action,
    remove_action,
    transaction_action,
)
from kafkalog.lake.written_file import WrittenFile

_NOON_US = int(datetime(2020, 1, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000
FILE = WrittenFile(
    path="0b1c.parquet",
    size=4105,
    rows=2,
    partition_values={},
    least={"topic": "orders", "offset": 2, "timestamp": _NOON_US},
    greatest={"topic": "orders", "offset": 7, "timestamp": _NOON_US + 1000},
    null_counts={"topic": 0, "offset": 0, "timestamp": 0, "cluster_id": 2},
    rows_of={("orders", 0): 2},
)


def added(file: WrittenFile) -> tuple[dict[str, Any], dict[str, Any]]:
    action = json.loads(add_action(file, 1_600_000_000_000))["add"]
    return action, json.loads(action["stats"])


def test_a_file_is_added_with_its_statistics() -> None:
    action, statistics = added(FILE)
    assert action == {
        "path": "0b1c.parquet",
        "partitionValues": {},
        "size": 4105,
        "modificationTime": 1_600_000_000_000,
        "dataChange": True,
        "stats": action["stats"],
    }
    assert statistics == {
        "numRecords": 2,
        "minValues": {"topic": "orders", "offset": 2, "timestamp": "2020-01-01T12:00:00.000Z"},
        "maxValues": {"topic": "orders", "offset": 7, "timestamp": "2020-01-01T12:00:00.001Z"},
        "nullCount": {"topic": 0, "offset": 0, "timestamp": 0, "cluster_id": 2},
    }


def test_paths_are_references_of_uris_and_values_of_partitions_texts() -> None:
    path = "topic=orders/hour=2026-11-23-14/a b%.parquet"
    values = {"topic": "orders", "hour": "2026-11-23-14", "day": None}
    action, _ = added(replace(FILE, path=path, partition_values=values))
    assert action["path"] == "topic=orders/hour=2026-11-23-14/a%20b%25.parquet"
    assert action["partitionValues"] == values


def test_a_file_is_removed_under_the_path_that_it_was_added_with() -> None:
    action, _ = added(replace(FILE, path="a b%.parquet"))
    file = file_in_log(action["path"], action["size"], action["stats"])
    assert (file.path, file.rows, file.greatest) == (
        "a b%.parquet",
        2,
        {"topic": "orders", "offset": 7},
    )
    removed = json.loads(remove_action(file, 7))["remove"]
    assert removed["path"] == action["path"]
    assert (removed["size"], removed["deletionTimestamp"]) == (4105, 7)
    assert removed["dataChange"]


def test_bounds_in_milliseconds_enclose_times_in_microseconds() -> None:
    file = replace(FILE, least={"timestamp": -1}, greatest={"timestamp": 123_456_001})
    _, statistics = added(file)
    assert statistics["minValues"] == {"timestamp": "1969-12-31T23:59:59.999Z"}
    assert statistics["maxValues"] == {"timestamp": "1970-01-01T00:02:03.457Z"}


@pytest.mark.parametrize("year", [-400, 12_000])
def test_a_time_whose_year_has_no_four_digits_is_no_bound(year: int) -> None:
    time_us = (year - 1970) * 31_556_952_000_000
    file = replace(FILE, least={"timestamp": min(0, time_us)}, greatest={"timestamp": time_us})
    _, statistics = added(file)
    assert statistics["maxValues"] == {}


def test_a_transaction_counts_the_commits_of_a_writer() -> None:
    action = json.loads(transaction_action("writer", 3))
    assert action == {"txn": {"appId": "writer", "version": 3}}


def test_a_new_table_has_a_schema_and_no_partitions() -> None:
    first, second = (
        json.loads(metadata_action('{"type":"struct"}', 1_600_000_000_000))["metaData"]
        for _ in range(2)
    )
    # Two tables never have the same id.
    assert first.pop("id") != second.pop("id")
    assert first == {
        "format": {"provider": "parquet", "options": {}},
        "schemaString": '{"type":"struct"}',
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1_600_000_000_000,
    }
