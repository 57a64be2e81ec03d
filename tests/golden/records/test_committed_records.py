"""Committed records and last stable offsets of real brokers' logs, against what a read_committed
consumer received and the Admin client said."""

import json
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.columns.transactions.transaction_walk import stable_offset
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.golden.fixture_sets import consumed, topics
from tests.support.logs.committed_reads import COLUMNS, committed_options, committed_rows
from tests.support.repository import Unpack

CONSUMER = "read_committed"
# What records aborts and open transactions beside the batches themselves.
SIDE_FILES = {
    "as the broker left it": (),
    "without transaction indexes": ("*.txnindex",),
    "without producer snapshots": ("*.snapshot",),
    "nothing but logs": ("*.txnindex", "*.snapshot", "*.index", "*.timeindex"),
}


@pytest.fixture(params=SIDE_FILES)
def without(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return SIDE_FILES[request.param]


def _log_dirs(logs: Path, without: tuple[str, ...], tmp_path: Path) -> list[Path]:
    """The log directories of a fixture, in a copy without some of their files."""
    copy = tmp_path / "logs"
    shutil.copytree(logs, copy, ignore=shutil.ignore_patterns(*without) if without else None)
    if without:
        for mark in copy.rglob(".kafka_cleanshutdown"):
            mark.unlink()
    return sorted(path.parent for path in copy.rglob("meta.properties"))


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_committed_records_are_those_a_read_committed_consumer_received(
    name: str, without: tuple[str, ...], unpacked: Unpack, tmp_path: Path
) -> None:
    # F210 to F215, every segment being its own task; T14 to T18 as a real broker wrote them.
    dirs = _log_dirs(unpacked(f"{name}.logs"), without, tmp_path)
    golden = unpacked(f"{name}.golden")
    rows = _by_topic(committed_rows(committed_options(dirs)))
    for topic in topics(golden, CONSUMER):
        assert rows[topic] == _received(golden, topic), topic


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_tasks_that_split_segments_give_the_same_records(
    name: str, unpacked: Unpack, tmp_path: Path
) -> None:
    # T16
    golden = unpacked(f"{name}.golden")
    transactional = [topic for topic in topics(golden, CONSUMER) if "tx" in topic]
    dirs = _log_dirs(unpacked(f"{name}.logs"), (), tmp_path)
    subscribed = {"subscribe": ",".join(transactional)}
    for pieces in (2, 7):
        rows = _by_topic(committed_rows(committed_options(dirs, **subscribed), pieces=pieces))
        for topic in transactional:
            assert rows[topic] == _received(golden, topic), (topic, pieces)
    for size in ({"maxPartitionBytes": "10000"}, {"maxRecordsPerPartition": "50"}):
        # F500, F501
        rows = _by_topic(committed_rows(committed_options(dirs, **subscribed, **size)))
        for topic in transactional:
            assert rows[topic] == _received(golden, topic), (topic, size)


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_last_stable_offsets_are_those_the_admin_client_received(
    name: str, without: tuple[str, ...], unpacked: Unpack, tmp_path: Path
) -> None:
    # F214, T17
    told = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())["offsets"]
    expected = {log: row["offset"] for log, row in told["latest_read_committed"].items()}
    logs = find_partitions(
        [str(path) for path in _log_dirs(unpacked(f"{name}.logs"), without, tmp_path)]
    )
    found = {log.name: stable_offset(log).offset for log in logs if log.name in expected}
    assert found == expected
    assert any(offset < told["latest"][log]["offset"] for log, offset in expected.items())


def test_without_a_clean_shutdown_the_tail_of_the_log_tells(unpacked: Unpack) -> None:
    # F214: snapshots are there, and the newest may be behind what they know.
    logs = find_partitions([str(unpacked("kafka44.logs") / "log-dirs")])
    killed = [replace(log, log_dir=replace(log.log_dir, is_clean_shutdown=False)) for log in logs]
    assert [stable_offset(log).offset for log in killed] == [
        stable_offset(log).offset for log in logs
    ]


def _by_topic(rows: list[tuple[Any, ...]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        values = dict(zip(COLUMNS, row, strict=True))
        found[values.pop("topic")].append(values)
    return found


def _received(golden: Path, topic: str) -> list[dict[str, Any]]:
    return [
        {
            "partition": row["partition"],
            "offset": row["offset"],
            "timestampMs": row["timestamp"],
            "key": row["key"],
            "value": row["value"],
        }
        for row in consumed(golden, topic, CONSUMER)
    ]
