"""A consumer of a real broker stops where the recovery plan says that it does."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.record_batch import with_checksum
from kafkalog.inspection.partitions.recovery_plan import recovery_row
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN, find_partitions
from kafkalog.storage.recovery.recovery import RecoverySettings
from tests.support.broker.consumed_rows import FORMATTER_PROPERTIES, parse_rows
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import INDEX_INTERVAL_BYTES, TOPIC, prepared_cluster
from tests.support.logs.damageable_logs import SampleBatch, SampleLog, log_name

pytestmark = pytest.mark.deep

Damage = Callable[[Path, SampleBatch], None]
_SEGMENTS, _BATCHES = 3, 5


def _write(at: int, data: bytes) -> Damage:
    """Overwrite some of a batch's bytes."""

    def damage(directory: Path, batch: SampleBatch) -> None:
        with (directory / log_name(batch.segment)).open("r+b") as file:
            file.seek(batch.position + at)
            file.write(data)

    return damage


def _zeros(directory: Path, batch: SampleBatch) -> None:
    _write(0, bytes(len(batch.data)))(directory, batch)


def _count(change: int) -> Damage:
    """A wrong count under a right checksum."""

    def damage(directory: Path, batch: SampleBatch) -> None:
        data = bytearray(batch.data)
        data[57:61] = (len(batch.records) + change).to_bytes(4, "big")
        _write(0, with_checksum(bytes(data)))(directory, batch)

    return damage


def _cut(directory: Path, batch: SampleBatch) -> None:
    os.truncate(directory / log_name(batch.segment), batch.position + 50)


# What is done to the third batch of the second segment.
_DAMAGES: dict[str, Damage] = {
    "nothing": lambda directory, batch: None,
    "checksum": _write(100, b"\xff\xff"),
    "magic": _write(16, b"\x09"),
    "zeros": _zeros,
    "length-zero": _write(8, bytes(4)),
    "length-short": _write(8, (40).to_bytes(4, "big")),
    "length-huge": _write(8, b"\x7f\xff\xff\xf0"),
    "cut-short": _cut,
    "count-too-high": _count(1),
    "count-too-low": _count(-1),
    "offset-back": _write(0, bytes(8)),
}


@dataclass(frozen=True, slots=True)
class Consumed:
    """The plan for a damaged partition, and what a consumer got of it."""

    plan: dict[str, Any]
    offsets: list[int]


def _log() -> SampleLog:
    log = SampleLog(time.time_ns() // 1_000_000)
    for segment in range(_SEGMENTS):
        if segment:
            log.roll()
        for _ in range(_BATCHES):
            log.add(5)
    return log


def _consume(server: KafkaServer, partition: int) -> list[int]:
    """The offsets of the partition that a consumer gets, until none comes for some seconds."""
    arguments = ["--topic", TOPIC, "--partition", str(partition), "--offset", "earliest"]
    arguments += ["--timeout-ms", "8000", "--command-property", "enable.auto.commit=false"]
    for setting in FORMATTER_PROPERTIES:
        arguments += ["--formatter-property", setting]
    output = server.run_client("consumer.ConsoleConsumer", arguments)
    return [row.offset for row in parse_rows(output.stdout)]


@pytest.fixture(scope="module")
def consumed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Consumed]:
    """Each damage in a partition of its own, a clean stop, a start, and a consumer."""
    scratch = tmp_path_factory.mktemp("stops")
    cluster = prepared_cluster(scratch / "kafka", len(_DAMAGES))
    log = _log()
    for partition, (name, damage) in enumerate(_DAMAGES.items()):
        directory = scratch / f"{name}-0"
        log.write(directory, INDEX_INTERVAL_BYTES)
        damage(directory, log.batches[_BATCHES + 2])
        cluster.fill(partition, directory)
    assert (cluster.log_dir / CLEAN_SHUTDOWN).exists()
    settings = RecoverySettings(
        is_clean_shutdown=True,
        now_ms=time.time_ns() // 1_000_000,
        index_interval_bytes=INDEX_INTERVAL_BYTES,
    )
    logs = find_partitions([str(cluster.log_dir)])
    plans = {log.partition: dict(recovery_row(log, settings)) for log in logs if log.topic == TOPIC}
    with KafkaServer(cluster.work_dir) as server, ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda partition: _consume(server, partition), sorted(plans)))
    return {
        name: Consumed(plans[partition], found[partition])
        for partition, name in enumerate(_DAMAGES)
    }


def test_a_consumer_stops_where_the_plan_says(consumed: dict[str, Consumed]) -> None:
    # F128.
    end = _SEGMENTS * _BATCHES * 5
    planned = {name: each.plan["consumers_stop_at"] or end for name, each in consumed.items()}
    assert planned == {name: each.offsets[-1] + 1 for name, each in consumed.items()}
    assert len([stop for stop in planned.values() if stop < end]) == 7


def test_where_no_fault_remains_a_consumer_gets_every_record(consumed: dict[str, Consumed]) -> None:
    # F128.
    every = list(range(_SEGMENTS * _BATCHES * 5))
    whole = {name for name, each in consumed.items() if each.offsets == every}
    assert (
        whole
        == {name for name, each in consumed.items() if not each.plan["remaining_faults"]}
        == {"nothing"}
    )
