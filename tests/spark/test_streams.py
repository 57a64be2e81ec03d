"""`spark.readStream.format("kafkalog")`: queries with checkpoints over a log that grows. The rules
one by one: tests/unit/spark/test_streams.py."""

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.logs.streamed_logs import StreamedLog

_LONGEST_S = 60


def stream(spark: SparkSession, log_dir: Path, **options: Any) -> DataFrame:
    reader = spark.readStream.format("kafkalog").options(**options)
    return reader.load(str(log_dir))


def started(frame: DataFrame, place: Path, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.format("parquet")
    writer = writer.option("path", str(place / "rows"))
    return writer.option("checkpointLocation", str(place / "checkpoint")).trigger(**trigger).start()


def started_and_ended(frame: DataFrame, place: Path) -> StreamingQuery:
    query = started(frame, place, availableNow=True)
    assert query.awaitTermination(_LONGEST_S)
    return query


def offsets_in(spark: SparkSession, place: Path) -> list[tuple[Any, ...]]:
    rows = spark.read.parquet(str(place / "rows")).select("topic", "partition", "offset").collect()
    return sorted(map(tuple, rows))


def offsets_of(*logs: StreamedLog) -> list[tuple[Any, ...]]:
    return sorted((*log.key, offset) for log in logs for offset in log.offsets)


def test_a_query_goes_on_from_its_checkpoint_until_all_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F522, F524, F525
    log_dir = tmp_path / "log"
    logs = [StreamedLog(log_dir, "orders", partition) for partition in (0, 1)]
    for growth in range(2):
        for log in logs:
            log.append(8, 5)
            log.roll()
        limited = stream(spark, log_dir, startingOffsets="earliest", maxOffsetsPerTrigger=40)
        query = started_and_ended(limited, tmp_path)
        sizes = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
        assert sizes == [40, 40]
        assert offsets_in(spark, tmp_path) == offsets_of(*logs)
        if growth == 0:
            StreamedLog(log_dir, "payments", 0)
    # As the Kafka source writes them.
    assert query.lastProgress is not None
    (end,) = (each["endOffset"] for each in query.lastProgress["sources"])
    assert end == '{"orders": {"0": 80, "1": 80}, "payments": {"0": 0}}'


@pytest.mark.deep
def test_a_query_that_runs_reads_what_is_appended(spark: SparkSession, tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    log = StreamedLog(log_dir, "orders", 0)
    query = started(
        stream(spark, log_dir, startingOffsets="earliest"),
        tmp_path,
        processingTime="100 milliseconds",
    )
    for _ in range(3):
        log.append(2)
        log.roll()
        _wait_until_read(query, log.next_offset)
    query.stop()
    assert offsets_in(spark, tmp_path) == offsets_of(log)


def _wait_until_read(query: StreamingQuery, offset: int) -> None:
    give_up = time.monotonic() + _LONGEST_S
    while time.monotonic() < give_up:
        said = query.lastProgress
        if said and said["sources"][0]["endOffset"] == f'{{"orders": {{"0": {offset}}}}}':
            return
        time.sleep(0.05)
    raise AssertionError(f"offset {offset} was not reached: {query.lastProgress}")


@pytest.mark.deep
def test_data_loss_ends_a_query_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    # F523
    log_dir = tmp_path / "log"
    log = StreamedLog(log_dir, "orders", 0)
    log.append(2, 5)
    frame = stream(spark, log_dir, startingOffsets="earliest")
    started_and_ended(frame, tmp_path)
    log.log_file.write_bytes(b"")
    with pytest.raises(StreamingQueryException) as caught:
        started_and_ended(frame, tmp_path)
    said = str(caught.value)
    assert "orders-0" in said
    assert "read up to 10" in said
    assert "failOnDataLoss=false reads what is there" in said


@pytest.mark.deep
def test_view_messages_streams_and_views_about_files_do_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    log_dir = tmp_path / "log"
    log = StreamedLog(log_dir, "__consumer_offsets", 0)
    log.append(3, 2)
    messages = stream(spark, log_dir, view="messages", startingOffsets="earliest")
    writer = messages.select("offset").writeStream.format("memory").queryName("messages")
    writer.trigger(availableNow=True).start().awaitTermination(_LONGEST_S)
    assert sorted(row.offset for row in spark.table("messages").collect()) == log.offsets
    with pytest.raises(StreamingQueryException, match="records or messages in a stream"):
        started_and_ended(stream(spark, log_dir, view="batches"), tmp_path)
