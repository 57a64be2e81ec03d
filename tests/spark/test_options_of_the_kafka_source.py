"""Options through Spark: those of Spark's own Kafka source all work, all others are told."""

from __future__ import annotations

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

pytestmark = pytest.mark.spark

# Options of spark-sql-kafka-0-10 4.2.0 that choose what is read, with values for orders-0.
MEANT_FOR_FILES = {
    "subscribe": "orders",
    "subscribePattern": "ord.*",
    "assign": '{"orders":[0]}',
    "startingOffsets": '{"orders":{"0":-2}}',
    "startingOffsetsByTimestamp": '{"orders":{"0":0}}',
    "startingTimestamp": "0",
    "startingOffsetsByTimestampStrategy": "latest",
    "endingOffsets": '{"orders":{"0":-1}}',
    "endingOffsetsByTimestamp": '{"orders":{"0":4102444800000}}',
    "endingTimestamp": "4102444800000",
    "failOnDataLoss": "false",
    "includeHeaders": "true",
    "kafka.isolation.level": "read_uncommitted",
    "minPartitions": "10",
    "maxRecordsPerPartition": "1000",
}
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
@pytest.mark.parametrize("option", MEANT_FOR_FILES)
def test_an_option_that_says_what_to_read_is_taken(
    option: str, spark: SparkSession, orders: Path
) -> None:
    frame = kafkalog_read(spark, orders, **{option: MEANT_FOR_FILES[option]})
    assert offsets_read(frame) == ALL_ROWS


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
def test_ignored_options_are_told_once_without_a_schema_too(
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


@pytest.mark.deep
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"kafka.isolation.level": "dirty"},
            "option kafka.isolation.level: got 'dirty', allowed: one of read_uncommitted,",
        ),
        ({"view": "rows"}, "option view: got 'rows', allowed: one of records, batches,"),
        ({"mode": "LAX"}, "option mode: got 'LAX', allowed: one of FAILFAST, PERMISSIVE,"),
        ({"stopAt": "lso"}, "option stopAt: got 'lso', allowed: one of logEnd, highWatermark"),
        ({"includeHeaders": "yes"}, "option includeHeaders: got 'yes', allowed: one of true,"),
        ({"includeMetadata": "1"}, "option includeMetadata: got '1', allowed: one of true,"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss: got 'no', allowed: one of true,"),
        ({"kafka.check.crcs": "0"}, "option kafka.check.crcs: got '0', allowed: one of true,"),
        ({"minPartitions": "0"}, "option minPartitions: got '0', allowed: a whole number"),
        (
            {"maxRecordsPerPartition": "many"},
            "option maxRecordsPerPartition: got 'many', allowed: a whole number",
        ),
        ({"maxBatchBytes": "-1"}, "option maxBatchBytes: got '-1', allowed: a whole number"),
        ({"startingTimestamp": "noon"}, "option startingTimestamp: got 'noon', allowed: milli"),
        ({"startingOffsets": "{"}, "option startingOffsets: got '{', allowed: JSON such as"),
        (
            {"endingOffsetsByTimestamp": "5"},
            "option endingOffsetsByTimestamp: got '5', allowed: JSON such as",
        ),
        (
            {"startingOffsetsByTimestampStrategy": "earliest"},
            "option startingOffsetsByTimestampStrategy: got 'earliest', allowed: one of error,",
        ),
        ({"assign": "orders-0"}, "option assign: got 'orders-0', allowed: JSON such as"),
        ({"subscribePattern": "("}, "option subscribePattern: got '(', allowed: a regular"),
        (
            {"subscribe": "orders", "assign": '{"orders":[0]}'},
            "option subscribe and assign: got 'both', allowed: one of them",
        ),
    ],
)
def test_a_bad_value_is_an_error_naming_the_option(
    options: dict[str, str], said: str, spark: SparkSession, orders: Path
) -> None:
    error = said_by_error(lambda: kafkalog_read(spark, orders, **options))
    assert f"kafkalog.errors.OptionError: {said}" in error


@pytest.mark.deep
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "orders,users"}, "option subscribe: got 'users', allowed: what the log"),
        ({"assign": '{"orders":[0,7]}'}, "option assign: got 'orders-7', allowed: what the log"),
    ],
)
def test_a_topic_that_is_not_there_is_an_error_naming_it(
    options: dict[str, str], said: str, spark: SparkSession, orders: Path
) -> None:
    error = said_by_error(lambda: kafkalog_read(spark, orders, **options).count())
    assert f"kafkalog.errors.OptionError: {said}" in error


def test_an_unknown_option_is_an_error_naming_it(spark: SparkSession, orders: Path) -> None:
    error = said_by_error(lambda: kafkalog_read(spark, orders, startingOffset="earliest"))
    # Spark has put the name into lower case.
    assert "kafkalog.errors.OptionError: option startingoffset: got 'earliest', allowed: " in error
    assert "startingOffsets," in error


@pytest.mark.deep
def test_a_path_is_needed(spark: SparkSession) -> None:
    error = said_by_error(lambda: spark.read.format("kafkalog").load())
    assert "option path: got 'nothing', allowed: a log directory" in error


@pytest.mark.deep
def test_a_path_that_is_not_there_is_an_error_naming_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    error = said_by_error(lambda: kafkalog_read(spark, tmp_path / "nowhere").count())
    assert f"kafkalog.errors.LogDirError: {tmp_path / 'nowhere'}: there is no such" in error


@pytest.mark.deep
def test_one_partition_in_two_places_is_an_error_naming_both(
    spark: SparkSession, tmp_path: Path
) -> None:
    for disk in ("disk1", "disk2"):
        write_log(tmp_path / disk, "orders-0", {0: [batch(0)]})
    error = said_by_error(lambda: kafkalog_read(spark, tmp_path / "disk*").count())
    assert "kafkalog.errors.LogDirError: " in error
    for disk in ("disk1", "disk2"):
        assert str(tmp_path / disk / "orders-0") in error
