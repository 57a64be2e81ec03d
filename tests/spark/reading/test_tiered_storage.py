"""Topics with tiered storage are read from their beginning: what was uploaded and what is on the
disk give the records that a consumer received."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from tests.support.golden.fixture_sets import consumed
from tests.support.logs.tiered_objects import store_segment
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import kafkalog_read, said_by_error

TOPICS = ("tier.local", "tier.tiered", "tier.tiered.tx")
STORE = "kafka-tiered-storage"


def rows(spark: SparkSession, *paths: Path | str, **options: Any) -> list[tuple[Any, ...]]:
    frame = kafkalog_read(spark, *paths, **options)
    return sorted(
        tuple(row) for row in frame.select("topic", "partition", "offset", "key", "value").collect()
    )


def received(golden: Path, isolation: str, *topics: str) -> list[tuple[Any, ...]]:
    return sorted(
        (topic, row["partition"], row["offset"], row["key"], row["value"])
        for topic in topics
        for row in consumed(golden, topic, isolation)
    )


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_tiered_topics_are_read_whole(
    spark: SparkSession, unpacked: Unpack, isolation: str
) -> None:
    """F555, F558."""
    paths = unpacked("tiered43.tiered") / STORE, unpacked("tiered43.logs") / "log-dirs"
    topics = ",".join(TOPICS)
    read = rows(spark, *paths, isolationLevel=isolation, subscribe=topics)
    assert read == received(unpacked("tiered43.golden"), isolation, *TOPICS)


@pytest.mark.deep
def test_what_is_uploaded_can_be_read_alone(spark: SparkSession, unpacked: Unpack) -> None:
    """F555: kafka-get-offsets says up to which offset each partition is in tiered storage."""
    golden = unpacked("tiered43.golden")
    latest = (golden / "tools" / "get_offsets_time-5.txt").read_text().split()
    ends = {(t, int(p)): int(offset) for t, p, offset in (line.split(":") for line in latest)}
    wanted = [
        row
        for row in received(golden, "read_uncommitted", "tier.tiered", "tier.tiered.tx")
        if row[2] <= ends[row[0], row[1]]
    ]
    assert rows(spark, unpacked("tiered43.tiered") / STORE) == wanted


def batch(first_offset: int, count: int, epoch: int) -> bytes:
    """A batch whose records say by which leader they were written."""
    records = [
        Record(offset, 1000, 0, b"%d" % offset, b"epoch %d" % epoch)
        for offset in range(first_offset, first_offset + count)
    ]
    return write_batch(records, BatchFields(leader_epoch=epoch))


@pytest.mark.deep
@pytest.mark.parametrize("is_compressed", [False, True])
def test_rows_of_overlapping_uploads_are_there_once(
    spark: SparkSession, tmp_path: Path, is_compressed: bool
) -> None:
    """F556 to F558: the first leader uploaded 0 to 99 and 100 to 119; the second, whose log was cut
    at 80, 60 to 129 and the same again; 130 to 139 follow."""
    first, second = batch(0, 60, 0) + batch(60, 20, 0) + batch(80, 20, 0), batch(60, 20, 0)
    store = partial(store_segment, tmp_path, "t-0", is_compressed=is_compressed, chunk_bytes=500)
    store(0, first, number=1)
    store(100, batch(100, 20, 0), number=2)
    for number in (3, 4):
        segment = second + batch(80, 50, 1)
        store(60, segment, number=number, epochs={0: 60, 1: 80})
    store(130, batch(130, 10, 1), number=5, epochs={1: 130})
    read = rows(spark, tmp_path)
    assert [row[2] for row in read] == list(range(140))
    assert [row[4] for row in read] == [b"epoch 0"] * 80 + [b"epoch 1"] * 60
    assert kafkalog_read(spark, tmp_path).count() == 140
    offsets = {"startingOffsets": '{"t":{"0":55}}', "endingOffsets": '{"t":{"0":65}}'}
    assert [row[2] for row in rows(spark, tmp_path, **offsets)] == list(range(55, 65))


@pytest.mark.deep
@pytest.mark.parametrize("view", ["segments", "recovery_plan"])
def test_views_of_a_brokers_disk_refuse_tiered_storage(
    spark: SparkSession, tmp_path: Path, view: str
) -> None:
    """F558."""
    store_segment(tmp_path, "t-0", 0, batch(0, 5, 0))
    said = said_by_error(lambda: kafkalog_read(spark, tmp_path, view=view).count())
    assert "in tiered storage" in said


@pytest.mark.deep
@pytest.mark.parametrize("view", ["batches", "faults", "transactions", "stable_offsets"])
def test_other_views_read_it(spark: SparkSession, unpacked: Unpack, view: str) -> None:
    paths = unpacked("tiered43.tiered") / STORE, unpacked("tiered43.logs") / "log-dirs"
    frame = kafkalog_read(spark, *paths, view=view, subscribe="tier.tiered,tier.tiered.tx")
    assert (frame.count() == 0) == (view == "faults")
