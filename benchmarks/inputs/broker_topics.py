"""Topics of a real broker that Java's producer filled, kept with the broker for the next time.

Kafka is run from its published jars by the helpers of tests/broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.inputs.broker_inputs import check_that_kafka_runs, value_lines

if TYPE_CHECKING:
    from tests.support.broker.kafka_server import KafkaServer


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of `size` bytes of values of `record_size` bytes each."""

    codec: str
    record_size: int
    size: int
    partitions: int

    @property
    def name(self) -> str:
        return f"{self.codec}-{self.record_size}-{self.size}-{self.partitions}"

    @property
    def label(self) -> str:
        return f"{self.codec} {self.record_size} B"

    @property
    def records(self) -> int:
        return self.size // self.record_size


# A topic that a contender can read or write first, untimed: with a task for each core.
WARM_UP = Topic("none", 1024, 32 * 2**20, 2)


@contextmanager
def broker_with(
    topics: Sequence[Topic], directory: Path, say: Callable[[str], None]
) -> Iterator[KafkaServer]:
    """A broker that serves the topics, filled now unless they are kept in `directory`.

    Raises BrokerMissingError.
    """
    check_that_kafka_runs()
    from tests.support.broker.kafka_server import KafkaServer
    from tests.support.broker.producer_perf import produce

    with KafkaServer(directory / "broker", java_options=()) as server:
        for topic in topics:
            filled = directory / f"{topic.name}.filled"
            if filled.exists():
                continue
            say(f"producing {topic.label}")
            if not (server.log_dir / f"{topic.name}-0").exists():
                server.create_topic(topic.name, topic.partitions)
            lines = value_lines(topic.record_size, directory)
            produce(server, topic.name, topic.record_size, topic.records, topic.codec, lines)
            filled.touch()
        yield server
