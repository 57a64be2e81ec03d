"""Which records are rows: not control records, not those below the log start, not every topic."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.logs.samples import batch
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import kafkalog_read, offsets_read, write_log


def test_control_records_are_not_rows(spark: SparkSession, unpacked: Unpack) -> None:
    # F30, T19. Kafka's own latest offset counts the markers, which no consumer receives.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    latest = json.loads((golden / "admin.json").read_text())["offsets"]["latest"]
    frame = kafkalog_read(spark, logs / "log-dirs", subscribe="shop.tx")
    lines = (golden / "consumer" / "shop.tx.read_uncommitted.jsonl").read_text().splitlines()
    received = sorted(
        (row["partition"], row["offset"]) for row in map(json.loads, lines) if "offset" in row
    )
    read = offsets_read(frame)
    assert sorted((key[1], offset) for key in read for offset in read[key]) == received
    assert len(received) < latest["shop.tx-0"]["offset"] + latest["shop.tx-1"]["offset"]


@pytest.mark.deep
@pytest.mark.parametrize("name", ["shop.del-records", "shop.del-records-mid"])
def test_records_below_the_log_start_are_not_rows(
    name: str, spark: SparkSession, unpacked: Unpack
) -> None:
    # F95, T31: one log start lies between batches, the other inside one.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    earliest = json.loads((golden / "admin.json").read_text())["offsets"]["earliest"]
    read = offsets_read(kafkalog_read(spark, logs / "log-dirs", subscribe=name))
    assert read[name, 0][0] == earliest[f"{name}-0"]["offset"]
    first_segment = min((logs / "log-dirs" / f"{name}-0").glob("*.log")).stem
    assert int(first_segment) < read[name, 0][0]


@pytest.mark.deep
def test_files_directories_and_globs_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    # F90: the partition follows the last dash, topics may contain dashes and dots.
    first = write_log(tmp_path / "disk1", "multi-3.x-0", {0: [batch(0)], 3: [batch(3)]})
    write_log(tmp_path / "disk2", "multi-3.x-1", {0: [batch(0)]})
    zero, one = ("multi-3.x", 0), ("multi-3.x", 1)
    both = {zero: [0, 1, 2, 3, 4, 5], one: [0, 1, 2]}
    assert offsets_read(kafkalog_read(spark, tmp_path / "disk*")) == both
    assert offsets_read(kafkalog_read(spark, tmp_path / "disk1", tmp_path / "disk2")) == both
    assert offsets_read(kafkalog_read(spark, first)) == {zero: [0, 1, 2, 3, 4, 5]}
    last = first / "00000000000000000003.log"
    assert offsets_read(kafkalog_read(spark, last)) == {zero: [3, 4, 5]}
    one_path = spark.read.format("kafkalog").load(str(tmp_path / "disk2"))
    assert offsets_read(one_path) == {one: [0, 1, 2]}


def test_a_log_dir_without_records_is_an_empty_frame(spark: SparkSession, tmp_path: Path) -> None:
    # Without any file to read Spark still asks for one partition.
    (tmp_path / "orders-0").mkdir()
    frame = kafkalog_read(spark, tmp_path)
    assert (frame.count(), frame.columns[:2]) == (0, ["key", "value"])
