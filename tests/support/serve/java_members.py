"""Java's consumers as members of groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaGateway

_POLL_MS = 100
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


class JavaMember:
    """A consumer that has subscribed to topics."""

    def __init__(self, gateway: JavaGateway, settings: dict[str, str], topics: list[str]) -> None:
        self._java = gateway.jvm
        self._common = self._java.org.apache.kafka.common
        given = {"key.deserializer": _BYTES, "value.deserializer": _BYTES, **settings}
        self.consumer = self._java.org.apache.kafka.clients.consumer.KafkaConsumer(given)
        self.consumer.subscribe(topics)

    def poll(self) -> list[tuple[str, int, int]]:
        """Topic, partition and offset of the records that have come."""
        records = self.consumer.poll(self._java.java.time.Duration.ofMillis(_POLL_MS))
        return [(each.topic(), each.partition(), each.offset()) for each in records.iterator()]

    def assignment(self) -> set[tuple[str, int]]:
        """The partitions that the group has given to this member."""
        return {(each.topic(), each.partition()) for each in self.consumer.assignment()}

    def commit(self, topic: str, partition: int, offset: int) -> None:
        """Commit that the next record to read of a partition has this offset."""
        place = self._common.TopicPartition(topic, partition)
        committed: Any = self._java.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset)
        self.consumer.commitSync({place: committed})


@contextmanager
def java_member(
    gateway: JavaGateway, address: str, group: str, topics: list[str], **settings: str
) -> Iterator[JavaMember]:
    """A member that leaves the group at the end. In names of settings `_` stands for a dot."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    given |= {"bootstrap.servers": address, "group.id": group, "enable.auto.commit": "false"}
    member = JavaMember(gateway, {"auto.offset.reset": "earliest", **given}, topics)
    try:
        yield member
    finally:
        member.consumer.close()
