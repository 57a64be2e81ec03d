"""A broker is written to while a stream and the ingest read its directory; then Spark's own Kafka
source goes on where the table ends. Against what Kafka's consumer received.

Rules: F520, F522, F530, F534.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.live_records import write_live_records
from tests.support.broker.producer_perf import produce
from tests.support.jobs.ingest_runs import run_ingest
from tests.support.jobs.job_runs import needs_delta
from tests.support.logs.streamed_logs import DrivenStream

pytestmark = [
    needs_delta,
    pytest.mark.spark,
    pytest.mark.deep,
    pytest.mark.timeout(900),  # what they wait for is _LIVE_S alone, on a machine with other work
]

TOPIC, PARTITIONS = "orders", 3
_RECORDS, _RECORD_BYTES = 20_000, 100
_LIVE_S, _PRODUCE_S = 300, 180

Records = set[tuple[str, int, int, bytes | None, bytes | None]]


@contextmanager
def produced_to(server: KafkaServer, topic: str) -> Iterator[None]:
    """Meanwhile the real producer writes, with another codec each time."""
    ended = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        codecs = ("none", "zstd", "lz4", "snappy", "gzip")
        try:
            for number in range(1000):
                if ended.is_set():
                    return
                produce(server, topic, _RECORD_BYTES, _RECORDS, codecs[number % len(codecs)])
        except RuntimeError as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
    assert not failed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KafkaServer]:
    # Small segments, so that they roll while they are read.
    settings = {"log.segment.bytes": 1_048_576, "log.roll.jitter.ms": 0}
    with KafkaServer(tmp_path / "kafka", settings=settings) as running:
        running.create_topic(TOPIC, PARTITIONS)
        running.create_topic("empty", 2)
        yield running


def received(server: KafkaServer, topic: str) -> Records:
    """All that the Java consumer gets."""
    rows = server.consume_all(topic, "read_committed")
    records = {(topic, row.partition, row.offset, row.key, row.value) for row in rows}
    assert len(records) == len(rows)
    return records


def test_a_stream_reads_all_that_is_written_meanwhile(server: KafkaServer) -> None:
    stream = DrivenStream(
        server.log_dir, subscribe=TOPIC, startingOffsets="earliest", maxOffsetsPerTrigger=30_000
    )
    with produced_to(server, TOPIC):
        triggers, give_up = 0, time.monotonic() + _PRODUCE_S
        while sum(stream.offsets.values()) < 5 * _RECORDS and time.monotonic() < give_up:
            stream.trigger()
            triggers += 1
            if triggers % 50 == 0:
                stream.restart()
            time.sleep(0.02)
    assert sum(map(len, stream.read.values())) >= 5 * _RECORDS
    stream.to_the_end()
    expected: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset, _, _ in sorted(received(server, TOPIC), key=lambda row: row[:3]):
        expected.setdefault((topic, partition), []).append(offset)
    assert stream.read == expected
    assert len(list(server.log_dir.glob(f"{TOPIC}-*/*.log"))) > PARTITIONS


def test_history_and_live_records_join_without_a_gap_or_a_duplicate(
    server: KafkaServer, spark: SparkSession, tmp_path: Path
) -> None:
    output, told = tmp_path / "tables", tmp_path / "offsets.json"
    produce(server, TOPIC, _RECORD_BYTES, _RECORDS, "lz4")
    asked = f"--topic {TOPIC} --topic empty --starting-offsets-out {told}"
    with produced_to(server, TOPIC):
        for _ in range(2):
            assert run_ingest(server.log_dir, output=output, arguments=asked) == 0
    live = tmp_path / "live"
    live.mkdir()
    write_live_records(server.bootstrap, told, live, seconds=_LIVE_S)
    frame = spark.read.format("delta").load(str(output / "ingested_records"))
    rows = frame.select("topic", "partition", "offset", "key", "value").toArrow().to_pylist()
    history = {tuple(row.values()) for row in rows}
    assert len(history) == len(rows)
    for kind in ("batch", "stream"):
        later_rows = pq.read_table(live / kind).to_pylist()
        later = {tuple(row.values()) for row in later_rows}
        assert len(later) == len(later_rows) > 0
        assert history.isdisjoint(later)
        assert history | later == received(server, TOPIC)
