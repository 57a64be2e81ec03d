"""Times of the future in the options that Spark's Kafka source has too: the offset is Kafka's, and
the log names the record. Rules: F99, F930."""

import logging
from pathlib import Path

import pytest

from kafkalog.spark.source.batch_reader import KafkaLogReader
from kafkalog.spark.source.data_source import KafkaLogDataSource
from kafkalog.testing import LogDirectory, ProducerRecord

YEAR_2099_MS = 4_070_908_800_000


@pytest.fixture
def logs(tmp_path: Path) -> LogDirectory:
    """Six records a second apart, the third of them of 2099."""
    directory = LogDirectory(tmp_path / "logs")
    topic = directory.topic("orders")
    for number in range(6):
        time_ms = YEAR_2099_MS if number == 2 else directory.now_ms + number * 1000
        topic.records([ProducerRecord("k", "v", timestamp_ms=time_ms)])
    return directory


def reader(logs: LogDirectory, **options: object) -> KafkaLogReader:
    given = {"path": logs.write(), **{name: str(value) for name, value in options.items()}}
    source = KafkaLogDataSource(given)
    return source.reader(source.schema())


def offsets(found: KafkaLogReader) -> list[int]:
    batches = [batch for part in found.partitions() for batch in found.read(part)]
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_the_end_is_that_of_kafka_and_the_record_is_named(
    logs: LogDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    until_ms = logs.now_ms + 4000
    with caplog.at_level(logging.WARNING):
        assert offsets(reader(logs, endingTimestamp=until_ms)) == [0, 1]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("endingTimestamp: the first record of orders-0 that is as late is at")
    assert "offset 2" in line and "2099-01-01T00:00:00.000Z" in line


def test_a_filter_by_times_selects_each_record_by_its_own(
    logs: LogDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    until_ms = logs.now_ms + 4000
    with caplog.at_level(logging.WARNING):
        assert offsets(reader(logs, untilTimestamp=until_ms)) == [0, 1, 3]
    assert caplog.records == []


def test_a_stream_names_the_record_where_it_starts(
    logs: LogDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"path": logs.write(), "startingTimestamp": str(logs.now_ms + 4000)}
    source = KafkaLogDataSource(given)
    with caplog.at_level(logging.WARNING):
        start = source.streamReader(source.schema()).initialOffset()
    assert start == {"orders": {"0": 2}}
    assert [record.getMessage()[:18] for record in caplog.records] == ["startingTimestamp:"]
