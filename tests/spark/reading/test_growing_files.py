"""Reading beside a broker: files grow and roll meanwhile, and are read with restraint."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.logs.log_dirs import log_name
from tests.support.logs.samples import batch
from tests.support.repository import EXAMPLES
from tests.support.spark.kafka_logs import kafkalog_read, offsets_read, write_log

ORDERS = ("orders", 0)


def test_what_is_appended_after_planning_is_read_up_to_a_whole_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A file is read up to where it ended when it was opened; half a batch there is none yet."""
    active = write_log(tmp_path, "orders-0", {0: [batch(0)]}) / log_name(0)
    frame = kafkalog_read(spark, tmp_path)
    assert offsets_read(frame) == {ORDERS: [0, 1, 2]}
    appended = batch(3)
    with active.open("ab") as file:
        file.write(appended[:30])
    assert offsets_read(frame) == {ORDERS: [0, 1, 2]}
    with active.open("ab") as file:
        file.write(appended[30:])
    assert offsets_read(frame) == {ORDERS: [0, 1, 2, 3, 4, 5]}


@pytest.mark.deep
def test_a_segment_that_rolls_after_planning_is_read_and_the_next_by_the_next_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    partition = write_log(tmp_path, "orders-0", {0: [batch(0)]})
    frame = kafkalog_read(spark, tmp_path)
    assert frame.count() == 3
    (partition / log_name(3)).write_bytes(batch(3))
    assert offsets_read(frame) == {ORDERS: [0, 1, 2]}
    assert offsets_read(kafkalog_read(spark, tmp_path)) == {ORDERS: [0, 1, 2, 3, 4, 5]}


@pytest.mark.deep
def test_reading_with_restraint_gives_the_same_rows(spark: SparkSession) -> None:
    """F550, F551."""
    log_dir = EXAMPLES / "kafka-4.4"
    restrained = kafkalog_read(spark, log_dir, dropPageCache="true", maxBytesPerSecond=50_000_000)
    assert offsets_read(restrained) == offsets_read(kafkalog_read(spark, log_dir))
