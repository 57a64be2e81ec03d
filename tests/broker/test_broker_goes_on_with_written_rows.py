"""Rows of a DataFrame, written as segments, in a real broker: it loads them as they are, serves
them, and continues after them."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.columns.records.record_metadata import COMPRESSION_NAMES
from tests.support.broker.consumed_rows import ConsumedRow
from tests.support.broker.dump_report import DumpReport, parse_dump
from tests.support.broker.java_tools import run_dump
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import (
    TOPIC,
    Cluster,
    complaints,
    lines_about,
    prepared_cluster,
)

pytestmark = [pytest.mark.spark, pytest.mark.deep]

_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_MS = 1_600_000_000_000
_START = 40


def rows_of(partition: int) -> list[tuple[Any, ...]]:
    """Nulls and empty fields, headers, missing and falling times, the broker's time, holes between
    offsets, a record larger than a batch."""
    rows: list[tuple[Any, ...]] = []
    for number in range(600):
        offset = _START + number + (number // 100) * 1000
        value = b"v" * (700_000 if number == 301 else number * 7 % 900)
        time_ms = None if number % 50 == 3 else _TIME_MS + (number * 977) % 60_000
        kind = 1 if 200 <= number < 210 else 0
        headers = [("trace", b"\x00" * (number % 3)), ("größe", None)] if number % 4 == 0 else None
        rows.append(
            (
                None if number % 7 == 0 else b"key-%d" % (number % 20),
                None if number % 11 == 0 else value,
                TOPIC,
                partition,
                offset,
                None if time_ms is None else _EPOCH + timedelta(milliseconds=time_ms),
                kind,
                headers,
            )
        )
    return rows


def as_consumed(rows: Sequence[tuple[Any, ...]]) -> list[ConsumedRow]:
    """What a consumer should get of the rows."""
    return [
        ConsumedRow(
            partition,
            offset,
            "LogAppendTime" if kind else "CreateTime",
            -1 if time is None else (time - _EPOCH) // timedelta(milliseconds=1),
            key,
            value,
            tuple(headers or ()),
        )
        for key, value, _, partition, offset, time, kind, headers in rows
    ]


@dataclass(frozen=True, slots=True)
class Restored:
    """What was written, what the tool says of it, and what a broker makes of it."""

    rows: list[ConsumedRow]
    ends: dict[int, int]
    dumped: DumpReport
    log_dir: Path
    server: KafkaServer


def write_partitions(spark: SparkSession, log_dir: Path, topic_id: str) -> list[ConsumedRow]:
    """A partition for each codec, a write for each."""
    expected: list[ConsumedRow] = []
    for partition, compression in enumerate(COMPRESSION_NAMES):
        rows = rows_of(partition)
        expected += as_consumed(rows)
        kafkalog.write(
            # In another order than that of the log.
            spark.createDataFrame(rows[::-1], _SCHEMA).repartition(3),
            str(log_dir),
            compression=compression,
            segment_bytes=750_000,
            batch_size=16_384,
            topic_ids={TOPIC: topic_id},
        )
    return expected


def moved_into(cluster: Cluster, log_dir: Path) -> None:
    """As docs/writing.md says: the stopped broker's empty partitions give way to the written."""
    for partition in range(len(COMPRESSION_NAMES)):
        shutil.rmtree(cluster.directory(partition))
        shutil.copytree(log_dir / f"{TOPIC}-{partition}", cluster.directory(partition))


@pytest.fixture(scope="module", params=["moved", "whole"])
def restored(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    scratch = tmp_path_factory.mktemp("restored")
    cluster = prepared_cluster(scratch / "kafka", len(COMPRESSION_NAMES))
    written = scratch / "written"
    rows = write_partitions(spark, written, cluster.topic_id())
    files = [path for path in sorted(written.rglob("*")) if path.suffix.endswith(("log", "index"))]
    dumped = parse_dump(run_dump(files))
    ends = dict.fromkeys(range(len(COMPRESSION_NAMES)), rows[-1].offset + 1)
    if request.param == "moved":
        moved_into(cluster, written)
        server = KafkaServer(cluster.work_dir)
    else:
        served = shutil.copytree(written, scratch / "served")
        shutil.copy(cluster.log_dir / "meta.properties", served)
        server = KafkaServer(cluster.work_dir, served)
    with server:
        yield Restored(rows, ends, dumped, written, server)


def test_kafkas_tool_finds_nothing_wrong_but_the_holes(restored: Restored) -> None:
    # F562 to F564: with --deep-iteration, and indexes checked against the log.
    assert restored.dumped.findings == []
    logs = {path: file for path, file in restored.dumped.files.items() if path.suffix == ".log"}
    assert {b["isvalid"] for file in logs.values() for b in file.batches} == {"true"}
    for partition, compression in enumerate(COMPRESSION_NAMES):
        name = f"{TOPIC}-{partition}"
        of_log = [file for path, file in sorted(logs.items()) if path.parent.name == name]
        assert {b["compresscodec"] for file in of_log for b in file.batches} == {compression}
        assert len(of_log) > 1 or compression != "none"
        offsets = [record.offset for file in of_log for record in file.records]
        assert offsets == [row.offset for row in restored.rows if row.partition == partition]
    indexes = [f for path, f in restored.dumped.files.items() if path.suffix == ".index"]
    assert any(len(file.index_entries) > 5 for file in indexes)


def test_a_broker_takes_them_as_they_are(restored: Restored) -> None:
    # F567, F568.
    assert restored.server.offsets(TOPIC, "earliest") == dict.fromkeys(restored.ends, _START)
    said = restored.server.log_text()
    for partition in restored.ends:
        assert lines_about(said, partition)
        assert complaints(lines_about(said, partition)) == []


def test_a_consumer_gets_the_rows_and_the_broker_continues_after_them(restored: Restored) -> None:
    # F560, F561, F567.
    server = restored.server
    assert server.end_offsets(TOPIC) == restored.ends
    server.produce_lines(TOPIC, b"a:1\tkey\tvalue\n" * 20, "lz4")
    received = server.consume(TOPIC, len(restored.rows) + 20)
    received.sort(key=lambda row: (row.partition, row.offset))
    old = [row for row in received if row.offset < restored.ends[row.partition]]
    assert old == restored.rows
    added = [row for row in received if row.offset >= restored.ends[row.partition]]
    assert {(row.key, row.value) for row in added} == {(b"key", b"value")}
    assert all(
        after.offset == before.offset + 1
        for before, after in pairwise(added)
        if before.partition == after.partition
    )
    assert min(row.offset for row in added) == restored.ends[0]
