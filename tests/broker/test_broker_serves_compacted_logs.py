"""A broker opens what `salvage --compact` writes, and serves the same state."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafkalog.inspection.partitions.salvage import SalvageSettings
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.writing.salvaged_log_dir import salvageable
from tests.support.broker.consumed_rows import ConsumedRow
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.partition_files import demand_recovery
from tests.support.broker.prepared_cluster import (
    INDEX_INTERVAL_BYTES,
    TOPIC,
    Cluster,
    complaints,
    lines_about,
    prepared_cluster,
)
from tests.support.broker.salvaged_copies import salvage_logs
from tests.support.logs.compactable_logs import (
    HOUR_MS,
    CompactableLog,
    committed_state,
    compactable_log,
    write_compactable,
)

pytestmark = pytest.mark.deep

# Without a transaction open at the end, where a consumer of committed records would stop.
_SEEDS = [seed for seed in range(16) if seed % 4]
_NEVER = {"cleanup.policy": "compact", "min.compaction.lag.ms": f"{2**62}"}


@dataclass(frozen=True, slots=True)
class Served:
    """What a broker said and served of logs that were salvaged and compacted."""

    logs: list[CompactableLog]
    rows: dict[int, dict[str, Any]]
    received: list[ConsumedRow]
    ends: dict[int, int]
    said: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    scratch = tmp_path_factory.mktemp("compacted")
    cluster = prepared_cluster(scratch / "kafka", len(_SEEDS), _NEVER)
    now_ms = time.time_ns() // 1_000_000
    logs = [compactable_log(seed, now_ms) for seed in _SEEDS]
    for number, log in enumerate(logs):
        source = scratch / f"made-{number}"
        write_compactable(source, log.batches, now_ms)
        cluster.fill(number, source)
    rows, target = _salvaged(cluster, now_ms)
    demand_recovery(target)
    with KafkaServer(cluster.work_dir, target) as server:
        received = server.consume_all(TOPIC, "read_committed")
        ends = server.offsets(TOPIC, "latest")
        return Served(logs, rows, received, ends, server.log_text())


def _salvaged(cluster: Cluster, now_ms: int) -> tuple[dict[int, dict[str, Any]], Path]:
    settings = SalvageSettings(
        now_ms, INDEX_INTERVAL_BYTES, cluster.topic_id(), compacted={TOPIC: HOUR_MS}
    )
    target = cluster.work_dir / "salvaged"
    logs = salvageable(find_partitions([str(cluster.log_dir)]))
    return salvage_logs(logs, target, settings), target


def test_a_consumer_of_committed_records_sees_the_same_state(served: Served) -> None:
    # F252.
    for number, log in enumerate(served.logs):
        rows = [row for row in served.received if row.partition == number]
        last = {row.key: row for row in rows}
        state = {key: (row.offset, row.value) for key, row in last.items() if row.value is not None}
        assert state == committed_state(log.batches), number


def test_no_key_comes_twice_and_none_is_null(served: Served) -> None:
    # F243, F252.
    found = [(row.partition, row.key) for row in served.received]
    assert len(found) == len(set(found)) and all(key is not None for _, key in found)


def test_the_broker_has_nothing_to_say_against_them(served: Served) -> None:
    # F252, F253.
    for number, row in served.rows.items():
        assert complaints(lines_about(served.said, number)) == []
        assert row["broker_starts"] and row["compacted_bytes"] > 0
    assert served.ends == {number: row["log_end_offset"] for number, row in served.rows.items()}
