"""Clients that ran with a cluster go on with what `kafkalog restore` made of its disk: F1045 and
F1049 of docs/restore.md. The cluster is itself a restored one; its disk is copied while it runs."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kafkalog.exit_codes import ExitCode
from tests.support.broker.cluster.lost_cluster import Lost
from tests.support.broker.continued_stream import continue_stream
from tests.support.repository import ROOT

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]
WAIT_SECONDS = 40
SPARK_SECONDS = 100
VALUES = ["one", "two", "three", "four", "five", "six", "seven"]


@pytest.fixture(scope="module")
def disks(unpacked: Unpacked) -> list[str]:
    return sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))


@pytest.fixture
def lost(disks: list[str], tmp_path: Path) -> Iterator[Lost]:
    cluster = Lost(disks, tmp_path)
    yield cluster
    cluster.stop()


def written(producer: Producer, *values: str) -> list[int]:
    """The offsets in events-0."""
    offsets: list[int] = []

    def done(error: KafkaError | None, record: object) -> None:
        assert error is None
        offsets.append(record.offset())  # type: ignore[attr-defined]

    for value in values:
        producer.produce("events", value, partition=0, on_delivery=done)
    assert producer.flush(WAIT_SECONDS) == 0
    return offsets


def read_from(bootstrap: str, offset: int, until: str) -> list[tuple[int, str]]:
    """Offsets and values of events-0 from an offset on, up to a value."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "sink", "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition("events", 0, offset)])
    found: list[tuple[int, str]] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while not found or found[-1][1] != until:
        assert time.monotonic() < deadline, found
        for record in consumer.consume(100, 1.0):
            assert record.error() is None
            value = record.value()
            found.append((record.offset() or 0, "" if value is None else value.decode()))
    consumer.close()
    return found


def test_a_producer_of_the_old_cluster_is_fenced(lost: Lost) -> None:
    """F1049: it does not even see that the cluster is another one."""
    settings = {"bootstrap.servers": lost.bootstrap, "log_level": 0}
    producer = Producer({**settings, "transactional.id": "tx-a"})
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    begin = written(producer, "in force")[0]
    producer.commit_transaction(WAIT_SECONDS)
    lost.copy()
    producer.begin_transaction()
    producer.produce("events", "beyond the copy", partition=0)
    producer.flush(WAIT_SECONDS)
    with lost.replaced() as node:
        with pytest.raises(KafkaException) as raised:
            producer.commit_transaction(WAIT_SECONDS)
        assert raised.value.args[0].code() in (
            KafkaError._FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_TXN_STATE,
        )
        written(Producer({"bootstrap.servers": node.bootstrap}), "after")
        values = [value for _, value in read_from(node.bootstrap, begin, "after")]
        assert values == ["in force", "after"]


def test_a_sink_that_keeps_offsets_itself_reads_each_new_record_once(lost: Lost) -> None:
    """F1045: it has read further than the copy goes, as Spark's checkpoints and tables do."""
    settings = {"bootstrap.servers": lost.bootstrap, "log_level": 0}
    producer = Producer({**settings, "enable.idempotence": True})
    begin = written(producer, "one", "two")[0]
    lost.copy()
    last = written(producer, "three", "four")[-1]
    rows = read_from(lost.bootstrap, begin, "four")
    next_offset = last + 1
    with lost.replaced() as node:
        new = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
        written(new, "five", "six", "seven")
        rows += read_from(node.bootstrap, next_offset, "seven")
    assert [value for _, value in rows] == VALUES
    assert len({offset for offset, _ in rows}) == 7


def ingest(data: Path, table: Path, table_format: str) -> tuple[ExitCode, str]:
    """Have the job add what is new in a disk to a table; return its exit code and what it says."""
    command = [sys.executable, "-m", "kafkalog", "job", "ingest-topics", str(data)]
    command += ["--topic", "events", "--output-dir", str(table), "--format", table_format]
    command += ["--fail-on-findings"]
    environment = {name: each for name, each in os.environ.items() if "SPARK" not in name}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=SPARK_SECONDS, check=False
    )
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode in (ExitCode.DONE, ExitCode.FINDINGS), said[-3000:]
    return ExitCode(done.returncode), said


def rows_in(directory: Path, begin: int) -> list[tuple[int, str]]:
    """Offsets and values of events-0 from an offset on, in files that were only added."""
    columns = ds.dataset([*map(str, directory.rglob("*.parquet"))]).to_table(
        ["partition", "offset", "value"]
    )
    return sorted(
        (row["offset"], row["value"].decode())
        for row in columns.to_pylist()
        if row["partition"] == 0 and row["offset"] >= begin
    )


class Sinks:
    """What keeps its offsets itself: checkpoints of Spark's Kafka source and of kafkalog's, and
    tables of job ingest-topics in two formats."""

    def __init__(self, home: Path) -> None:
        self._streams = [home / "kafka", home / "kafkalog"]
        self._tables = [(home / each, each) for each in ("delta", "iceberg")]

    def go_on(self, bootstrap: str, data: Path) -> None:
        sources: list[str | Path] = [bootstrap, data]
        for source, place in zip(sources, self._streams, strict=True):
            continue_stream(source, "events", place, SPARK_SECONDS)
        for table, table_format in self._tables:
            code, said = ingest(data, table, table_format)
            assert code == ExitCode.DONE, said

    def rows(self, begin: int) -> list[list[tuple[int, str]]]:
        places = [stream / "rows" for stream in self._streams]
        places += [next(table.rglob("ingested_records")) for table, _ in self._tables]
        return [rows_in(place, begin) for place in places]


def test_sinks_of_spark_and_of_the_job_go_on(lost: Lost, tmp_path: Path) -> None:
    """F1045: they have read beyond the copy. What is new comes once, and nothing of it is passed
    over: neither by the sources, whose `failOnDataLoss` is as by default, nor by the job, whose
    positions are in the tables."""
    sinks = Sinks(tmp_path / "sinks")
    settings = {"bootstrap.servers": lost.bootstrap, "log_level": 0}
    producer = Producer({**settings, "enable.idempotence": True})
    begin = written(producer, *VALUES[:2])[0]
    lost.copy()
    written(producer, *VALUES[2:4])
    sinks.go_on(lost.bootstrap, lost.data)
    for found in sinks.rows(begin):
        assert [value for _, value in found] == VALUES[:4]
    with lost.replaced() as node:
        new = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
        offsets = written(new, *VALUES[4:])
        sinks.go_on(node.bootstrap, node.data)
    for found in sinks.rows(begin):
        assert [value for _, value in found] == VALUES
        assert [offset for offset, _ in found[4:]] == offsets
