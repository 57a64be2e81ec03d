"""What `kafkalog ls --savings` says of a topic, and what a 4.4.0 broker makes of its records.

The broker compresses again what a producer sends uncompressed to a topic with a codec: the same
records in batches of the same size.
"""

import json
import random
from pathlib import Path

import pytest

from kafkalog.inspection.logs.savings import savings
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.broker.kafka_server import PRODUCED_NULL, KafkaServer

pytestmark = pytest.mark.deep

_CODECS = ("gzip", "snappy", "lz4", "zstd")
_RECORDS = 40_000
_SAMPLED = 4 * 1024 * 1024
# Batches end elsewhere in each run of the producer, and compressors of Java and C differ a little.
_TOLERANCE = 0.03


def lines() -> bytes:
    chance = random.Random(11)
    words = [f"{chance.getrandbits(40):x}" for _ in range(2_000)]
    return b"".join(
        PRODUCED_NULL.encode()
        + b"\t"
        + f"user-{chance.randrange(5_000)}\t".encode()
        + json.dumps(
            {
                "order": number,
                "amount": round(chance.lognormvariate(3, 1), 2),
                "items": chance.choices(words, k=chance.randrange(1, 30)),
            }
        ).encode()
        + b"\n"
        for number in range(_RECORDS)
    )


def log_bytes(log_dir: Path, topic: str) -> int:
    return sum(path.stat().st_size for path in (log_dir / f"{topic}-0").glob("*.log"))


def test_the_estimate_is_what_a_brokers_rewrite_takes(tmp_path: Path) -> None:
    records = lines()
    with KafkaServer(tmp_path / "kafka") as server:
        server.create_topic("plain")
        server.produce_lines("plain", records, "none")
        for codec in _CODECS:
            server.create_topic(codec, configs={"compression.type": codec})
            server.produce_lines(codec, records, "none")
    log_dir = tmp_path / "kafka" / "log"
    (log,) = [log for log in find_partitions([str(log_dir)]) if log.topic == "plain"]
    whole = {each.change: each for each in savings(log.segments, 10**9, "plain")}
    sample = {each.change: each for each in savings(log.segments, _SAMPLED, "plain")}
    for codec in _CODECS:
        taken = log_bytes(log_dir, codec)
        exact, estimate = whole[f"compression.type={codec}"], sample[f"compression.type={codec}"]
        assert exact.error_bytes == 0
        assert abs(exact.would_take - taken) < _TOLERANCE * taken
        assert estimate.error_bytes
        assert abs(estimate.would_take - taken) < _TOLERANCE * taken + estimate.error_bytes
