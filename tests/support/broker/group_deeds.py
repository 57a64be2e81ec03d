"""Consumers and tools that move offsets of groups on a real broker, and a ledger of their deeds.

    python -m tests.support.broker.group_deeds DIRECTORY

Writes DIRECTORY/log-dirs, the log directory of a broker that has stopped, DIRECTORY/golden with
the ledger, and DIRECTORY/outside with checkpoints of Spark.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from confluent_kafka import OFFSET_END, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.live_records import write_live_records
from tests.support.serve.mirror_maker import mirror_maker

ORDERS, GONE = "orders", "gone"
# A topic of many small segments, so that retention deletes some.
_SMALL_SEGMENTS = {"internal.segment.bytes": "8192", "retention.ms": "-1"}
_SETTINGS = {
    "log.retention.check.interval.ms": 500,
    "log.initial.task.delay.ms": 500,
    "log.segment.delete.delay.ms": 0,
    "auto.create.topics.enable": "false",
}
_WITHIN_SECONDS = 60


class Deeds:
    """A broker, its clients, and what they did: rows of the ledger, one after another."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self.ledger: list[dict[str, object]] = []

    def note(self, group: str, deed: str, **more: object) -> None:
        self.ledger.append({"group": group, "deed": deed, "at_ms": _now_ms(), **more})

    def produce(self, topic: str, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.server.bootstrap, "linger.ms": 0})
        for number in range(count):
            producer.produce(topic, value=f"{number:04d}".encode() * 10)
            if number % 10 == 9:
                producer.flush()
        producer.flush()

    @contextmanager
    def consumer(self, group: str, *, reset: str = "earliest") -> Iterator[Consumer]:
        settings = {
            "bootstrap.servers": self.server.bootstrap,
            "group.id": group,
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
        }
        with closing(Consumer(settings)) as consumer:
            yield consumer

    def consume(
        self, group: str, count: int, step: int, *, topic: str = ORDERS, wait: float = 0.1
    ) -> None:
        """A member of the group reads so many records, and commits after each `step`."""
        with self.consumer(group) as consumer:
            consumer.subscribe([topic])
            self._steps(consumer, group, count, step, wait)

    def _steps(
        self, consumer: Consumer, group: str, count: int, step: int, wait: float = 0.1
    ) -> None:
        for _ in range(count // step):
            messages: list[Message] = []
            while len(messages) < step:
                messages += consumer.consume(step - len(messages), timeout=1)
            assert all(each.error() is None for each in messages)
            consumer.commit(message=messages[-1], asynchronous=False)
            offset = (messages[-1].offset() or 0) + 1
            self.note(group, "read", first=messages[0].offset(), committed=offset)
            time.sleep(wait)

    def read_and_skip(self, group: str) -> None:
        """A member reads 200 records in small steps, goes to the end, and reads on."""
        with self.consumer(group) as consumer:
            consumer.subscribe([ORDERS])
            self._steps(consumer, group, 200, 20, 0.6)
            _, end = consumer.get_watermark_offsets(TopicPartition(ORDERS, 0))
            consumer.seek(TopicPartition(ORDERS, 0, OFFSET_END))
            consumer.commit(offsets=[TopicPartition(ORDERS, 0, end)], asynchronous=False)
            self.note(group, "skipped", committed=end)

    def two_committers(self, group: str) -> None:
        """Two consumers that assign themselves the same partition commit by turns."""
        with self.consumer(group) as first, self.consumer(group) as second:
            for number in range(6):
                for consumer, start in ((first, 0), (second, 300)):
                    offset = start + 10 * (number + 1)
                    place = TopicPartition(ORDERS, 0, offset)
                    consumer.commit(offsets=[place], asynchronous=False)
                    self.note(group, "assigned", committed=offset)
                    time.sleep(0.1)

    def commit(self, group: str, offset: int, topic: str = ORDERS) -> None:
        """A consumer that assigns itself its partition commits."""
        with self.consumer(group) as consumer:
            place = TopicPartition(topic, 0, offset)
            consumer.commit(offsets=[place], asynchronous=False)
        self.note(group, "assigned", committed=offset)

    def reset(self, group: str, *target: str) -> None:
        """Kafka's tool sets the offset of a group without members."""
        arguments = ["--group", group, "--topic", ORDERS, "--reset-offsets", *target, "--execute"]
        output = self.server.run_client("consumer.group.ConsumerGroupCommand", arguments)
        self.note(group, "tool", said=output.text)

    def delete_offsets(self, group: str) -> None:
        arguments = ["--group", group, "--topic", ORDERS, "--delete-offsets"]
        self.server.run_client("consumer.group.ConsumerGroupCommand", arguments)
        self.note(group, "deleted")

    def delete_old_segments(self, above: int) -> None:
        """Retention by size deletes the oldest segments, until the log begins above an offset."""
        self._alter("retention.bytes", "16384")
        _until(lambda: self.server.offsets(ORDERS, "earliest")[0] > above)
        time.sleep(2)
        self._alter("retention.bytes", "-1")
        self.note("", "retention", log_start=self.server.offsets(ORDERS, "earliest")[0])

    def _alter(self, name: str, value: str) -> None:
        """Set a config of the topic."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, ORDERS, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})
        for done in admin.incremental_alter_configs([resource]).values():
            done.result()


def group_deeds(deeds: Deeds, outside: Path) -> None:
    """Do all of it. `outside` gets what others keep: Spark's checkpoints; MirrorMaker keeps its
    positions in topics of the cluster."""
    server = deeds.server
    server.create_topic(ORDERS, configs=_SMALL_SEGMENTS)
    server.create_topic(GONE)
    deeds.produce(ORDERS, 100)
    deeds.produce(GONE, 30)
    _spark(deeds, outside / "early", ORDERS, GONE)
    deeds.produce(ORDERS, 500)
    deeds.consume("steady", 300, 50)
    deeds.consume("lost", 100, 25)
    deeds.consume("reset", 100, 25)
    deeds.consume("rewound", 100, 25)
    deeds.consume("dropped", 50, 25)
    deeds.consume("of-gone", 20, 10, topic=GONE)
    deeds.commit("behind", 50)
    deeds.commit("ahead", 5000)
    deeds.read_and_skip("skips")
    deeds.two_committers("two")
    time.sleep(1)
    deeds.reset("reset", "--to-offset", "500")
    deeds.reset("rewound", "--to-offset", "20")
    deeds.delete_offsets("dropped")
    deeds.delete_old_segments(above=110)
    deeds.consume("lost", 75, 25)
    deeds.consume("reset", 50, 25)
    server.run_client("TopicCommand", ["--delete", "--topic", GONE])
    time.sleep(2)
    server.create_topic(GONE)
    deeds.produce(GONE, 5)
    deeds.produce(ORDERS, 100)
    deeds.consume("steady", 300, 50)
    _spark(deeds, outside / "late", ORDERS)
    _mirror(deeds, outside / "mirror")
    deeds.produce(ORDERS, 20)
    deeds.note("", "end", log_end=server.end_offset(ORDERS, 0))


def _spark(deeds: Deeds, place: Path, *topics: str) -> None:
    """Spark's own Kafka source reads to the end, and keeps a checkpoint."""
    place.mkdir(parents=True)
    offsets = place / "offsets.json"
    offsets.write_text(json.dumps({topic: {"0": -2} for topic in topics}))
    write_live_records(deeds.server.bootstrap, offsets, place, seconds=400)
    for topic in topics:
        end = deeds.server.end_offset(topic, 0)
        deeds.note("", "spark", checkpoint=place.name, topic=topic, position=end)


def _mirror(deeds: Deeds, folder: Path) -> None:
    """MirrorMaker copies within the cluster, up to the end."""
    server = deeds.server
    one = {f"{name}.storage.partitions": "1" for name in ("offset", "status")}
    with mirror_maker(folder, server.bootstrap, server.bootstrap, [ORDERS], one):
        _until(lambda: _has_topic(server, f"copy.{ORDERS}"))
        _until(lambda: server.end_offset(f"copy.{ORDERS}", 0) > 0)
        time.sleep(15)
    for topic in (ORDERS, f"copy.{ORDERS}"):
        deeds.note("", "mirrored", topic=topic, position=server.end_offset(topic, 0))


def _has_topic(server: KafkaServer, topic: str) -> bool:
    return topic in server.run_client("TopicCommand", ["--list"]).text.split()


def write_deeds(place: Path) -> None:
    """Write log-dirs, golden and outside below a directory."""
    (place / "golden").mkdir(parents=True)
    with KafkaServer(place / "server", place / "log-dirs", settings=_SETTINGS) as server:
        deeds = Deeds(server)
        group_deeds(deeds, place / "outside")
    (place / "golden" / "deeds.json").write_text(json.dumps(deeds.ledger, indent=1))
    metadata = place / "server" / "metadata" / "__cluster_metadata-0"
    shutil.copytree(metadata, place / "log-dirs" / metadata.name)


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.5)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    write_deeds(Path(sys.argv[1]))
