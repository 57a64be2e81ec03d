"""The job that writes the page about a cluster: its numbers, what it says, its exit codes. Rules:
docs/report.md F600, F602, F605, F645."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from jobs.report import main
from kafkalog.analysis.partitions.batch_totals import TimeGrid, batch_totals, summed, time_spread
from kafkalog.analysis.partitions.damage_map import damage_map, first_ranges
from kafkalog.analysis.partitions.key_skew import key_totals
from kafkalog.analysis.partitions.storage_totals import (
    longest_copies,
    topic_storage,
    unserved_storage,
)
from kafkalog.report.reading import ReportRequest, read_report
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.tables import spark_schema
from tests.support.golden.described_groups import printed_lags
from tests.support.golden.fixture_sets import CONSUMERS, consumed
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_BYTES, DAMAGED_FAULTS
from tests.support.repository import EXAMPLES, Unpack

AT_MS = 1_700_000_000_000


def test_the_page_about_a_damaged_disk(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(DAMAGED), "--output-dir", str(tmp_path / "new"), "--fail-on-findings"]
    assert main(arguments) == ExitCode.FINDINGS
    said = capsys.readouterr().out.splitlines()
    size = sum(path.stat().st_size for path in DAMAGED.glob("*/*.log"))
    assert said[1] == f"3 damaged ranges in e.w-0, 9.3 KiB of {size / 1024:.0f} KiB"
    assert round(DAMAGED_BYTES / 1024, 1) == 9.3
    assert said[-1] == f"report: {tmp_path / 'new' / 'report.html'}"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]
    text = (tmp_path / "new" / "report.html").read_text()
    told = re.findall(
        r"<b>(\w+)</b> ([0-9,]+) bytes at position ([0-9,]+) of <bdi[^>]*>(\S+)<", text
    )
    assert sorted(
        (file, int(position.replace(",", "")), int(length.replace(",", "")), kind)
        for kind, length, position, file in told
    ) == [fault[:4] for fault in DAMAGED_FAULTS]


@pytest.mark.deep
def test_arguments_that_cannot_be_meant_are_refused(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(DAMAGED), "--output-dir", str(DAMAGED / "e.w-0")]) == ExitCode.WRONG_ARGUMENTS
    assert "--output-dir" in capsys.readouterr().err
    clusters = [str(DAMAGED), str(EXAMPLES / "kafka-4.4")]
    assert main([*clusters, "--output-dir", str(tmp_path)]) == ExitCode.WRONG_ARGUMENTS
    assert "allowed: log directories of one cluster" in capsys.readouterr().err
    assert (
        main([str(tmp_path / "none"), "--output-dir", str(tmp_path)]) == ExitCode.UNREADABLE_INPUT
    )


@pytest.mark.deep
def test_keys_are_counted_by_topic_and_shown_only_when_asked(spark: SparkSession) -> None:
    rows: list[tuple[Any, ...]] = [("orders", b"hot", b"v")] * 7 + [("orders", b"\xff", None)] * 2
    rows += [("orders", None, b"v"), ("users", b"a", None), ("users", b"b", b"")]
    records = spark.createDataFrame(rows, "topic string, key binary, value binary")
    orders, others = key_totals(records, ["orders"], shows_keys=True).collect()
    assert orders.top_keys == [Row(item="hot", count=7), Row(item="0xFF", count=2)]
    assert (orders.records, orders.keyed, orders.tombstones, orders.distinct_keys) == (10, 9, 2, 2)
    assert (others.shown_topic, others.keyed, others.tombstones) == (None, 2, 1)
    hidden = key_totals(records, ["orders"]).collect()[0]
    assert [each["count"] for each in hidden.top_keys] == [7, 2]
    assert all(re.fullmatch(r"-?\d+", each["item"]) for each in hidden.top_keys)


@pytest.mark.deep
def test_batches_are_summed_by_time_and_size_and_none_is_lost(spark: SparkSession) -> None:
    def batch(
        topic: str, size: int, time_ms: int | None, raw: int | None = None, broker: int = 1
    ) -> Row:
        return Row(
            topic=topic,
            file=f"/{broker}/{topic}-0/00000000000000000000.log",
            size=size,
            uncompressed_size=raw,
            records=2,
            compression="zstd",
            max_timestamp_ms=time_ms,
            is_control=False,
        )

    rows = [
        *(
            batch("a", 1024, AT_MS, 4096),
            batch("a", 2047, AT_MS + 999),
            batch("b", 61, AT_MS + 1000),
        ),
        *(batch("a", 100, None), batch("a", 100, AT_MS - 1), batch("a", 100, AT_MS + 2000)),
        batch("a", 100, AT_MS + 2000, broker=2),
    ]
    frame = spark.createDataFrame(rows, _schema(list(rows[0].asDict())))
    # F637: of the partition that has two replicas, records are counted once.
    segments = [
        ("a", 0, "/1/a-0", "live", 9, 10),
        ("a", 0, "/1/a-0", "active", 12, 9),
        ("a", 0, "/2/a-0", "active", 12, 10),
        ("a", 0, "/2/a-0", "deleted", 3, 90),
        ("a", 0, "/3/a-0", "active", None, None),
        ("b", 0, "/1/b-0", "active", 5, 5),
    ]
    names = "topic string, partition int, directory string, status string"
    names += ", last_offset long, size long"
    longest = longest_copies(spark.createDataFrame(segments, names))
    totals = batch_totals(frame, longest, ["a"], TimeGrid(AT_MS, 1000, 2)).persist()
    by_time = summed(totals, "shown_topic", "stretch").collect()
    assert [
        (row.shown_topic, row.stretch, row.batches, row.bytes, row.records) for row in by_time
    ] == [(None, 1, 1, 61, 2), ("a", -1, 2, 200, 4), ("a", 0, 2, 3071, 4), ("a", 2, 2, 200, 2)]
    by_size = {row.size_from: row for row in summed(totals, "size_from").collect()}
    assert {size: row.batches for size, row in by_size.items()} == {32: 1, 64: 4, 1024: 2}
    assert (by_size[1024].measured_bytes, by_size[1024].uncompressed_bytes) == (1024, 4096)
    spread = time_spread(frame).collect()[0]
    assert (spread.least_ms, spread.greatest_ms) == (AT_MS - 1, AT_MS + 2000)


def _schema(names: list[str], table: str = "batches") -> str:
    schema = spark_schema(table)
    return ", ".join(f"{name} {schema[name].dataType.simpleString()}" for name in names)


def byte_range(file: str, position: int, length: int, **changes: object) -> Row:
    schema = spark_schema("byte_ranges")
    values = dict.fromkeys(schema.names) | {
        "cluster_id": None,
        "broker_id": 1,
        "input_path": "/logs",
        "topic": "a",
        "partition": 0,
        "file": file,
        "file_size": 500,
        "segment_base_offset": int(file.partition(".")[0]),
        "position": position,
        "length": length,
        "verdict": "valid",
    }
    return Row(**(values | changes))


@pytest.mark.deep
def test_a_range_marks_every_cell_of_its_partition_that_it_touches(spark: SparkSession) -> None:
    fault = {"verdict": "faulty", "kind": "checksum", "severity": "error", "detail": "d"}
    rows = [
        byte_range("0.log", 0, 500),
        *(byte_range("7.log", 0, 99), byte_range("7.log", 99, 2, **fault)),
        byte_range("7.log", 101, 398),
        byte_range("7.log", 499, 1, verdict="trailing", kind="truncated", severity="information"),
        byte_range("7.log", 500, 0, kind="segment_hole", severity="warning"),
    ]
    ranges = spark.createDataFrame(rows, spark_schema("byte_ranges"))
    (log,) = damage_map(ranges, 10).collect()
    assert (log.bytes, log.segments, log.ranges, log.errors) == (1000, 2, 3, 1)
    assert (log.faulty_bytes, log.trailing_bytes) == (2, 1)
    assert [(mark.cell, mark.kind) for mark in log.marks] == [
        (5, "checksum"),
        (6, "checksum"),
        (9, "segment_hole"),
        (9, "trailing"),
    ]
    first, second = first_ranges(ranges, 2).orderBy("number").collect()
    assert (first.kind, first.position, first.length, second.kind) == (
        "checksum",
        99,
        2,
        "segment_hole",
    )


@pytest.mark.deep
def test_segments_count_that_a_broker_serves_and_others_are_told_apart(spark: SparkSession) -> None:
    names = ("topic", "partition", "directory", "status", "size", "first_timestamp_ms")
    rows = [
        *(("a", 0, "a-0", status, 100, AT_MS) for status in ("live", "takes_over", "active")),
        *(("a", 0, "a-0", status, 7, AT_MS) for status in ("dropped", "replaced", "not_served")),
        ("a", 0, "a-0", "dropped", None, None),
    ]
    schema = _schema([*names, "max_timestamp_ms"], "segments")
    segments = spark.createDataFrame([(*row, AT_MS) for row in rows], schema)
    (topic,) = topic_storage(segments).collect()
    assert (topic.partitions, topic.copies, topic.segments, topic.bytes) == (1, 1, 3, 300)
    assert tuple(unserved_storage(segments).collect()[0]) == (3, 21)


@pytest.mark.deep
def test_its_numbers_are_those_of_kafkas_tools(spark: SparkSession, unpacked: Unpack) -> None:
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    golden = unpacked("kafka44.golden")
    report = read_report(spark, ReportRequest([str(log_dir)], AT_MS * 2, "PERMISSIVE"))
    sizes: dict[str, int] = {}
    removed = list(log_dir.glob("*/*.log.deleted"))
    for path in log_dir.glob("*/*.log"):
        if not path.parent.name.endswith("-delete"):
            topic = path.parent.name.rpartition("-")[0]
            sizes[topic] = sizes.get(topic, 0) + path.stat().st_size
    largest = sorted(sizes.items(), key=lambda each: (-each[1], each[0]))
    assert [(row.topic, row.bytes) for row in report.storage.topics] == largest[:12]
    assert report.storage.totals.bytes == sum(sizes.values())
    assert removed
    assert tuple(report.storage.unserved) == (
        len(removed),
        sum(path.stat().st_size for path in removed),
    )
    assert report.damage.totals.errors == 0
    assert report.groups is not None
    for row in report.keys.topics:
        if row.shown_topic is not None:
            received = consumed(golden, row.shown_topic, CONSUMERS["kafka44"])
            keyed = [each for each in received if each["key"] is not None]
            tombstones = [each for each in keyed if each["value"] is None]
            found = (row.records, row.keyed, row.tombstones)
            assert found == (len(received), len(keyed), len(tombstones)), row.shown_topic
            keys = Counter(each["key"] for each in keyed)
            most = [count for _, count in keys.most_common(10)]
            assert [each["count"] for each in row.top_keys] == most, row.shown_topic
    told: Counter[str] = Counter()
    for (group, _, _), lag in printed_lags(golden).items():
        told[group] += lag.lag or 0
    # Offsets without a record are lag for the tool and nothing to read.
    assert all(row.readable_records <= told[row.group_id] for row in report.groups.statuses)
    plain = "shop.g with spaces/and:ünicode"
    assert {row.group_id: row.readable_records for row in report.groups.statuses}[plain] == 1099
    assert told[plain] == 1099
    held = {(row.topic, row.partition) for row in report.transactions.holders}
    # kafka-transactions listed them as Ongoing.
    assert held == {("shop.tx", 1), ("shop.tx.out", 0), ("__consumer_offsets", 6)}
