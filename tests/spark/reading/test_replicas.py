"""Log directories of several brokers read as one. Rules: F170 to F176."""

import json
import shutil
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.support.logs.log_dirs import add_meta_properties
from tests.support.logs.samples import batch
from tests.support.repository import ROOT, Unpack
from tests.support.spark.kafka_logs import kafkalog_read, logged_lines, offsets_read, write_log

SCHEMA = ROOT / "schemas" / "tables" / "replicas.json"
TOPICS = ("shop.codec-none-0", "shop.codec-zstd-0")
ORDERS = ("orders", 0)


def replica(
    place: Path, broker: int, segments: dict[int, list[bytes]], epochs: str = "0\n1\n0 0\n"
) -> Path:
    """A broker's log directory with orders-0; its log file of base offset 0."""
    add_meta_properties(place, node_id=broker)
    partition = write_log(place, "orders-0", segments)
    (partition / "leader-epoch-checkpoint").write_text(epochs)
    return partition / f"{0:020d}.log"


def overwrite(path: Path, position: int, content: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[position : position + len(content)] = content
    path.write_bytes(data)


@pytest.fixture
def brokers(unpacked: Unpack, tmp_path: Path) -> list[Path]:
    """Two brokers with the same partitions of a real one."""
    logs = unpacked("kafka44.logs") / "log-dirs"
    places = []
    for broker in (1, 2):
        place = tmp_path / f"broker{broker}"
        place.mkdir()
        text = (logs / "meta.properties").read_text()
        (place / "meta.properties").write_text(text.replace("node.id=1", f"node.id={broker}"))
        for topic in TOPICS:
            shutil.copytree(logs / topic, place / topic)
        places.append(place)
    return places


@pytest.mark.usefixtures("worker_logs")
def test_damage_is_filled_from_the_other_broker_and_each_record_comes_once(
    spark: SparkSession, brokers: list[Path], unpacked: Unpack
) -> None:
    topics = ",".join(name.removesuffix("-0") for name in TOPICS)
    expected = kafkalog_read(spark, unpacked("kafka44.logs") / "log-dirs", subscribe=topics)
    for topic in TOPICS:
        path = min((brokers[0] / topic).glob("*.log"))
        overwrite(path, 9000, bytes(4096))
    overwrite(max((brokers[1] / TOPICS[0]).glob("*.log")), 700, b"\xff" * 100)
    both = kafkalog_read(spark, *brokers, includeMetadata=True)
    assert_df_equality(both.select(*expected.columns), expected, ignore_row_order=True)
    assert {row.brokerId for row in both.select("brokerId").distinct().collect()} == {1, 2}
    assert logged_lines(spark, str(brokers[0] / TOPICS[0]), f"read from {brokers[1]}")


@pytest.mark.deep
def test_all_replicas_can_be_read_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    replica(tmp_path / "b1", 1, {0: [batch(0)]})
    replica(tmp_path / "b2", 2, {0: [batch(0), batch(3)]})
    read = kafkalog_read(
        spark, tmp_path / "b1", tmp_path / "b2", replicas="all", includeMetadata=True
    )
    rows = read.select("brokerId", "offset").collect()
    assert sorted(tuple(row) for row in rows) == [
        *((1, offset) for offset in range(3)),
        *((2, offset) for offset in range(6)),
    ]


@pytest.mark.deep
def test_what_a_deposed_leader_wrote_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    # F171 and F173: broker 1 wrote 3 to 8 under epoch 0, broker 2 leads from 3 on under epoch 1.
    replica(tmp_path / "b1", 1, {0: [batch(0), batch(3, value=b"lost"), batch(6, value=b"lost")]})
    new = batch(3, epoch=1, value=b"kept")
    replica(tmp_path / "b2", 2, {0: [batch(0), new]}, "0\n2\n0 0\n1 3\n")
    paths = tmp_path / "b1", tmp_path / "b2"
    values = kafkalog_read(spark, *paths).where("offset >= 3").select("value").collect()
    assert [bytes(row.value) for row in values] == [b"kept"] * 3
    best, other = kafkalog_read(spark, *paths, view="replicas").orderBy("rank").collect()
    assert (best.broker_id, best.leader_epoch, best.diverges_at) == (2, 1, None)
    assert (other.broker_id, other.leader_epoch) == (1, 0)
    assert (other.diverges_at, other.diverges_by) == (3, "leader_epoch")
    assert [tuple(span) for span in other.different_ranges] == [(3, 6)]
    assert [tuple(span) for span in other.extra_ranges] == [(6, 9)]


@pytest.mark.deep
def test_gaps_of_a_cleaned_log_are_left(spark: SparkSession, tmp_path: Path) -> None:
    # F174: broker 1 cleaned 3 to 5 away; only its damaged batch at 6 is filled.
    path = replica(tmp_path / "b1", 1, {0: [batch(0), batch(6), batch(9)]})
    overwrite(path, len(batch(0)) + 70, b"\xff")
    (tmp_path / "b1" / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    replica(tmp_path / "b2", 2, {0: [batch(0), batch(9)]})
    read = kafkalog_read(spark, tmp_path / "b1", tmp_path / "b2", mode="PERMISSIVE")
    assert offsets_read(read) == {ORDERS: [0, 1, 2, 9, 10, 11]}
    sound = replica(tmp_path / "b3", 3, {0: [batch(0), batch(6), batch(9), batch(12)]})
    sound.with_name(f"{0:020d}.index").unlink()
    cleaned = kafkalog_read(spark, tmp_path / "b1", tmp_path / "b3")
    assert offsets_read(cleaned) == {ORDERS: [0, 1, 2, *range(6, 15)]}


@pytest.mark.deep
def test_the_report_says_who_lacks_what(spark: SparkSession, tmp_path: Path) -> None:
    batches = [batch(0), batch(3), batch(6)]
    path = replica(tmp_path / "b1", 1, {0: batches})
    overwrite(path, len(batches[0]) + 70, b"\xff")
    replica(tmp_path / "b2", 2, {0: batches[:2]})
    frame = kafkalog_read(spark, tmp_path / "b1", tmp_path / "b2", view="replicas")
    assert frame.schema == StructType.fromJson(json.loads(SCHEMA.read_text()))
    best, other = frame.orderBy("rank").collect()
    assert (best.broker_id, best.log_end_offset, best.replicas) == (1, 9, 2)
    (damaged,) = best.damaged_ranges
    assert damaged.asDict() == {
        "start_offset": 3,
        "end_offset": 6,
        "file": str(path),
        "position": len(batches[0]),
        "bytes": len(batches[1]),
        "kind": "checksum",
        "is_elsewhere": True,
    }
    assert best.damaged_bytes == len(batches[1])
    assert (other.broker_id, other.log_end_offset, other.diverges_at) == (2, 6, None)
    assert [span.asDict()["end_offset"] for span in other.equal_ranges] == [3]
    assert [tuple(span) for span in other.missing_ranges] == [(6, 9)]
    assert [tuple(span) for span in other.extra_ranges] == [(3, 6)]
    assert other.damaged_ranges == []
