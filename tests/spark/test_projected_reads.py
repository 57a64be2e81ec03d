"""Only the asked columns: by a schema of the user's own or by option `columns`."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from tests.support.repository import EXAMPLES
from tests.support.spark.kafka_logs import kafkalog_read, said_by_error

pytestmark = pytest.mark.spark

# Offsets 817 to 859, as the names of this file and the next one say.
ORDERS = EXAMPLES / "kafka-4.4" / "shop.multi-3-part-0-1" / "00000000000000000817.log"
RECORDS = 43


def with_schema(spark: SparkSession, schema: str | StructType, **options: str) -> DataFrame:
    reader = spark.read.format("kafkalog").options(**options).schema(schema)
    return reader.load(str(ORDERS))


@pytest.mark.deep
@pytest.mark.parametrize(
    "ddl",
    [
        "offset LONG, timestamp TIMESTAMP",
        "value BINARY",
        "timestampType INT, topic STRING, key BINARY",
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, partition INT",
        "position BIGINT, file STRING, magic TINYINT, producerEpoch SMALLINT",
    ],
)
def test_a_schema_is_a_select(ddl: str, spark: SparkSession) -> None:
    frame = with_schema(spark, ddl)
    full = kafkalog_read(spark, ORDERS, includeHeaders=True, includeMetadata=True)
    assert frame.count() == RECORDS
    expected = full.select(*frame.columns)
    assert_df_equality(frame, expected, ignore_row_order=True, ignore_metadata=True)


@pytest.mark.parametrize(
    ("view", "columns"),
    [
        ("records", "offset,timestamp"),
        ("records", " value , key "),
        ("records", "headers,sequence"),
        ("batches", "position,is_valid,uncompressed_size"),
        ("byte_ranges", "length,verdict"),
    ],
)
def test_option_columns_is_a_select(view: str, columns: str, spark: SparkSession) -> None:
    frame = kafkalog_read(spark, ORDERS, view=view, columns=columns)
    full = kafkalog_read(spark, ORDERS, view=view, includeHeaders=True, includeMetadata=True)
    assert frame.columns == [name.strip() for name in columns.split(",")]
    assert not frame.isEmpty()
    assert_df_equality(frame, full.select(*frame.columns), ignore_row_order=True)


@pytest.mark.deep
def test_a_schema_wins_over_option_columns(spark: SparkSession) -> None:
    frame = with_schema(spark, "offset LONG", columns="key,value")
    assert frame.columns == ["offset"]
    assert frame.count() == RECORDS


def test_no_column_at_all_still_counts(spark: SparkSession) -> None:
    assert with_schema(spark, StructType([])).count() == RECORDS


@pytest.mark.deep
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("offset LONG, epoch INT", "view records has no column epoch"),
        ("Offset LONG", "view records has no column Offset"),
        ("offset STRING", "column offset is of type bigint, the schema says string"),
        ("value STRING", "column value is of type binary, the schema says string"),
        ("timestamp LONG", "column timestamp is of type timestamp, the schema says bigint"),
        (
            StructType([StructField("offset", LongType(), nullable=False)]),
            "column offset is nullable, the schema says it is not",
        ),
    ],
)
def test_a_schema_that_does_not_fit_is_an_error_naming_the_column(
    schema: str | StructType, said: str, spark: SparkSession
) -> None:
    error = said_by_error(lambda: with_schema(spark, schema).count())
    assert f"kafkalog.errors.SchemaError: {said}" in error


@pytest.mark.deep
def test_a_column_of_another_view_is_an_error_naming_both(spark: SparkSession) -> None:
    error = said_by_error(lambda: with_schema(spark, "value BINARY", view="batches").count())
    assert "view batches has no column value; it has topic, partition, file" in error


@pytest.mark.deep
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("offset,epoch", "option columns: got 'epoch', allowed: columns of view records: key,"),
        ("offset,offset", "option columns: got 'offset, offset', allowed: each column once"),
        (" , ", "option columns: got ' , ', allowed: words separated by commas"),
    ],
)
def test_a_wrong_option_columns_is_an_error_naming_it(
    columns: str, said: str, spark: SparkSession
) -> None:
    assert said in said_by_error(lambda: kafkalog_read(spark, ORDERS, columns=columns))
