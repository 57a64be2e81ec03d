"""Frames as a person reads them. Rules: docs/notebooks.md F620 and F621."""

from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from kafkalog.schemas import table_fields, table_names
from kafkalog.spark.readable import DURATIONS_MS, readable
from kafkalog.spark.tables import described, spark_schema


def test_bytes_become_text_and_what_is_not_text_hexadecimal(spark: SparkSession) -> None:
    """F620."""
    given = {
        1: (b"orders \xc3\xa9\n", "orders é\n"),
        2: (b"", ""),
        3: (None, None),
        4: (b"\x00\x01", "0x0001"),
        5: (b"\xff", "0xFF"),
        6: (b"\x1b[2J", "0x1B5B324A"),
    }
    frame = spark.createDataFrame(
        [(number, data) for number, (data, _) in given.items()], "number int, value binary"
    )
    told = {row.number: row.value for row in readable(frame).collect()}
    assert told == {number: text for number, (_, text) in given.items()}


@pytest.mark.deep
def test_moments_become_timestamps_and_durations_stay(spark: SparkSession) -> None:
    """F621."""
    frame = spark.createDataFrame(
        [(1_795_246_877_891, 5), (2**63 - 1, 6), (-(2**63), 7), (None, 8)],
        "at_ms bigint, time_lag_ms bigint",
    )
    told = readable(frame)
    assert told.columns == ["at", "time_lag_ms"]
    first, *others = told.orderBy("time_lag_ms").collect()
    assert first.at == datetime(2026, 11, 21, 7, 41, 17, 891000)
    assert [row.at for row in others] == [None, None, None]


@pytest.mark.deep
def test_a_name_that_is_taken_is_not_given_again(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "at int, at_ms bigint")
    assert readable(frame).columns == ["at", "at_ms"]


@pytest.mark.deep
def test_columns_are_described_as_their_schema_says(spark: SparkSession) -> None:
    frame = readable(spark.createDataFrame([], spark_schema("lag_history")))
    told = {row.column: row.comment for row in described(frame).collect()}
    fields = {field["name"]: field["metadata"]["comment"] for field in table_fields("lag_history")}
    assert told["status"] == fields["status"]
    assert told["at"] == fields["at_ms"]


@pytest.mark.deep
def test_what_is_counted_from_1970_is_not_a_duration() -> None:
    columns = [field for name in table_names() for field in table_fields(name)]
    moments = {f["name"] for f in columns if "since 1970" in f["metadata"]["comment"]}
    assert moments.isdisjoint(DURATIONS_MS)
    assert {f["name"] for f in columns} >= set(DURATIONS_MS)
