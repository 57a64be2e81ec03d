"""Files renamed or gone between planning and reading. Rule: F94.

Spark plans a loaded DataFrame once, at its first action; every later action reads by that plan.
"""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.logs.log_dirs import log_name
from tests.support.logs.samples import batch
from tests.support.spark.kafka_logs import kafkalog_read, offsets_read, said_by_error, write_log

ORDERS = ("orders", 0)


def planned(spark: SparkSession, log_dir: Path, **options: str) -> DataFrame:
    """A frame over orders-0, in two segments, that has been planned."""
    write_log(log_dir, "orders-0", {0: [batch(0)], 3: [batch(3)]})
    frame = kafkalog_read(spark, log_dir, **options)
    assert frame.count() == 6
    return frame


@pytest.mark.deep
def test_a_plan_is_made_once(spark: SparkSession, tmp_path: Path) -> None:
    # The tests below rely on this: a new plan would not list what was renamed.
    frame = planned(spark, tmp_path)
    write_log(tmp_path, "users-0", {0: [batch(0)]})
    assert frame.count() == 6
    assert kafkalog_read(spark, tmp_path).count() == 9


def test_a_segment_marked_as_deleted_is_found(spark: SparkSession, tmp_path: Path) -> None:
    frame = planned(spark, tmp_path)
    file = tmp_path / "orders-0" / log_name(0)
    file.rename(file.with_name(log_name(0, ".deleted")))
    assert offsets_read(frame) == {ORDERS: [0, 1, 2, 3, 4, 5]}
    assert offsets_read(kafkalog_read(spark, tmp_path)) == {ORDERS: [3, 4, 5]}


def test_a_file_that_is_missing_is_an_error_naming_it(spark: SparkSession, tmp_path: Path) -> None:
    frame = planned(spark, tmp_path)
    file = tmp_path / "orders-0" / log_name(3)
    file.unlink()
    error = said_by_error(frame.count)
    assert f"kafkalog.errors.DataLossError: {file} no longer exists on " in error
    assert "failOnDataLoss=false reads what is there" in error
