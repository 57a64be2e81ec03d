"""What consumers written in Python get of partitions: aiokafka's and kafka-python's."""

import asyncio
from collections.abc import Collection
from typing import Any

from tests.support.serve.clients import Row, placed

_POLL_MS = 1000
_MOST_AT_A_TIME = 1000


def records_of_kafka_python(
    bootstrap_servers: str, isolation_level: str, partitions: Collection[tuple[str, int]]
) -> list[Row]:
    """What kafka-python's consumer gets, to the end of each partition."""
    import kafka

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level=isolation_level,
        enable_auto_commit=False,
        max_partition_fetch_bytes=20_000,
    )
    try:
        places = [kafka.TopicPartition(*each) for each in partitions]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        rows: list[Row] = []
        while any(consumer.position(place) < ends[place] for place in places):
            for messages in consumer.poll(_POLL_MS, _MOST_AT_A_TIME).values():
                rows += map(_row, messages)
        return placed(rows)
    finally:
        consumer.close()


def records_of_aiokafka(
    bootstrap_servers: str, isolation_level: str, partitions: Collection[tuple[str, int]]
) -> list[Row]:
    """What aiokafka's consumer gets, to the end of each partition."""
    return asyncio.run(_read_by_aiokafka(bootstrap_servers, isolation_level, partitions))


async def _read_by_aiokafka(
    bootstrap_servers: str, isolation_level: str, partitions: Collection[tuple[str, int]]
) -> list[Row]:
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level=isolation_level,
        enable_auto_commit=False,
        max_partition_fetch_bytes=20_000,
    )
    await consumer.start()
    try:
        places = [aiokafka.TopicPartition(*each) for each in partitions]
        consumer.assign(places)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(places)
        rows: list[Row] = []
        while any([await consumer.position(place) < ends[place] for place in places]):
            found = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_MOST_AT_A_TIME)
            for messages in found.values():
                rows += map(_row, messages)
        return placed(rows)
    finally:
        await consumer.stop()


def _row(message: Any) -> Row:
    return (
        *(message.topic, message.partition, message.offset, message.timestamp),
        *(message.key, message.value, tuple(message.headers or ())),
    )
