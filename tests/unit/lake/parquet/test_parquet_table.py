"""Runs into a directory of Parquet files, read back by Arrow's own reader. Rules: F650 to F653."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkalog.errors import OptionError, StatePositionError
from kafkalog.lake.layout import PartitionBy, TableLayout
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet.parquet_table import ParquetTable
from tests.support.lake.exports import exported, planned_run, sorted_rows, view_rows, written_files
from tests.support.lake.parquet_tables import listed, named, parquet_names
from tests.support.repository import EXAMPLES, SHOP

FIRST_OFFSETS: dict[str, Any] = {
    "subscribe": "orders,customers",
    "endingOffsets": json.dumps({"orders": {"0": 50, "1": 70, "2": 80}, "customers": {"0": 10}}),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "ingested_records"


@pytest.fixture
def table(path: Path) -> ParquetTable:
    return ParquetTable(str(path))


@pytest.mark.parametrize("partition_by", [(), (PartitionBy.TOPIC, PartitionBy.DAY)])
@pytest.mark.parametrize("logs", [EXAMPLES / "kafka-4.4", EXAMPLES / "kafka-0.10", SHOP])
def test_the_rows_are_those_of_view_records(
    logs: Path, partition_by: tuple[PartitionBy, ...], path: Path
) -> None:
    exported(ParquetTable(str(path), TableLayout(partition_by)), [logs])
    expected = view_rows([logs])
    assert len(expected) > 100
    assert sorted_rows(listed(path)) == expected
    if not partition_by:
        assert sorted_rows(named(path)) == expected


def test_a_run_adds_what_is_new(table: ParquetTable, path: Path) -> None:
    first = exported(table, [SHOP], **FIRST_OFFSETS)
    assert listed(path).num_rows == 210
    before = parquet_names(path)
    second = exported(ParquetTable(str(path)), [SHOP])
    assert before < parquet_names(path)
    assert sorted_rows(listed(path)) == sorted_rows(named(path)) == view_rows([SHOP])
    recorded = table.recorded()
    assert recorded is not None
    assert recorded.next_offsets == second.positions.next_offsets
    assert (first.positions.run, recorded.run) == (1, 2)
    assert not list((path / "_uncommitted").iterdir())


def test_a_run_without_work_changes_nothing(table: ParquetTable, path: Path) -> None:
    exported(table, [SHOP])
    before = {each: each.stat().st_mtime_ns for each in path.parent.rglob("*")}
    assert not exported(ParquetTable(str(path)), [SHOP]).has_work
    assert {each: each.stat().st_mtime_ns for each in path.parent.rglob("*")} == before


def test_a_run_of_which_no_record_is_kept_moves_the_positions(
    table: ParquetTable, path: Path
) -> None:
    run = planned_run(table, [SHOP])
    table.prepare(run)
    table.commit([], run.with_rows({}))
    assert table.recorded() == run.with_rows({}).positions
    assert parquet_names(path) == set()


def test_each_run_is_in_table_ingest_manifest(table: ParquetTable, path: Path) -> None:
    # F535
    exported(table, [SHOP], **FIRST_OFFSETS)
    exported(table, [SHOP])
    rows = parquet.read_table(path.parent / "ingest_manifest").to_pylist()
    found = {
        (row["ingest_run"], row["topic"], row["partition"]): (
            row["from_offset"],
            row["until_offset"],
            row["rows"],
        )
        for row in rows
    }
    assert len(rows) == len(found) == 8
    assert found[1, "orders", 1] == (0, 70, 70)
    assert found[2, "orders", 1] == (70, 1380, 1310)
    assert found[2, "customers", 0] == (10, 300, 290)


@pytest.mark.parametrize("partition_by", [(), (PartitionBy.TOPIC,)])
def test_a_range_is_replaced_and_no_file_outside_is_touched(
    partition_by: tuple[PartitionBy, ...], path: Path
) -> None:
    # F533 and F653
    table = ParquetTable(str(path), TableLayout(partition_by))
    exported(table, [SHOP], **FIRST_OFFSETS)
    exported(table, [SHOP])
    before = parquet_names(path)
    starts = json.dumps({"orders": {"0": 60, "1": 70, "2": 80}})
    ends = json.dumps({"orders": {"0": 100, "1": 1380, "2": 81}})
    exported(table, [SHOP], subscribe="orders", startingOffsets=starts, endingOffsets=ends)
    rows = listed(path)
    assert sorted_rows(rows) == view_rows([SHOP])
    runs = {
        (row["topic"], row["partition"], row["offset"]): row["ingest_run"]
        for row in rows.select(["topic", "partition", "offset", "ingest_run"]).to_pylist()
    }
    assert [runs["orders", 0, offset] for offset in (49, 59, 60, 99, 100)] == [1, 2, 3, 3, 2]
    assert {run for (topic, partition, _), run in runs.items() if topic == "customers"} == {1, 2}
    assert {run for (_, partition, offset), run in runs.items() if (partition, offset) == (1, 70)}
    assert before & parquet_names(path)  # the files of the first run


def test_full_refresh_replaces_partitions_as_a_whole(table: ParquetTable, path: Path) -> None:
    exported(table, [SHOP], **FIRST_OFFSETS)
    exported(table, [SHOP])
    exported(table, [SHOP], full_refresh=True, subscribe="orders")
    rows = listed(path)
    assert sorted_rows(rows) == view_rows([SHOP])
    runs = rows.select(["topic", "ingest_run"]).to_pylist()
    assert {row["ingest_run"] for row in runs if row["topic"] == "orders"} == {3}
    assert {row["ingest_run"] for row in runs if row["topic"] == "customers"} == {1, 2}


def test_of_two_runs_at_once_one_writes_and_the_other_has_changed_nothing(
    table: ParquetTable, path: Path
) -> None:
    exported(table, [SHOP], **FIRST_OFFSETS)
    one, other = ParquetTable(str(path)), ParquetTable(str(path))
    runs = [planned_run(each, [SHOP]) for each in (one, other)]
    files = [written_files(each, [SHOP], run) for each, run in zip((one, other), runs, strict=True)]
    one.commit(files[0], runs[0])
    after = {each: each.read_bytes() for each in path.parent.rglob("*.*")}
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        other.commit(files[1], runs[1])
    remaining = {each: each.read_bytes() for each in path.parent.rglob("*.*")}
    assert sorted(remaining) == sorted(each for each in after if each.suffix != ".pending")
    assert all(after[each] == data for each, data in remaining.items())
    assert sorted_rows(listed(path)) == view_rows([SHOP])


@pytest.mark.parametrize("is_new", [True, False])
def test_of_many_commits_at_once_exactly_one_is_done(path: Path, is_new: bool) -> None:
    if not is_new:
        exported(ParquetTable(str(path)), [SHOP], **FIRST_OFFSETS)
    tables = [ParquetTable(str(path)) for _ in range(6)]
    runs = [planned_run(table, [SHOP]) for table in tables]
    files = [written_files(table, [SHOP], run) for table, run in zip(tables, runs, strict=True)]
    start = Barrier(len(tables))

    def is_written(index: int) -> bool:
        start.wait()
        try:
            tables[index].commit(files[index], runs[index])
        except StatePositionError:
            return False
        return True

    with ThreadPoolExecutor(len(tables)) as executor:
        assert sum(executor.map(is_written, range(len(tables)))) == 1
    assert sorted_rows(listed(path)) == view_rows([SHOP])
    assert not list((path / "_uncommitted").iterdir())


def _full(path: str, *_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def test_a_full_disk_while_tasks_write_leaves_the_table_as_it_was(
    table: ParquetTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(table, [SHOP], **FIRST_OFFSETS)
    rows, names = sorted_rows(listed(path)), parquet_names(path)
    monkeypatch.setattr(OutputDirectory, "create", lambda *_: pa.OSFile("/dev/full", "wb"))
    with pytest.raises(OSError, match="No space left on device"):
        exported(table, [SHOP])
    assert (sorted_rows(listed(path)), parquet_names(path)) == (rows, names)


def test_a_full_disk_at_the_commit_leaves_the_table_as_it_was(
    table: ParquetTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(table, [SHOP], **FIRST_OFFSETS)
    rows, names = sorted_rows(listed(path)), parquet_names(path)
    monkeypatch.setattr("kafkalog.lake.output_directory.write_file", _full)
    with pytest.raises(OSError, match=r"No space left on device.*_manifest\.json"):
        exported(table, [SHOP], full_refresh=True)
    assert (sorted_rows(listed(path)), parquet_names(path)) == (rows, names)


def test_an_output_that_cannot_be_written_is_an_error_with_its_path() -> None:
    with pytest.raises(OSError, match="/sys/kafkalog-table"):
        exported(ParquetTable("/sys/kafkalog-table"), [SHOP])


def test_an_error_after_the_commit_loses_nothing(
    table: ParquetTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned_run(table, [SHOP])
    files = written_files(table, [SHOP], run)
    with monkeypatch.context() as patched:
        patched.setattr(OutputDirectory, "move", lambda self, path, target: _full(path))
        with pytest.raises(OSError, match="No space left"):
            table.commit(files, run)
    table.discard(files)
    assert sorted_rows(named(path)) == view_rows([SHOP])
    assert planned_run(ParquetTable(str(path)), [SHOP]).has_work is False
    assert sorted_rows(listed(path)) == view_rows([SHOP])


def test_another_partitioning_than_the_tables_is_refused(table: ParquetTable, path: Path) -> None:
    exported(table, [SHOP], **FIRST_OFFSETS)
    with pytest.raises(OptionError, match="--partition-by: 'day' is not valid, expected none"):
        exported(ParquetTable(str(path), TableLayout((PartitionBy.DAY,))), [SHOP])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("part-0.parquet", "has Parquet files, such as part-0.parquet, and no _manifest.json"),
        ("_delta_log/0.json", "is a Delta table: give another directory"),
    ],
)
def test_a_directory_of_another_program_is_refused(
    name: str, message: str, table: ParquetTable, path: Path
) -> None:
    (path / name).parent.mkdir(parents=True)
    (path / name).write_bytes(b"")
    with pytest.raises(StatePositionError, match=message):
        table.recorded()


def _of_another_program(text: str) -> str:
    return text.replace("kafkalog ingest_topics", "other")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-10], "is damaged"),
        (lambda text: "[]", "is damaged"),
        (lambda text: text.replace('"commit_id"', '"other"'), "is damaged"),
        (_of_another_program, "positions are of another program"),
        (lambda text: text.replace('_version": 1', '_version": 2'), "use a newer one"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_an_error_with_its_path(
    change: Callable[[str], str], message: str, table: ParquetTable, path: Path
) -> None:
    exported(table, [SHOP])
    manifest = path / "_manifest.json"
    manifest.write_text(change(manifest.read_text()))
    with pytest.raises(StatePositionError, match=rf"_manifest\.json.*{message}"):
        ParquetTable(str(path)).recorded()


def test_a_table_can_be_copied_to_another_place(table: ParquetTable, path: Path) -> None:
    exported(table, [SHOP], **FIRST_OFFSETS)
    copy = path.parent / "copy" / path.name
    shutil.copytree(path, copy)
    shutil.rmtree(path)
    exported(ParquetTable(str(copy)), [SHOP])
    assert sorted_rows(listed(copy)) == view_rows([SHOP])
