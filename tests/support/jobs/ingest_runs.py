"""What the tests of the ingest share: running it, its table, and what consumers received."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.ingest_topics import main
from tests.support.golden.fixture_sets import consumed, topics

COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value",
           "headers", "leader_epoch")  # fmt: skip


def run_ingest(*log_dirs: Path, output: Path, arguments: str = "") -> int:
    """The job in this process, in the tests' session."""
    given = ["--output-dir", str(output), *arguments.split()]
    given += [] if "--show" in given else ["--show", "0"]
    return main([*map(str, log_dirs), *given])


def ingested(spark: SparkSession, output: Path) -> list[dict[str, Any]]:
    """The table's rows, sorted."""
    frame = spark.read.format("delta").load(str(output / "ingested_records")).select(*COLUMNS)
    return sorted(frame.toArrow().to_pylist(), key=_place)


def received(golden: Path, consumer: str = "read_committed") -> list[dict[str, Any]]:
    """What a real consumer received of all ordinary topics, in the same form."""
    rows = [
        {
            "topic": topic,
            "partition": row["partition"],
            "offset": row["offset"],
            "timestamp_ms": None if row["timestamp"] == -1 else row["timestamp"],
            "timestamp_type": row["timestamp_type"],
            "key": row["key"],
            "value": row["value"],
            "headers": row["headers"],
            "leader_epoch": row["leader_epoch"],
        }
        for topic in topics(golden, consumer)
        if not topic.startswith("__")
        for row in consumed(golden, topic, consumer)
    ]
    return sorted(rows, key=_place)


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["offset"]


def manifest(spark: SparkSession, output: Path) -> list[dict[str, Any]]:
    """The manifest's rows, by partition and run."""
    frame = spark.read.format("delta").load(str(output / "ingest_manifest"))
    rows = frame.orderBy("topic", "partition", "ingest_run").collect()
    return [row.asDict() for row in rows]


def printed_ends(golden: Path) -> dict[str, int]:
    """The last stable offsets of ordinary partitions, as the broker told the admin client."""
    told = json.loads((golden / "admin.json").read_text())["offsets"]["latest_read_committed"]
    return {name: each["offset"] for name, each in told.items() if not name.startswith("__")}


def options_of(starts: dict[str, int] | None, ends: dict[str, int]) -> str:
    """The options that read from the starts to the ends, by names such as orders-0."""
    return " ".join(
        f"--offsets {name}={starts[name] if starts else ''}:{end}" for name, end in ends.items()
    )


def by_topic(offsets: dict[str, int]) -> str:
    """Offsets by names such as orders-0, as Spark's Kafka source takes them."""
    found: dict[str, dict[str, int]] = {}
    for name, offset in offsets.items():
        topic, _, partition = name.rpartition("-")
        found.setdefault(topic, {})[partition] = offset
    return json.dumps(found, separators=(",", ":"))
