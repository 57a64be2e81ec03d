"""Every topic of every fixture through Spark, against what a real consumer received."""

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.golden.fixture_sets import CONSUMERS, consumed, topics
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import FIRST_MS, LAST_MS, kafkalog_read

# The set with two log directories is read as a glob, as a user would.
LOG_DIRS = {"kafka39zk": "log-dirs/*"}
# Of today and of old: the other sets are read by the kernels alone in `make test`.
SHORT = ("kafka44", "kafka08")


@pytest.mark.parametrize(
    "name",
    [name if name in SHORT else pytest.param(name, marks=pytest.mark.deep) for name in CONSUMERS],
)
def test_all_rows_are_those_a_read_uncommitted_consumer_received(
    name: str, spark: SparkSession, unpacked: Unpack
) -> None:
    # F1 to F4, F10 to F31, F40 to F55 and F95 on real brokers' files; T8, T9, T20 to T27, T31.
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    place = logs / LOG_DIRS.get(name, "log-dirs")
    read = _rows_by_topic(kafkalog_read(spark, place, includeHeaders=True, subscribe="*"))
    expected = {
        topic: _as_spark_has_them(topic, consumed(golden, topic, CONSUMERS[name]))
        for topic in topics(golden, CONSUMERS[name])
    }
    if name == "tiered43":
        expected = {topic: _local(rows, read.get(topic, [])) for topic, rows in expected.items()}
    # No consumer can subscribe to the controllers' own log.
    read.pop("__cluster_metadata", None)
    assert read.keys() == {topic for topic, rows in expected.items() if rows}
    for topic, rows in read.items():
        assert rows == expected[topic], topic


def _rows_by_topic(frame: DataFrame) -> dict[str, list[dict[str, Any]]]:
    table = frame.toArrow()
    # As numbers: Python's datetime ends with the year 9999, Spark's timestamp does not.
    times = table["timestamp"].cast(pa.int64())
    table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", times)
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in table.to_pylist():
        rows[row["topic"]].append(row)
    for of_topic in rows.values():
        of_topic.sort(key=lambda row: (row["partition"], row["offset"]))
    return dict(rows)


def _as_spark_has_them(topic: str, received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "key": row["key"],
            "value": row["value"],
            "topic": topic,
            "partition": row["partition"],
            "offset": row["offset"],
            "timestamp": _microseconds(row["timestamp"]),
            "timestampType": row["timestamp_type"],
            "headers": row["headers"],
        }
        for row in received
    ]


def _microseconds(timestamp_ms: int) -> int | None:
    is_held = timestamp_ms != -1 and FIRST_MS <= timestamp_ms <= LAST_MS
    return timestamp_ms * 1000 if is_held else None


def _local(rows: list[dict[str, Any]], read: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the rows whose segments are in the remote store."""
    first: dict[int, int] = {}
    for row in read:
        first.setdefault(row["partition"], row["offset"])
    return [row for row in rows if row["offset"] >= first[row["partition"]]]
