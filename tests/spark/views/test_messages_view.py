"""View `messages`: records of internal topics as what they say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.record_writer import write_record_key, write_record_value
from tests.support.golden.fixture_sets import consumed
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.repository import ROOT, Unpack
from tests.support.spark.kafka_logs import kafkalog_read, logged_lines, said_by_error, write_log

SCHEMA = ROOT / "schemas" / "tables" / "messages.json"
OFFSETS, METADATA = "__consumer_offsets", "__cluster_metadata"
LINE = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*? headerKeys: \[\] (.*)")


def as_dumped(row: Row) -> str:
    """A row in the words of kafka-dump-log."""
    name = row.record_name
    if name in ("ABORT", "COMMIT"):
        return f"endTxnMarker: {name} coordinatorEpoch: {json.loads(row.value)['coordinatorEpoch']}"
    if row.is_control:
        return f"LeaderChange: {row.value}"
    if row.topic == METADATA:
        spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
        return f'payload: {{"type":"{spelled}","version":{row.version},"data":{row.value}}}'
    value = f'{{"version":"{row.version}","data":{row.value}}}'
    shown = "<DELETE>" if row.is_tombstone else value
    return f'key: {{"type":"{row.record_type}","data":{row.key}}} payload: {shown}'


def test_rows_are_the_records_of_all_internal_topics_as_kafka_dump_log_decodes_them(
    spark: SparkSession, unpacked: Unpack
) -> None:
    # F188 to F190, F193
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    dumped: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
    for path in sorted(unpacked("kafka44.messages").rglob("*.log.txt")):
        topic, _, partition = path.parent.name.rpartition("-")
        lines = [LINE.fullmatch(line) for line in path.read_text().splitlines()]
        dumped.setdefault((topic, int(partition)), []).extend(
            (int(line[1]), int(line[2]), line[3]) for line in lines if line
        )
    read: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
    frame = kafkalog_read(spark, log_dir, view="messages", showSecrets="true")
    for row in frame.orderBy("topic", "partition", "offset").collect():
        key = row.topic, row.partition
        read.setdefault(key, []).append((row.offset, row.timestamp_ms, as_dumped(row)))
        assert (row.reason, row.detail, row.raw_key, row.raw_value) == (None,) * 4
    assert read == {key: lines for key, lines in dumped.items() if lines}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two commits, the second in a transaction that is committed, and a record of a type to come;
    a credential and a topic; an ordinary topic."""
    place = tmp_path / "logs"
    add_meta_properties(place)
    transactional = BatchFields(producer_id=7, producer_epoch=1, is_transactional=True)
    marker = BatchFields(producer_id=7, producer_epoch=1, is_transactional=True, is_control=True)
    offsets = [
        write_batch([commit(0, 5)]),
        write_batch([commit(1, 6)], transactional),
        write_batch([Record(2, 1002, 0, b"\0\0\0\x01", b"\0\0\0\0\0\x09")], marker),
        write_batch([Record(3, -1, 0, b"\0\x63\0\x01g", b"to come")]),
    ]
    write_log(place, f"{OFFSETS}-3", {0: offsets[:2], 2: offsets[2:]})
    credential = {"name": "alice", "salt": b"salt", "storedKey": b"stored", "serverKey": b"key"}
    scram = write_record_value(METADATA, 11, 0, credential)
    metadata = [
        Record(0, 1000, 0, None, scram),
        Record(1, 1001, 0, None, scram + b"more"),
        Record(2, 1002, 0, None, write_record_value(METADATA, 2, 0, {"name": "orders"})),
    ]
    write_log(place, f"{METADATA}-0", {0: [write_batch(metadata)]})
    write_log(place, "orders-0", {0: [write_batch([commit(0, 5)])]})
    return place


def commit(offset: int, committed: int) -> Record:
    key = write_record_key(OFFSETS, 1, {"group": "g", "topic": "orders", "partition": 0})
    value = write_record_value(OFFSETS, 1, 3, {"offset": committed, "metadata": "m"})
    return Record(offset, 1000 + offset, 0, key, value)


def rows(spark: SparkSession, *paths: Path, **options: Any) -> list[Row]:
    frame = kafkalog_read(spark, *paths, view="messages", **options)
    return frame.orderBy("topic", "partition", "offset").collect()


@pytest.mark.deep
def test_columns_are_those_of_the_schema_and_say_where_a_record_stands(
    spark: SparkSession, log_dir: Path
) -> None:
    assert kafkalog_read(spark, log_dir, view="messages").schema == StructType.fromJson(
        json.loads(SCHEMA.read_text())
    )
    _, first, marker, _ = rows(spark, log_dir, subscribe=OFFSETS)
    partition = log_dir / f"{OFFSETS}-3"
    expected = {
        "cluster_id": "cluster",
        "broker_id": 1,
        "input_path": str(log_dir),
        "topic": OFFSETS,
        "partition": 3,
        "file": str(partition / f"{0:020d}.log"),
        "offset": 1,
        "timestamp_ms": 1001,
        "producer_id": 7,
        "producer_epoch": 1,
        "is_transactional": True,
        "is_control": False,
        "record_type": 1,
        "record_name": "OffsetCommit",
        "version": 3,
        "key": '{"group":"g","topic":"orders","partition":0}',
        "value": '{"offset":6,"leaderEpoch":-1,"metadata":"m","commitTimestamp":0}',
        "is_tombstone": False,
        "reason": None,
        "detail": None,
        "raw_key": None,
        "raw_value": None,
    }
    told = first.asDict()
    assert told.pop("timestamp").timestamp() == 1.001
    assert told == expected
    assert (marker.offset, marker.is_control, marker.record_name) == (2, True, "COMMIT")
    assert (marker.key, marker.value) == ('{"type":1}', '{"coordinatorEpoch":9}')


@pytest.mark.deep
def test_secrets_are_hidden_also_in_bytes_that_cannot_be_read(
    spark: SparkSession, log_dir: Path
) -> None:
    # F194
    hidden, unreadable, _ = rows(spark, log_dir, subscribe=METADATA)
    assert json.loads(hidden.value)["salt"] == "***"
    assert (unreadable.reason, unreadable.value, unreadable.raw_value) == (
        "trailing_bytes",
        None,
        None,
    )
    shown, unreadable, _ = rows(spark, log_dir, subscribe=METADATA, showSecrets="true")
    assert json.loads(shown.value)["salt"] == "c2FsdA=="
    assert bytes(unreadable.raw_value).endswith(b"more")


@pytest.mark.deep
def test_committed_offsets_are_those_a_read_committed_consumer_received(
    spark: SparkSession, unpacked: Unpack
) -> None:
    log_dir, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    options = {"subscribe": OFFSETS, "isolationLevel": "read_committed"}
    read = [(row.partition, row.offset) for row in rows(spark, log_dir, **options)]
    marked = {
        (row.partition, row.offset)
        for row in rows(spark, log_dir, subscribe=OFFSETS)
        if row.is_control
    }
    expected = [
        (row["partition"], row["offset"]) for row in consumed(golden, OFFSETS, "read_committed")
    ]
    assert [place for place in read if place not in marked] == expected
    assert marked & set(read)


@pytest.mark.deep
@pytest.mark.usefixtures("worker_logs")
def test_damage_is_what_mode_says(spark: SparkSession, log_dir: Path) -> None:
    path = log_dir / f"{OFFSETS}-3" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    said = said_by_error(lambda: rows(spark, log_dir, subscribe=OFFSETS))
    assert "CorruptDataError" in said
    kept = rows(spark, log_dir, subscribe=OFFSETS, mode="PERMISSIVE")
    assert [row.offset for row in kept] == [0, 2, 3]
    assert logged_lines(spark, str(path), "checksum")


@pytest.mark.deep
def test_a_snapshot_of_the_metadata_is_read_by_its_path(
    spark: SparkSession, unpacked: Unpack
) -> None:
    # T40
    partition = unpacked("kafka44.logs") / "log-dirs" / f"{METADATA}-0"
    snapshot = sorted(partition.glob("*.checkpoint"))[-1]
    found = rows(spark, snapshot)
    dumped = unpacked("kafka44.messages") / partition.name / f"{snapshot.name}.txt"
    assert len(found) == len(dumped.read_text().splitlines()) > 100
    assert [row.offset for row in found] == list(range(len(found)))
    assert (found[0].record_name, found[-1].record_name) == ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
