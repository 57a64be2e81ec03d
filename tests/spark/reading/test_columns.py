"""The columns of view `records`: those of Spark's Kafka source, and what can be had beside them."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType
from tests.support.logs.samples import record
from tests.support.spark.kafka_logs import FIRST_MS, LAST_MS, kafkalog_read, write_log

# KafkaRecordToRowConverter.schemaWithoutHeaders and schemaWithHeaders of spark-sql-kafka-0-10.
KAFKA_SOURCE = [
    StructField("key", BinaryType(), True),
    StructField("value", BinaryType(), True),
    StructField("topic", StringType(), True),
    StructField("partition", IntegerType(), True),
    StructField("offset", LongType(), True),
    StructField("timestamp", TimestampType(), True),
    StructField("timestampType", IntegerType(), True),
]
HEADERS = StructField(
    "headers",
    ArrayType(
        StructType(
            [StructField("key", StringType(), True), StructField("value", BinaryType(), True)]
        )
    ),
    True,
)
METADATA = [
    StructField("timestampMs", LongType(), True),
    StructField("leaderEpoch", IntegerType(), True),
    StructField("producerId", LongType(), True),
    StructField("producerEpoch", ShortType(), True),
    StructField("sequence", IntegerType(), True),
    StructField("isTransactional", BooleanType(), True),
    StructField("compression", StringType(), True),
    StructField("magic", ByteType(), True),
    StructField("batchBaseOffset", LongType(), True),
    StructField("file", StringType(), True),
    StructField("position", LongType(), True),
    StructField("brokerId", IntegerType(), True),
]
METADATA_NAMES = [field.name for field in METADATA]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, KAFKA_SOURCE),
        ({"includeHeaders": "true"}, [*KAFKA_SOURCE, HEADERS]),
        ({"includeHeaders": "false", "includeMetadata": "true"}, [*KAFKA_SOURCE, *METADATA]),
        (
            {"includeHeaders": "true", "includeMetadata": "true"},
            [*KAFKA_SOURCE, HEADERS, *METADATA],
        ),
    ],
)
def test_columns_are_those_of_sparks_kafka_source(
    options: Mapping[str, str], expected: list[StructField], spark: SparkSession, tmp_path: Path
) -> None:
    write_log(tmp_path, "orders-0", {0: [write_batch([record(0)])]})
    schema = kafkalog_read(spark, tmp_path, **options).schema
    # Comments are not part of a type: Spark's source has none.
    assert [(f.name, f.dataType, f.nullable) for f in schema] == [
        (f.name, f.dataType, f.nullable) for f in expected
    ]


@pytest.mark.deep
def test_metadata_is_the_batchs_own(spark: SparkSession, tmp_path: Path) -> None:
    # F10, F12, F14, F24, F42, F44; T10, T21.
    fields = BatchFields(
        leader_epoch=7,
        producer_id=42,
        producer_epoch=3,
        base_sequence=2147483647,
        is_transactional=True,
        compression=CompressionType.ZSTD,
    )
    old = write_message_set([Record(0, -1, -1, None, b"a")], 0, CompressionType.GZIP)
    middle = write_message_set([Record(1, 5, 1, None, b"b")], 1)
    new = write_batch([record(10), record(11)], fields)
    partition = write_log(tmp_path, "orders-0", {0: [old, middle], 10: [new]})
    frame = kafkalog_read(spark, tmp_path, includeMetadata=True)
    first, second = (str(partition / f"{base:020d}.log") for base in (0, 10))
    none = (None,) * 4  # leader epoch, producer, its epoch, sequence
    assert frame.select("offset", *METADATA_NAMES).orderBy("offset").collect() == [
        (0, -1, *none, False, "gzip", 0, 0, first, 0, None),
        (1, 5, *none, False, "none", 1, 1, first, len(old), None),
        (10, 1010, 7, 42, 3, 2147483647, True, "zstd", 2, 10, second, 0, None),
        (11, 1011, 7, 42, 3, 0, True, "zstd", 2, 10, second, 0, None),
    ]


def test_the_six_states_of_null_and_empty_stay_apart(spark: SparkSession, tmp_path: Path) -> None:
    # F2, F22, F23; T9: duplicate header keys keep their order.
    written = [
        Record(0, 1, 0, None, b"value"),
        Record(1, 1, 0, b"", b"value"),
        Record(2, 1, 0, b"key", None),
        Record(3, 1, 0, b"key", b""),
        Record(4, 1, 0, None, None, (("twice", None), ("twice", b""), ("", b"v"))),
    ]
    write_log(tmp_path, "orders-0", {0: [write_batch(written)]})
    frame = kafkalog_read(spark, tmp_path, includeHeaders=True)
    rows = frame.orderBy("offset").select("key", "value", "headers").collect()
    assert [(row.key, row.value) for row in rows] == [
        (None, b"value"),
        (b"", b"value"),
        (b"key", None),
        (b"key", b""),
        (None, None),
    ]
    assert [row.headers for row in rows[:4]] == [None] * 4
    assert [tuple(header) for header in rows[4].headers] == [
        ("twice", None),
        ("twice", b""),
        ("", b"v"),
    ]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("timestamp_ms", "microseconds"),
    [
        (-1, None),  # Kafka's "none"
        (0, 0),
        (-2, -2000),
        (1_700_000_000_123, 1_700_000_000_123_000),
        (253_402_300_799_999, 253_402_300_799_999_000),  # the last of the year 9999
        (LAST_MS, LAST_MS * 1000),
        (LAST_MS + 1, None),
        (2**63 - 1, None),
        (-LAST_MS, -LAST_MS * 1000),
        (FIRST_MS - 1, None),
        (-(2**63), None),
    ],
)
def test_a_timestamp_that_spark_cannot_hold_is_null_and_raw_in_the_metadata(
    timestamp_ms: int, microseconds: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    # F24; T11.
    write_log(
        tmp_path, "orders-0", {0: [write_batch([Record(0, timestamp_ms, 0, None, b"value")])]}
    )
    frame = kafkalog_read(spark, tmp_path, includeMetadata=True)
    (row,) = frame.select(
        F.unix_micros("timestamp").alias("timestamp"), "timestampMs", "timestampType"
    ).collect()
    assert tuple(row) == (microseconds, timestamp_ms, 0)


@pytest.mark.deep
def test_log_append_time_and_no_timestamp_type_are_sparks_numbers(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F15, F42; T8, T21.
    append_time = BatchFields(timestamp_type=1, max_timestamp_ms=9000)
    write_log(
        tmp_path,
        "orders-0",
        {
            0: [
                write_message_set([Record(0, -1, -1, None, b"a")], 0),
                write_batch([record(1), record(2)], append_time),
                write_batch([record(3)]),
            ]
        },
    )
    frame = kafkalog_read(spark, tmp_path).orderBy("offset")
    rows = frame.select("timestampType", F.unix_millis("timestamp").alias("ms")).collect()
    assert [tuple(row) for row in rows] == [(-1, None), (1, 9000), (1, 9000), (0, 1003)]
