"""Transactions that kafkalog wrote, served by a real broker: what a read_committed consumer gets,
where the broker's last stable offset is, and which transactions its tool calls hanging."""

import random
import shutil
import time
from pathlib import Path

import pytest

from kafkalog.columns.transactions.transaction_walk import stable_offset
from kafkalog.errors import CorruptDataError
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.inspection.partitions.transactions import view_transaction_rows
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.partition_files import demand_recovery
from tests.support.logs.committed_reads import committed_options, committed_rows
from tests.support.logs.damageable_logs import SampleLog

pytestmark = pytest.mark.deep

TOPIC = "transactions"
PARTITIONS = 4
PRODUCERS = (7001, 7002, 7003)


def test_consumer_tool_and_kafkalog_agree(tmp_path: Path) -> None:
    # F210 to F216. Traps T15 (epochs raised by markers), T16, T17 and T18; an empty transaction, a
    # marker without data, data without a marker, several producers interleaved.
    now_ms = time.time_ns() // 1_000_000
    with KafkaServer(tmp_path / "kafka") as server:
        server.create_topic(TOPIC, PARTITIONS)
    for partition in range(PARTITIONS):
        log = _log(random.Random(partition), now_ms - 3_600_000, hangs=partition % 2 == 1)
        _fill(server.log_dir / f"{TOPIC}-{partition}", log, tmp_path)
    demand_recovery(server.log_dir)
    with server:
        received = server.consume_all(TOPIC, "read_committed")
        hanging = [
            words for partition in range(PARTITIONS) for words in _hanging(server, partition)
        ]
    read = committed_rows(committed_options([server.log_dir], subscribe=TOPIC))
    assert [row[1:3] for row in read] == sorted((row.partition, row.offset) for row in received)
    logs = find_partitions([str(server.log_dir / f"{TOPIC}-*")])
    names = ("producer_id", "producer_epoch", "first_offset")
    ours = [
        [TOPIC, str(log.partition), *(str(row[name]) for name in names)]
        for log in logs
        for row in view_transaction_rows(log, None, raised)
        if row["outcome"] == "open"
    ]
    assert [[*words[:4], words[5]] for words in hanging] == ours
    assert len(ours) == PARTITIONS // 2
    assert any(stable_offset(log).holders for log in logs)


def raised(damage: CorruptDataError) -> None:
    raise damage


def _log(source: random.Random, start_ms: int, *, hangs: bool) -> SampleLog:
    log = SampleLog(start_ms)
    epochs = dict.fromkeys(PRODUCERS, 0)
    still_open: set[int] = set()
    for _ in range(60):
        producer = source.choice(PRODUCERS)
        step = source.random()
        if step < 0.5:
            count, epoch = source.randint(1, 4), epochs[producer]
            log.add(count, producer, in_transaction=True, producer_epoch=epoch)
            still_open.add(producer)
        elif step < 0.8:
            epochs[producer] += source.random() < 0.5
            log.end(producer, source.choice((ABORT, COMMIT)), producer_epoch=epochs[producer])
            still_open.discard(producer)
        elif step < 0.9:
            log.add(source.randint(1, 3))
        elif log.batches and log.batches[-1].segment != log.next_offset:
            log.roll()
    for producer in sorted(still_open):
        log.end(producer, COMMIT, producer_epoch=epochs[producer])
    if hangs:
        log.add(2, PRODUCERS[0], in_transaction=True, producer_epoch=epochs[PRODUCERS[0]])
        log.add(2, PRODUCERS[1], in_transaction=True, producer_epoch=epochs[PRODUCERS[1]])
        log.end(PRODUCERS[1], COMMIT, producer_epoch=epochs[PRODUCERS[1]])
        log.add(3)
    return log


def _fill(directory: Path, log: SampleLog, work_dir: Path) -> None:
    written = work_dir / "written" / directory.name
    written.parent.mkdir(exist_ok=True)
    log.write(written, 4096)
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in written.glob("*.log"):
        shutil.copy(path, directory)


def _hanging(server: KafkaServer, partition: int) -> list[list[str]]:
    """Topic, partition, producer id, producer epoch, coordinator epoch, start offset, ..."""
    arguments = ["find-hanging", "--topic", TOPIC, "--partition", str(partition)]
    output = server.run_client("TransactionsCommand", arguments).stdout.decode()
    return [line.split() for line in output.splitlines() if line.startswith(TOPIC)]
