"""Log directories of `kafkalog.testing` in a real broker: it opens them and serves the records
that were requested, and Kafka's tool finds nothing wrong in any file."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkalog.format.record_batch import read_batch
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.broker.consumed_rows import ConsumedRow
from tests.support.broker.dump_report import parse_dump
from tests.support.broker.java_tools import run_dump
from tests.support.broker.kafka_server import CLUSTER_ID, KafkaServer
from tests.support.broker.prepared_cluster import TOPIC, complaints, lines_about, prepared_cluster

pytestmark = pytest.mark.deep

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TIME_MS = 1_700_000_000_000


def made(path: Path, topic_id: str) -> LogDirectory:
    """Partition 0 with a bit of everything, partition 1 compacted and begun later, partition 2
    with nothing; and a topic for each codec."""
    log_dir = LogDirectory(path, cluster_id=CLUSTER_ID)
    log_dir.now_ms = _TIME_MS
    topic = log_dir.topic(TOPIC, partitions=3, topic_id=topic_id)
    topic.records([("a", "1"), (None, ""), ("c", None)], partition=0)
    topic.records([ProducerRecord("d", "2", [("h", "x"), ("h", None)], 77)], partition=0)
    producer = log_dir.transactional_producer("shop")
    producer.records(topic, [("kept", "3")], partition=0)
    producer.commit_offsets("readers", {(TOPIC, 0): 4})
    producer.commit()
    topic.roll()
    producer.records(topic, [("dropped", "4"), ("dropped", "5")], partition=0)
    producer.abort()
    topic.records([("k", "1"), ("l", "1"), ("k", "2")], partition=1)
    topic.compact(partition=1)
    topic.records([("k", "3")], partition=1)
    topic.records([("l", "4")], partition=1)
    topic.delete_records(2, partition=1)
    log_dir.commit_offsets("readers", {(TOPIC, 0): 8, (TOPIC, 1): None})
    for codec in _CODECS:
        coded = log_dir.topic(f"codec-{codec}", compression=codec)
        coded.records([("key", f"{number} " * 100) for number in range(50)])
    return log_dir


@dataclass(frozen=True, slots=True)
class Served:
    """What was written, and the broker that serves a copy of it."""

    written: Path
    server: KafkaServer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    scratch = tmp_path_factory.mktemp("made")
    cluster = prepared_cluster(scratch / "kafka", 3)
    written = Path(made(scratch / "written", cluster.topic_id()).write())
    copy = shutil.copytree(written, scratch / "served")
    # The controller has the topic in the directory of this id.
    shutil.copy(cluster.work_dir / "log" / "meta.properties", copy)
    with KafkaServer(cluster.work_dir, copy) as server:
        yield Served(written, server)


def test_kafkas_tool_finds_nothing_wrong(served: Served) -> None:
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = [path for path in sorted(served.written.rglob("*")) if path.suffix in kinds]
    dumped = parse_dump(run_dump(files))
    assert [said for said in dumped.findings if said.strip()] == []
    batches = [batch for file in dumped.files.values() for batch in file.batches]
    assert {batch["isvalid"] for batch in batches} == {"true"}
    assert {batch["compresscodec"] for batch in batches} == set(_CODECS)


def test_kafkas_tool_reads_the_commits(served: Served) -> None:
    (path,) = (served.written / "__consumer_offsets-0").glob("*.log")
    said = run_dump([path], decoder="offsets").text
    place = f'"group":"readers","topic":"{TOPIC}","partition":0'
    assert [line for line in said.splitlines() if place in line and '"offset":4' in line]
    assert [line for line in said.splitlines() if place in line and '"offset":8' in line]
    assert said.count("endTxnMarker: COMMIT") == 1


def test_a_broker_takes_them_as_they_are(served: Served) -> None:
    said = served.server.log_text()
    for partition in range(3):
        assert lines_about(said, partition)
        assert complaints(lines_about(said, partition)) == []
    assert served.server.offsets(TOPIC, "earliest") == {0: 0, 1: 2, 2: 0}
    assert served.server.offsets(TOPIC, "latest") == {0: 9, 1: 5, 2: 0}


def test_a_consumer_gets_what_was_committed(served: Served) -> None:
    received = served.server.consume_all(TOPIC, "read_committed")
    expected = [
        row(0, 0, 0, b"a", b"1"),
        row(0, 1, 1, None, b""),
        row(0, 2, 2, b"c", None),
        ConsumedRow(0, 3, "CreateTime", 77, b"d", b"2", (("h", b"x"), ("h", None))),
        row(0, 4, 3, b"kept", b"3"),
    ]
    assert [each for each in received if each.partition == 0] == expected
    values = {(each.partition, each.offset): each.value for each in received}
    assert {place: value for place, value in values.items() if place[0]} == {
        (1, 2): b"2",
        (1, 3): b"3",
        (1, 4): b"4",
    }


def test_kafkas_producer_sends_keys_where_topics_of_tests_have_them(
    served: Served, tmp_path: Path
) -> None:
    # F610
    keys = ["", *("k" * length + f"{length}ü" for length in range(40))]
    served.server.create_topic("hashed", 7)
    lines = "".join(f"a:1\t{key}\tvalue\n" for key in keys)
    served.server.produce_lines("hashed", lines.encode(), "none")
    sent = {each.key: each.partition for each in served.server.consume("hashed", len(keys))}
    log_dir = LogDirectory(tmp_path)
    topic = log_dir.topic("hashed", partitions=7)
    topic.records([(key, "value") for key in keys])
    made = {
        record.key: log.partition
        for log in topic.logs
        for batch in log.batches
        for record in read_batch(batch, 0)
    }
    assert made == sent
    assert set(made.values()) == set(range(7))


def row(
    partition: int, offset: int, seconds: int, key: bytes | None, value: bytes | None
) -> ConsumedRow:
    """A record of the clock's time."""
    return ConsumedRow(partition, offset, "CreateTime", _TIME_MS + 1000 * seconds, key, value, ())
