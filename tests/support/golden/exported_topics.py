"""Every topic of a fixture in a table of records, against what a real consumer received."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kafkalog.lake.target import Target
from tests.support.golden.fixture_sets import CONSUMERS, consumed, topics
from tests.support.lake.exports import exported
from tests.support.repository import Unpack

# The columns of a table with what a consumer's rows have; topic is apart.
COLUMNS = (
    *("partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers"),
    "leader_epoch",
)


def check_exported_topics(
    name: str, unpacked: Unpack, target: Target, read: Callable[[], pa.Table]
) -> None:
    """Export all topics of a fixture of `CONSUMERS`, and compare with what was received; `read`
    reads the table by another's code."""
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    dirs = sorted({each.parents[1] for each in logs.rglob("*.log")})
    given: dict[str, Any] = {
        "isolationLevel": "read_uncommitted",
        "stopAt": "logEnd",
        "subscribe": "*",
    }
    exported(target, dirs, **given)
    rows = read().select(["topic", *COLUMNS]).to_pylist()
    names = topics(golden, CONSUMERS[name])
    assert names
    for topic in names:
        found = [_as_received(row) for row in rows if row["topic"] == topic]
        found.sort(key=_place)
        expected = consumed(golden, topic, CONSUMERS[name])
        if name == "tiered43":  # older segments are in the remote store
            first: dict[int, int] = {}
            for row in found:
                first.setdefault(row["partition"], row["offset"])
            expected = [row for row in expected if row["offset"] >= first[row["partition"]]]
        assert found == sorted(expected, key=_place), topic


def _as_received(row: dict[str, Any]) -> dict[str, Any]:
    found = {each: row[each] for each in COLUMNS}
    timestamp = found.pop("timestamp_ms")
    return {**found, "timestamp": -1 if timestamp is None else timestamp}


def _place(row: dict[str, Any]) -> tuple[int, int]:
    return row["partition"], row["offset"]
