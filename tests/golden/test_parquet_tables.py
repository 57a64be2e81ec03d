"""Every topic of every fixture in a directory of Parquet files, against what a consumer received.

Rules: F650 and F651.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog.lake.parquet.parquet_table import ParquetTable
from tests.support.golden.fixture_sets import CONSUMERS, consumed, topics
from tests.support.lake.exports import exported
from tests.support.lake.parquet_tables import listed

COLUMNS = (
    *("partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"),
    "leader_epoch",
)


@pytest.mark.parametrize("name", CONSUMERS)
def test_the_table_has_the_records_that_a_consumer_received(
    name: str, unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    path = tmp_path / "ingested_records"
    dirs = sorted({each.parents[1] for each in logs.rglob("*.log")})
    given: dict[str, Any] = {
        "isolationLevel": "read_uncommitted",
        "stopAt": "logEnd",
        "subscribe": "*",
    }
    exported(ParquetTable(str(path)), dirs, **given)
    table = listed(path).drop_columns(["timestamp"]).rename_columns({"timestamp_ms": "timestamp"})
    rows = table.select(["topic", *COLUMNS]).to_pylist()
    for topic in topics(golden, CONSUMERS[name]):
        found = [{each: row[each] for each in COLUMNS} for row in rows if row["topic"] == topic]
        found.sort(key=lambda row: (row["partition"], row["offset"]))
        for row in found:
            row["timestamp"] = -1 if row["timestamp"] is None else row["timestamp"]
        expected = consumed(golden, topic, CONSUMERS[name])
        if name == "tiered43":  # older segments are in the remote store
            first: dict[int, int] = {}
            for row in found:
                first.setdefault(row["partition"], row["offset"])
            expected = [row for row in expected if row["offset"] >= first[row["partition"]]]
        assert found == expected, topic
