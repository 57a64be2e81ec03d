"""Which file each row is in, and what is reported of each file; read back by Arrow's reader."""

import os
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

from kafkalog.lake.layout import Compression, PartitionBy, TableLayout, TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.record_rows import RECORD_COLUMNS, RecordRows
from kafkalog.lake.table_writer import PENDING_FOLDER, TableWriter
from kafkalog.lake.written_file import rows_by_partition

_HOUR_MS = 3_600_000
_CONSTANTS = {"cluster_id": "cluster", "input_path": None, "ingest_run": 7}


def _records(offsets, times_ms):
    count = len(offsets)
    times = [None if each == -1 else each * 1000 for each in times_ms]
    return pa.record_batch(
        {
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * count, pa.int32()),
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array([b"v" * 100] * count, pa.binary()),
            "headers": pa.nulls(
                count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
            ),
            "timestampMs": pa.array(times_ms, pa.int64()),
            "leaderEpoch": pa.array([None] * count, pa.int32()),
            "brokerId": pa.array([1] * count, pa.int32()),
        }
    ).select(RECORD_COLUMNS)


def _rows(offsets, times_ms, topic="orders", partition=0):
    made = RecordRows({"topic": topic, "partition": partition, **_CONSTANTS})
    return made.of(_records(offsets, times_ms)), (topic, partition)


@pytest.fixture
def directory(tmp_path):
    return OutputDirectory(str(tmp_path / "table"))


def test_what_is_reported_of_a_file_is_what_is_in_it(directory):
    writer = TableWriter(TableOutput(directory.path, 7))
    writer.write(*_rows([3, 4, 9], [5, -1, 2]))
    writer.write(*_rows([1], [8], "payments", 2))
    (file,) = writer.close()
    table = pq.read_table(directory.location(file.path))
    assert table.schema.field("topic").type == pa.string()
    assert table["offset"].to_pylist() == [3, 4, 9, 1]
    assert table["timestamp_ms"].to_pylist() == [5, None, 2, 8]
    assert table["ingest_run"].to_pylist() == [7] * 4
    assert file.rows == 4
    assert file.size == os.path.getsize(directory.location(file.path))
    assert file.rows_of == {("orders", 0): 3, ("payments", 2): 1}
    assert rows_by_partition([file, file]) == {("orders", 0): 6, ("payments", 2): 2}
    assert (file.least["topic"], file.greatest["topic"]) == ("orders", "payments")
    assert (file.least["offset"], file.greatest["offset"]) == (1, 9)
    assert (file.least["timestamp"], file.greatest["timestamp"]) == (2000, 8000)
    assert file.null_counts["timestamp"] == 1
    assert file.null_counts["input_path"] == 4
    assert "input_path" not in file.least
    assert not {"key", "value", "headers.list.element.key"} & set(file.null_counts)


def test_rows_are_in_the_partition_of_their_hour_before_1970_and_without_a_time_too(directory):
    layout = TableLayout((PartitionBy.TOPIC, PartitionBy.HOUR))
    writer = TableWriter(TableOutput(directory.path, 7, layout))
    noon = int(datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp() * 1000)
    writer.write(*_rows([0, 1, 2, 3], [noon, noon + _HOUR_MS - 1, -2, -1]))
    writer.write(*_rows([4], [noon], partition=1))
    files = {file.partition_values["hour"]: file for file in writer.close()}
    assert {hour: file.rows for hour, file in files.items()} == {
        "2026-11-23-12": 3,
        "1969-12-31-23": 1,
        None: 1,
    }
    assert files["2026-11-23-12"].path.startswith("topic=orders/hour=2026-11-23-12/")
    assert files[None].path.startswith("topic=orders/hour=__HIVE_DEFAULT_PARTITION__/")
    read = dataset.dataset(directory.path, partitioning="hive").to_table()
    assert sorted(read["offset"].to_pylist()) == [0, 1, 2, 3, 4]
    assert set(read["topic"].to_pylist()) == {"orders"}


def test_a_file_that_has_reached_its_size_is_followed_by_another(directory, monkeypatch):
    monkeypatch.setattr("kafkalog.lake.table_writer.ROW_GROUP_BYTES", 10_000)
    layout = TableLayout(target_file_bytes=40_000, compression=Compression.NONE)
    writer = TableWriter(TableOutput(directory.path, 7, layout))
    for first in range(0, 4000, 40):
        writer.write(*_rows(range(first, first + 40), [5] * 40))
    files = writer.close()
    assert len(files) > 5
    assert all(40_000 <= file.size < 60_000 for file in files[:-1])
    found = [
        offset
        for file in files
        for offset in pq.read_table(directory.location(file.path))["offset"].to_pylist()
    ]
    assert found == list(range(4000))


def test_abort_leaves_nothing(directory, tmp_path):
    writer = TableWriter(TableOutput(directory.path, 7, has_pending_folder=True))
    writer.write(*_rows([0], [5]))
    (file,) = writer.close()
    assert file.pending_path is not None
    assert file.pending_path.startswith(f"{PENDING_FOLDER}/")
    assert directory.size(file.pending_path) == file.size
    assert not directory.exists(file.path)
    writer.abort()
    assert directory.files() == []


def test_abort_removes_what_is_written_where_another_file_cannot_be(directory, tmp_path):
    writer = TableWriter(TableOutput(directory.path, 7, TableLayout((PartitionBy.TOPIC,))))
    writer.write(*_rows([0], [5], "a"))
    writer.write(*_rows([0], [5], "b"))
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "topic=b").touch()
    with pytest.raises(OSError, match="topic=b"):
        writer.close()
    assert len(directory.files("topic=a")) == 1
    writer.abort()
    assert directory.files("topic=a") == []


def test_a_task_without_rows_writes_no_file(directory):
    assert TableWriter(TableOutput(directory.path, 7)).close() == []
