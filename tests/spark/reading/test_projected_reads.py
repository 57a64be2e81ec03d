"""Only the asked columns: by a schema of the user's own or by option `columns`."""

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.support.repository import EXAMPLES
from tests.support.spark.kafka_logs import kafkalog_read

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
