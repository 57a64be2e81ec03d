"""What the Spark tests share: log directories on disk, expected rows, and what Spark said."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from tests.support.golden.fixture_sets import consumed, topics
from tests.support.logs.log_dirs import add_meta_properties, add_partition
from tests.support.logs.samples import batch

# What Spark can hold: microseconds in 64 bits.
FIRST_MS, LAST_MS = -(2**63 // 1000), (2**63 - 1) // 1000

# Topic and partition to the offsets [start, end) that are requested.
Offsets = Mapping[tuple[str, int], tuple[int, int]]


def write_log(log_dir: Path, name: str, segments: Mapping[int, Sequence[bytes]]) -> Path:
    """A partition's directory with segments and indexes as a broker would have written them."""
    partition = add_partition(log_dir, name)
    for base_offset, batches in segments.items():
        for file, content in write_segment(batches, base_offset).by_name.items():
            (partition / file).write_bytes(content)
    return partition


def write_orders_and_users(log_dir: Path) -> Path:
    """A log directory with orders-0 in two segments, and users-0 in one; the timestamp of each
    record is 1000 + offset."""
    add_meta_properties(log_dir)
    write_log(log_dir, "orders-0", {0: [batch(0)], 3: [batch(3)]})
    write_log(log_dir, "users-0", {0: [batch(0)]})
    return log_dir


def write_records(
    log_dir: Path, name: str, pairs: Sequence[tuple[bytes | None, bytes | None]]
) -> Path:
    """A partition's directory with one batch: keys and values from offset 0 on."""
    records = [Record(offset, 1000, 0, key, value) for offset, (key, value) in enumerate(pairs)]
    return write_log(log_dir, name, {0: [write_batch(records, BatchFields(leader_epoch=0))]})


def variants_as_partitions(variants: Path, log_dir: Path) -> Path:
    """A log directory in which each hand-damaged copy is a topic of its own, called as the damage.

    Offsets and bytes know nothing of their topic; so all copies can be read at once.
    """
    log_dir.mkdir(parents=True)
    for variant in sorted(variants.iterdir()):
        for number, partition in enumerate(sorted((variant / "log-dirs").glob("e.?-0"))):
            (log_dir / f"{variant.name}-{number}").symlink_to(partition)
    return log_dir


def kafkalog_read(spark: SparkSession, *paths: Path | str, **options: Any) -> DataFrame:
    """`spark.read.format("kafkalog")`; for names with a dot give `**{"kafka.check.crcs": ...}`."""
    return spark.read.format("kafkalog").options(**options).load([str(path) for path in paths])


def offsets_read(frame: DataFrame) -> dict[tuple[str, int], list[int]]:
    """The offsets of each partition, sorted."""
    read: dict[tuple[str, int], list[int]] = {}
    for row in frame.select("topic", "partition", "offset").toArrow().to_pylist():
        read.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
    return {key: sorted(offsets) for key, offsets in read.items()}


def consumed_offsets(golden: Path, topics_of: Iterable[str]) -> dict[tuple[str, int], list[int]]:
    """The offsets that a read_uncommitted consumer received of the topics, sorted."""
    received: dict[tuple[str, int], list[int]] = {}
    for topic in topics_of:
        for row in consumed(golden, topic, "read_uncommitted"):
            received.setdefault((topic, row["partition"]), []).append(row["offset"])
    return {key: sorted(offsets) for key, offsets in received.items()}


def ordinary_topics(golden: Path) -> list[str]:
    """The topics with a consumer's output that are not Kafka's own."""
    return [topic for topic in topics(golden, "read_uncommitted") if not topic.startswith("__")]


def within(
    read: Mapping[tuple[str, int], list[int]], asked: Offsets
) -> dict[tuple[str, int], list[int]]:
    """What lies in the requested offsets of a full read; partitions without any are left out."""
    kept = {
        key: [offset for offset in offsets if asked[key][0] <= offset < asked[key][1]]
        for key, offsets in read.items()
        if key in asked
    }
    return {key: offsets for key, offsets in kept.items() if offsets}


def said_by_error(action: Callable[[], object]) -> str:
    """What Spark tells a user when `action` fails."""
    with pytest.raises(PySparkException) as caught:
        action()
    return str(caught.value)


def logged_lines(spark: SparkSession, *parts: str) -> list[str]:
    """The warnings that planning and tasks have logged so far and that contain all the parts."""
    logs = spark.tvf.python_worker_logs().where(F.col("level") == "WARNING").select("msg")
    lines = [row["msg"] for row in logs.collect()]
    return [line for line in lines if all(part in line for part in parts)]
