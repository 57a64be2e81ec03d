"""Rows written as segments and read again, and what is refused. Rules of tables: F939."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kafkalog
from kafkalog.errors import OptionError, SchemaError
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.lake.layout import PartitionBy, TableLayout
from kafkalog.lake.parquet.parquet_table import ParquetTable
from kafkalog.storage.names import LOG_STARTS, RECOVERY_POINTS, REPLICATION_OFFSETS
from kafkalog.views.options.write_options import write_options
from kafkalog.wire.compression import CompressionType
from tests.support.golden.fixture_sets import CONSUMERS
from tests.support.jobs.job_runs import needs_delta
from tests.support.lake.exports import exported
from tests.support.repository import SHOP, Unpack
from tests.support.spark.kafka_logs import kafkalog_read, said_by_error

_COLUMNS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
_ORDER = 'repartition("topic", "partition").sortWithinPartitions("topic", "partition", "offset")'


def orders(spark: SparkSession, *places: tuple[int, int]) -> DataFrame:
    """A row for each partition and offset, in this order and in one task."""
    rows = [(b"key", b"value", "orders", partition, offset, None) for partition, offset in places]
    return spark.createDataFrame(rows, _COLUMNS).coalesce(1)


def write(frame: DataFrame, target: Path | str, mode: str = "append", **options: Any) -> None:
    frame.write.format("kafkalog").mode(mode).options(**options).save(str(target))


def found(log_dir: Path) -> list[str]:
    return sorted(path.name for path in log_dir.iterdir()) if log_dir.exists() else []


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows in the order of the logs, times as numbers."""
    table = frame.toArrow()
    times = table["timestamp"].cast(pa.int64())
    table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", times)
    return sorted(
        table.to_pylist(), key=lambda row: (row["topic"], row["partition"], row["offset"])
    )


def as_written(row: dict[str, Any]) -> dict[str, Any]:
    """Nothing is written in format 0, the only one without a type of timestamps."""
    return {**row, "timestampType": max(row["timestampType"], 0)}


@pytest.mark.parametrize(
    ("name", "compression"),
    [
        pytest.param(name, codec, marks=[] if name == "kafka010" else pytest.mark.deep)
        for name, codec in zip(
            CONSUMERS, ("none", "gzip", "snappy", "lz4", "zstd") * len(CONSUMERS), strict=False
        )
    ],
)
def test_what_is_read_written_and_read_again_is_the_same(
    name: str, compression: str, spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    # F560 to F566.
    logs = unpacked(f"{name}.logs")
    place = logs / ("log-dirs/*" if name == "kafka39zk" else "log-dirs")
    read = kafkalog_read(spark, place, includeHeaders=True, includeMetadata=True, subscribe="*")
    kept = read.drop("compression", "magic", "batchBaseOffset", "file", "position", "brokerId")
    expected = kept.drop("isTransactional")
    kafkalog.write(kept, str(tmp_path / "logs"), compression=compression, segment_bytes=2**20)
    again = kafkalog_read(
        spark, tmp_path / "logs", includeHeaders=True, includeMetadata=True, subscribe="*"
    )
    assert {row.compression for row in again.select("compression").distinct().collect()} == {
        compression
    }
    rows = rows_of(again.select(expected.columns))
    assert rows == [as_written(row) for row in rows_of(expected)]


@pytest.mark.deep
def test_checkpoints_say_where_logs_begin_and_end(spark: SparkSession, tmp_path: Path) -> None:
    # F564, F567.
    write(orders(spark, (0, 7), (0, 9), (1, 0)), tmp_path / "logs", batchSize=1, segmentBytes=100)
    write(orders(spark, (2, 3)), tmp_path / "logs")
    offsets = {
        name: read_offset_checkpoint((tmp_path / "logs" / name).read_text())
        for name in (LOG_STARTS, REPLICATION_OFFSETS, RECOVERY_POINTS)
    }
    assert offsets[LOG_STARTS] == {("orders", 0): 7, ("orders", 1): 0, ("orders", 2): 3}
    ends = {("orders", 0): 10, ("orders", 1): 1, ("orders", 2): 4}
    assert offsets[REPLICATION_OFFSETS] == offsets[RECOVERY_POINTS] == ends
    assert found(tmp_path / "logs" / "orders-0") == [
        *(f"{7:020d}{kind}" for kind in (".index", ".log", ".timeindex")),
        *(f"{9:020d}{kind}" for kind in (".index", ".log", ".snapshot", ".timeindex")),
        f"{10:020d}.snapshot",
        "leader-epoch-checkpoint",
    ]
    assert kafkalog_read(spark, tmp_path / "logs").count() == 4


@pytest.mark.deep
def test_without_offsets_rows_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    # F564.
    frame = spark.range(5, numPartitions=1).selectExpr(
        "cast(id as string) value", "cast(id div 3 as int) partition"
    )
    write(frame, tmp_path / "logs", topic="counted")
    rows = rows_of(kafkalog_read(spark, tmp_path / "logs"))
    assert [(row["topic"], row["partition"], row["offset"], row["value"]) for row in rows] == [
        ("counted", 0, 0, b"0"),
        ("counted", 0, 1, b"1"),
        ("counted", 0, 2, b"2"),
        ("counted", 1, 0, b"3"),
        ("counted", 1, 1, b"4"),
    ]
    assert {(row["key"], row["timestamp"], row["timestampType"]) for row in rows} == {
        (None, None, 0)
    }


@pytest.mark.deep
def test_the_topics_id_stands_in_each_partition(spark: SparkSession, tmp_path: Path) -> None:
    # F568.
    write(orders(spark, (0, 0)), tmp_path / "logs", topicIds='{"orders":"Yt1hSGvuQFW1XJcKgl0wfw"}')
    text = (tmp_path / "logs" / "orders-0" / "partition.metadata").read_text()
    assert read_topic_id(text) == "Yt1hSGvuQFW1XJcKgl0wfw"


@needs_delta
def test_a_session_that_merges_schemas_of_delta_writes_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F1342: Spark's V2Writes asserts that the command and the table have the same options.
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        kafkalog.write(orders(spark, (0, 0), (0, 1)), str(tmp_path / "logs"))
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert kafkalog_read(spark, tmp_path / "logs").count() == 2


@pytest.mark.deep
@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([(0, 1), (0, 1)], "offset 1 after 1"),
        ([(0, 2), (0, 1)], "offset 1 after 2"),
        ([(0, 1), (1, 1), (0, 2)], "rows of orders-0 came again after others"),
        ([(0, -1)], "offset -1"),
        ([(-1, 0)], "topic 'orders', partition -1"),
    ],
)
def test_rows_in_another_order_are_refused_and_nothing_is_left(
    places: list[tuple[int, int]], words: str, spark: SparkSession, tmp_path: Path
) -> None:
    # F565, F569.
    said = said_by_error(lambda: write(orders(spark, *places), tmp_path / "logs"))
    assert words in said
    assert (_ORDER in said) == ("after" in words)
    assert found(tmp_path / "logs") == []


@pytest.mark.deep
def test_a_partition_in_two_tasks_is_refused_and_nothing_is_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F565, F569.
    frame = spark.range(2, numPartitions=2).selectExpr(
        "cast('value' as binary) value", "'orders' topic", "0 partition", "4 * id + 1 offset"
    )
    said = said_by_error(lambda: write(frame, tmp_path / "logs"))
    assert "orders-0 came in two tasks, offsets 1 to 2 and 5 to 6" in said
    assert _ORDER in said
    assert found(tmp_path / "logs") == []
    kafkalog.write(frame, str(tmp_path / "logs"))
    assert kafkalog_read(spark, tmp_path / "logs").count() == 2


def test_what_is_there_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    # F566.
    write(orders(spark, (0, 1)), tmp_path / "logs")
    before = found(tmp_path / "logs")
    said = said_by_error(lambda: write(orders(spark, (0, 2), (1, 2)), tmp_path / "logs"))
    assert "orders-0 exists: kafkalog writes only new, whole partitions" in said
    assert found(tmp_path / "logs") == before
    said = said_by_error(lambda: write(orders(spark, (1, 2)), tmp_path / "logs", "overwrite"))
    assert "expected append" in said
    (tmp_path / "logs" / "meta.properties").touch()
    said = said_by_error(lambda: write(orders(spark, (1, 2)), tmp_path / "logs"))
    assert "is a broker's log directory, nothing is written there" in said


@pytest.mark.deep
def test_a_record_without_place_or_header_name_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = orders(spark, (0, 0))
    for changed, words in (
        (frame.selectExpr("value", "topic", "cast(null as int) partition"), "without a topic or"),
        (frame.selectExpr("value", "topic", "partition", "cast(null as long) offset"), "an offset"),
        (
            frame.selectExpr(
                "*", "array(struct(cast(null as string) key, cast('a' as binary) value)) headers"
            ),
            "a header without a key",
        ),
    ):
        said = said_by_error(lambda changed=changed: write(changed, tmp_path / "logs"))  # type: ignore[misc]
        assert words in said
        assert found(tmp_path / "logs") == []


@pytest.mark.deep
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("value, topic", "no column partition"),
        ("value, partition", "no column topic"),
        ("*, 1 extra", "column extra has no place in a record"),
        ("value, topic, cast(partition as long) partition", "partition is of type bigint"),
        ("*, 5L producerId", "producerId, producerEpoch, sequence belong together"),
    ],
)
def test_columns_that_are_not_records_are_refused(
    columns: str, words: str, spark: SparkSession, tmp_path: Path
) -> None:
    frame = orders(spark, (0, 0)).selectExpr(*columns.split(", "))
    assert words in said_by_error(lambda: write(frame, tmp_path / "logs"))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "s3://bucket/logs"}, "not a URI"),
        ({"path": ""}, "path: missing"),
        ({"compression": "brotli"}, "one of none, gzip, snappy, lz4, zstd"),
        ({"topicIds": '{"orders":"short"}'}, "topicIds"),
        ({"topicIds": "orders"}, "topicIds"),
        ({"segmentBytes": "0"}, "segmentBytes"),
        ({"kafka.bootstrap.servers": "localhost:9092"}, "kafkalog writes files, not to a broker"),
        ({"segmentSize": "1"}, "an option: "),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        write_options({"path": "/logs", **options})
    assert words in str(caught.value)


@pytest.mark.deep
def test_options_are_those_of_kafkas_topics() -> None:
    options = write_options({"path": "logs", "COMPRESSION": "Zstd", "segmentbytes": "1000"})
    assert options.log_dir == os.path.abspath("logs")
    assert options.compression is CompressionType.ZSTD
    assert options.settings.segment_bytes == options.settings.max_message_bytes == 1000


@pytest.mark.deep
def test_rows_without_offsets_are_in_no_order_of_a_log(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="no column offset to sort by"):
        kafkalog.write(orders(spark, (0, 0)).drop("offset"), "/nowhere")


@pytest.mark.parametrize(
    "partition_by", [(), pytest.param((PartitionBy.DAY,), marks=pytest.mark.deep)]
)
def test_a_table_of_an_export_is_written_as_it_is_by_any_session(
    partition_by: tuple[PartitionBy, ...], spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "lake" / "ingested_records"
    exported(ParquetTable(str(table), TableLayout(partition_by)), [SHOP], subscribe="orders")
    # Another session knows none of the formats that were registered with this one.
    own = spark.newSession()
    kafkalog.write(own.read.parquet(str(table)), str(tmp_path / "logs"))
    shown = {"includeHeaders": "true", "includeMetadata": "true", "subscribe": "orders"}
    columns = "topic partition offset timestamp timestampType key value headers timestampMs"
    again, first = (
        rows_of(kafkalog_read(spark, path, **shown).select(*columns.split(), "leaderEpoch"))
        for path in (tmp_path / "logs", SHOP)
    )
    assert again == first
    assert len(first) > 100


def test_decoded_rows_without_their_bytes_are_never_written_as_deletes(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [("a", 0, 0, b"{}", "{}"), ("a", 0, 1, None, None), ("a", 0, 2, b"{", None)]
    names = "topic string, partition int, offset long, value binary, value_decoded string"
    frame = spark.createDataFrame(rows, names)
    kafkalog.write(frame, str(tmp_path / "whole"))
    assert found(tmp_path / "whole")
    lost = spark.createDataFrame([*rows, ("a", 0, 3, None, "{}")], names)
    with pytest.raises(PySparkException) as caught:
        kafkalog.write(lost, str(tmp_path / "lost"))
    assert "rows have value_decoded and no value: their bytes were left out" in str(caught.value)
    assert [name for name in found(tmp_path / "lost") if not name.startswith(".")] == []


def test_two_columns_for_one_part_of_a_record_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = orders(spark, (0, 0)).selectExpr("*", "0L AS timestampMs", "0L AS timestamp_ms")
    with pytest.raises(Exception, match="timestampMs and timestamp_ms are the same part"):
        kafkalog.write(frame, str(tmp_path / "logs"))
