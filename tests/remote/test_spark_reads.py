"""Spark reads an object store as it reads a disk, with credentials that stay hidden."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafkalog.views.options.options import View
from tests.remote.faulty_proxy import Fault
from tests.remote.gateway import SECRET_KEY
from tests.remote.stores import Store, needs_store
from tests.support.repository import EXAMPLES, Unpack
from tests.support.spark.kafka_logs import kafkalog_read

pytestmark = [*needs_store, pytest.mark.spark]
_SHORT = (View.RECORDS, View.BYTE_RANGES, View.SEGMENTS)


def rows(frame: DataFrame, written: str, as_if: str) -> list[str]:
    """All rows as text, sorted, with one path in place of another. Times of files are left out:
    a store has whole seconds."""
    found = (str(row.asDict(recursive=True)) for row in frame.collect())
    return sorted(re.sub("'modified_ms': [^,}]*", "", row).replace(written, as_if) for row in found)


def both(spark: SparkSession, store: Store, **options: Any) -> tuple[list[str], list[str]]:
    """The rows by URIs with options, and those by paths."""
    uri, folder = store.bucket(EXAMPLES)
    local = [f"{folder}/kafka-4.4", f"{folder}/damaged"]
    remote = [f"{uri}/kafka-4.4", f"{uri}/damaged"]
    return (
        rows(kafkalog_read(spark, *remote, **store.options, **options), uri, str(folder)),
        rows(kafkalog_read(spark, *local, **options), "", ""),
    )


@pytest.mark.parametrize(
    "view",
    [view if view in _SHORT else pytest.param(view, marks=pytest.mark.deep) for view in View],
    ids=lambda view: view.value,
)
def test_every_view_has_the_rows_that_it_has_of_a_disk(
    spark: SparkSession, store: Store, view: View
) -> None:
    """F540: the process of the tests' session knows nothing of the store, all is in the options."""
    remote, local = both(spark, store, view=view.value, mode="PERMISSIVE", asOf=1795309918000)
    assert remote == local


def test_committed_records_of_a_store_are_those_of_a_disk(
    spark: SparkSession, store: Store
) -> None:
    remote, local = both(spark, store, isolationLevel="read_committed", mode="PERMISSIVE")
    assert remote == local


def test_zookeepers_files_are_read_from_a_store(
    spark: SparkSession, store: Store, unpacked: Unpack
) -> None:
    """F540."""
    uri, folder = store.bucket(unpacked("kafka39zk.zookeeper"))
    place = next(path.parent for path in sorted(folder.rglob("version-2")))
    reader = spark.read.format("zookeeper")
    remote = reader.options(**store.options).load(str(place).replace(str(folder), uri))
    local = spark.read.format("zookeeper").load(str(place))
    assert rows(remote, uri, str(folder)) == rows(local, "", "")
    assert local.count() > 0


def test_secrets_are_in_no_plan_and_no_error(spark: SparkSession, store: Store) -> None:
    """F545."""
    uri, _ = store.bucket(EXAMPLES / "kafka-4.4")
    frame = kafkalog_read(spark, uri, **store.options)
    plans = frame._jdf.queryExecution().toString()
    assert SECRET_KEY not in plans
    with store.proxy.faulty(Fault.REFUSED, ".log"), pytest.raises(PySparkException) as caught:
        frame.count()
    assert "CorruptDataError" in str(caught.value)
    assert "unreadable" in str(caught.value)
    assert SECRET_KEY not in str(caught.value)


def test_a_setting_that_the_store_does_not_have_is_named_without_its_value(
    spark: SparkSession, store: Store
) -> None:
    """F545."""
    uri, _ = store.bucket(EXAMPLES / "kafka-4.4")
    options = store.options | {"storage.sekretKey": SECRET_KEY}
    with pytest.raises(PySparkException, match=r"storage\.sekretkey") as caught:
        kafkalog_read(spark, uri, **options).count()
    assert SECRET_KEY not in str(caught.value)
    assert "storage.secretKey" in str(caught.value)


def test_an_object_that_vanishes_after_planning_is_data_loss(
    spark: SparkSession, store: Store
) -> None:
    """F543."""
    uri, folder = store.bucket(EXAMPLES / "kafka-4.4")
    options = store.options | {"subscribe": "shop.tx"}
    frame = kafkalog_read(spark, uri, **options)
    lenient = kafkalog_read(spark, uri, **options, failOnDataLoss="false")
    whole = frame.count()
    assert lenient.count() == whole
    (folder / "shop.tx-0" / "00000000000000000002.log").unlink()
    with pytest.raises(PySparkException, match=r"00000000000000000002\.log no longer exists"):
        frame.count()
    assert 0 < lenient.count() < whole


def test_a_stream_reads_a_store(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    """F545: options of a stream get to the process that plans it."""
    uri, folder = store.bucket(EXAMPLES / "kafka-4.4")
    options = {"subscribe": "shop.tx", "startingOffsets": "earliest"}
    stream = spark.readStream.format("kafkalog").options(**options, **store.options).load(uri)
    query = (
        stream.select("offset")
        .writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .format("parquet")
        .start(str(tmp_path / "rows"))
    )
    query.awaitTermination()
    streamed = spark.read.parquet(str(tmp_path / "rows")).count()
    assert streamed == kafkalog_read(spark, folder, subscribe="shop.tx").count()


def test_a_few_offsets_take_a_share_of_the_bytes(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """F542: of a topic with four segments one is opened."""
    uri, folder = store.bucket(EXAMPLES / "kafka-4.4")
    offsets = {"startingOffsets": '{"shop.tx":{"0":420}}', "endingOffsets": '{"shop.tx":{"0":430}}'}
    frame = kafkalog_read(spark, uri, subscribe="shop.tx", **offsets, **store.options)
    assert frame.count() > 0
    opened = {Path(request.key).name for request in store.proxy.reads(".log")}
    assert opened == {"00000000000000000418.log"}
    whole = sum(path.stat().st_size for path in folder.rglob("*.log"))
    assert sum(request.size for request in store.proxy.reads(".log")) < whole / 10
