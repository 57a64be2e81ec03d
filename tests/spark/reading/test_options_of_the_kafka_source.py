"""Options through Spark: those of Spark's own Kafka source all work, all others are refused."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.logs.samples import batch
from tests.support.spark.kafka_logs import (
    kafkalog_read,
    logged_lines,
    offsets_read,
    said_by_error,
    write_log,
)

# Those that shape streams or speak to a broker; and what any client passes through.
WITHOUT_EFFECT = {
    "maxOffsetsPerTrigger": "1000",
    "minOffsetsPerTrigger": "10",
    "maxTriggerDelay": "15m",
    "groupIdPrefix": "spark-kafka-source",
    "kafkaConsumer.pollTimeoutMs": "512",
    "fetchOffset.numRetries": "3",
    "fetchOffset.retryIntervalMs": "10",
    "kafka.bootstrap.servers": "broker1:9092,broker2:9092",
    "kafka.group.id": "mine",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.jaas.config": "org.example.Module required password=secret;",
    "kafka.fetch.max.bytes": "1048576",
}


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with three records in orders-0."""
    log_dir = tmp_path_factory.mktemp("logs")
    write_log(log_dir, "orders-0", {0: [batch(0)]})
    return log_dir


ALL_ROWS = {("orders", 0): [0, 1, 2]}


@pytest.mark.deep
@pytest.mark.usefixtures("worker_logs")
def test_options_for_a_broker_are_ignored_and_told_in_one_line(
    spark: SparkSession, orders: Path
) -> None:
    reader = (
        spark.read.format("kafkalog")
        .options(**WITHOUT_EFFECT)
        .schema("topic STRING, partition INT, offset LONG")
    )
    frame = reader.load(str(orders))
    assert offsets_read(frame) == ALL_ROWS
    lines = logged_lines(spark, "options without effect here: ", "kafka.sasl.jaas.config")
    # Spark hands names over in lower case, but for those the source itself knows.
    told = {name.strip() for name in lines[0].partition(": ")[2].split(",")}
    assert {name.lower() for name in told} == {name.lower() for name in WITHOUT_EFFECT}
    # Values may be secrets.
    assert "secret" not in lines[0]
    assert len(lines) == 1


@pytest.mark.deep
@pytest.mark.usefixtures("worker_logs")
def test_ignored_options_are_reported_once_without_a_schema_too(
    spark: SparkSession, orders: Path
) -> None:
    frame = kafkalog_read(spark, orders, **{"kafka.client.id": "told-once"})
    assert offsets_read(frame) == ALL_ROWS
    assert len(logged_lines(spark, "options without effect here: kafka.client.id")) == 1


def test_a_job_for_a_broker_changes_only_its_format(spark: SparkSession, orders: Path) -> None:
    frame = (
        spark.read.format("kafkalog")
        .option("kafka.bootstrap.servers", "broker:9092")
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("includeHeaders", "true")
        .load(str(orders))
    )
    frame.createOrReplaceTempView("orders_of_files")
    rows = spark.sql("SELECT CAST(value AS STRING) AS text FROM orders_of_files").collect()
    assert [row.text for row in rows] == ["value" * 8] * 3


def test_sql_can_read_too(spark: SparkSession, orders: Path) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW by_sql USING kafkalog "
        f"OPTIONS (path '{orders}', startingOffsets '{{\"orders\":{{\"0\":1}}}}')"
    )
    assert offsets_read(spark.table("by_sql")) == {("orders", 0): [1, 2]}


def test_an_unknown_option_is_an_error_naming_it(spark: SparkSession, orders: Path) -> None:
    error = said_by_error(lambda: kafkalog_read(spark, orders, startingOffset="earliest"))
    # Spark has put the name into lower case.
    assert (
        "kafkalog.errors.OptionError: startingoffset: 'earliest' is not valid, expected " in error
    )
    assert "startingOffsets," in error
