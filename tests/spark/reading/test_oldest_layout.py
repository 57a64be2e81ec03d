"""Kafka 0.7's files through Spark: view `records` reads them, other views say why not."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.logs.oldest_logs import ONE, PACKED, THREE, TWO, write_files
from tests.support.logs.samples import batch
from tests.support.spark.kafka_logs import kafkalog_read, offsets_read, said_by_error, write_log


def test_messages_of_the_oldest_layout_are_records(spark: SparkSession, tmp_path: Path) -> None:
    # F154 to F157: beside a log of today's layout.
    write_files(tmp_path / "my_topic_0", ONE + TWO, THREE + PACKED)
    write_log(tmp_path, "orders-0", {0: [batch(0)]})
    frame = kafkalog_read(spark, tmp_path, includeHeaders=True)
    assert offsets_read(frame) == {("my_topic", 0): [0, 12, 25, 35, 35], ("orders", 0): [0, 1, 2]}
    rows = kafkalog_read(spark, tmp_path, subscribe="my_topic").orderBy("offset", "value").collect()
    assert [row["value"] for row in rows] == [b"one", b"two", b"", b"five", b"four"]
    assert {(row["key"], row["timestamp"], row["timestampType"]) for row in rows} == {
        (None, None, -1)
    }


@pytest.mark.deep
def test_damage_is_named_with_file_and_position(spark: SparkSession, tmp_path: Path) -> None:
    # F159
    write_files(tmp_path / "my_topic_0", ONE + TWO[:-1] + b"!" + THREE)
    said = said_by_error(lambda: kafkalog_read(spark, tmp_path).collect())
    assert "my_topic_0/00000000000.kafka: position 12" in said
    assert "checksum" in said
    lenient = kafkalog_read(spark, tmp_path, mode="DROPMALFORMED")
    assert offsets_read(lenient) == {("my_topic", 0): [0, 25]}


@pytest.mark.deep
@pytest.mark.parametrize("view", ["batches", "byte_ranges", "faults", "recovery_plan"])
def test_other_views_say_what_reads_such_files(
    view: str, spark: SparkSession, tmp_path: Path
) -> None:
    # F154
    write_files(tmp_path / "my_topic_0", ONE)
    said = said_by_error(lambda: kafkalog_read(spark, tmp_path, view=view).collect())
    assert "UnsupportedFormatError" in said
    assert "kafkalog.storage.reading.oldest_log.read_oldest_file" in said
