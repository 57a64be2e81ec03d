"""What Kafka's clients read from a server, and what view `records` has, in one form.

A row: topic, partition, offset, timestamp in milliseconds, key, value, headers. Timestamps are None
where the records have none, and where they are 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.views.engine import AskedView, LocalViews

Row = tuple[str, int, int, int | None, bytes | None, bytes | None, tuple[tuple[str, Any], ...]]

_COLUMNS = ("topic", "partition", "offset", "timestampMs", "key", "value", "headers")
_READ_WITHIN_SECONDS = 20
METADATA_TOPIC = "__cluster_metadata"


def records_of_view(paths: Sequence[str], isolation_level: str) -> list[Row]:
    """The rows of view `records` in order, without those of the topic that brokers do not show."""
    views = LocalViews(paths, find_logs(paths), 1, {"isolationLevel": isolation_level})
    rows = [
        (*values, tuple((each["key"], each["value"]) for each in headers or ()))
        for batch in views.batches(AskedView("records", _COLUMNS))
        for *values, headers in zip(*(column.to_pylist() for column in batch), strict=True)
    ]
    return placed(row for row in rows if row[0] != METADATA_TOPIC)


def records_of_confluent_kafka(
    bootstrap_servers: str,
    isolation_level: str,
    without: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> list[Row]:
    """What librdkafka's consumer gets of all topics but some, to the end of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reads-all",
            "isolation.level": isolation_level,
            "check.crcs": True,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # A small fetch goes over many runs of batches.
            "fetch.message.max.bytes": 20_000,
            **(settings or {}),
        }
    )
    try:
        topics = consumer.list_topics(timeout=30).topics
        places = [
            TopicPartition(name, number, OFFSET_BEGINNING)
            for name, topic in topics.items()
            if name not in without
            for number, partition in topic.partitions.items()
            # None leads a partition that is not among the files.
            if partition.leader >= 0
        ]
        consumer.assign(places)
        return placed(_consumed(consumer, len(places)))
    finally:
        consumer.close()


def _consumed(consumer: Consumer, partitions: int) -> list[Row]:
    rows: list[Row] = []
    ended: set[tuple[str, int]] = set()
    end = monotonic() + _READ_WITHIN_SECONDS
    while len(ended) < partitions:
        assert monotonic() < end, f"{partitions - len(ended)} partitions have not ended"
        messages: list[Any] = consumer.consume(10_000, timeout=0.2)
        for message in messages:
            error = message.error()
            if error is None:
                rows.append(_row(message))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add((message.topic(), message.partition()))
    return rows


def _row(message: Any) -> Row:
    place = (message.topic(), message.partition(), message.offset())
    time = message.timestamp()[1]
    return (*place, time, message.key(), message.value(), tuple(message.headers() or ()))


def placed(rows: Iterable[Row]) -> list[Row]:
    """The rows in the order of topics, partitions and offsets."""
    # librdkafka takes a time of 0 for none.
    timed = [(*row[:3], None if row[3] in (None, -1, 0) else row[3], *row[4:]) for row in rows]
    return sorted(timed, key=lambda row: row[:3])
