"""Segments that a real broker wrote for the real Java producer.

Kafka is run from its published jars by the helpers of tests/broker.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from benchmarks.inputs.payloads import payloads
from benchmarks.inputs.wanted import BROKER, Input, Wanted

_LINES_BYTES = 20_000_000  # of different values; the producer picks among them at random
# As much as fits an int: all of a topic goes into one file.
_ONE_SEGMENT = {"segment.bytes": str(2**31 - 1), "segment.index.bytes": str(64 * 1024 * 1024)}


class BrokerMissingError(Exception):
    """Why no broker can be run here."""


def produced(wanted: Wanted, say: Callable[[str], None]) -> list[Input]:
    """The inputs, produced now unless they are kept. Raises BrokerMissingError.

    The tool that produces them, Kafka's own ProducerPerformance, sends no keys.
    """
    inputs = wanted.inputs(BROKER, "broker")
    missing = [item for item in inputs if not item.path.exists()]
    if missing:
        check_that_kafka_runs()
        with tempfile.TemporaryDirectory(prefix="kafkalog-benchmark-") as scratch:
            _produce(missing, wanted.size, Path(scratch), say)
    return inputs


def check_that_kafka_runs() -> None:
    """Raise BrokerMissingError, saying what is missing."""
    try:
        from tests.support.broker.class_paths import ClassPathError, class_path
    except ImportError as error:
        raise BrokerMissingError(str(error)) from error
    try:
        for jars in ("broker", "tools"):
            class_path(jars)
    except ClassPathError as error:
        raise BrokerMissingError(str(error)) from error


def _produce(missing: list[Input], size: int, scratch: Path, say: Callable[[str], None]) -> None:
    from tests.support.broker.kafka_server import KafkaServer
    from tests.support.broker.producer_perf import produce

    with KafkaServer(scratch / "server") as server:
        for item in missing:
            say(f"producing {item.label}")
            topic = f"{item.codec}-{item.record_size}"
            server.create_topic(topic, configs=_ONE_SEGMENT)
            records = max(size // item.record_size, 1)
            lines = value_lines(item.record_size, scratch)
            produce(server, topic, item.record_size, records, item.codec, lines)
            (log,) = (server.log_dir / f"{topic}-0").glob("*.log")
            kept = item.path.with_suffix(".tmp")
            shutil.copyfile(log, kept)
            kept.replace(item.path)


def value_lines(record_size: int, scratch: Path) -> Path:
    """A file of values, one a line."""
    path = scratch / f"values-{record_size}.txt"
    if not path.exists():
        count = max(_LINES_BYTES // record_size, 1)
        path.write_bytes(b"".join(value + b"\n" for value in islice(payloads(record_size), count)))
    return path
