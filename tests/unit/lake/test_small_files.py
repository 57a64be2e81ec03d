"""Small files of many runs into large ones, read back by Arrow's own reader. Rule: F654."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkalog.errors import StatePositionError
from kafkalog.lake.layout import PartitionBy, TableLayout
from kafkalog.lake.parquet.parquet_maintenance import optimize
from kafkalog.lake.parquet.parquet_table import ParquetTable
from kafkalog.lake.small_files import small_file_groups
from kafkalog.lake.written_file import Bound, WrittenFile
from tests.support.lake.exports import exported, sorted_rows, view_rows
from tests.support.lake.parquet_tables import listed, named, parquet_names
from tests.support.repository import SHOP

KEYS = ["topic", "partition", "offset"]


def _runs(path: Path, partition_by: tuple[PartitionBy, ...] = ()) -> ParquetTable:
    table = ParquetTable(str(path), TableLayout(partition_by))
    for end in (40, 90, 300):
        ends = {"orders": {"0": end, "1": end, "2": end}, "customers": {"0": end}}
        exported(table, [SHOP], subscribe="orders,customers", endingOffsets=json.dumps(ends))
    exported(table, [SHOP], maxPartitionBytes="30000")
    return table


def _is_in_order(rows: pa.Table) -> bool:
    order = rows.sort_by([(name, "ascending") for name in KEYS]).select(KEYS)
    return bool(order == rows.select(KEYS))


@pytest.mark.parametrize("portion_bytes", [1, 20_000, 64 << 20])
def test_the_rows_of_many_files_are_in_one_in_the_order_of_offsets(
    portion_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkalog.lake.small_files.PORTION_BYTES", portion_bytes)
    path = tmp_path / "lake" / "ingested_records"
    table = _runs(path)
    before = table.recorded()
    old = parquet_names(path)
    done = optimize(table)
    (name,) = parquet_names(path)
    assert {file.path for file in done.removed} == old
    assert [file.path for file in done.added] == [name]
    assert _is_in_order(parquet.read_table(path / name))
    assert sorted_rows(listed(path)) == sorted_rows(named(path)) == view_rows([SHOP])
    assert ParquetTable(str(path)).recorded() == before
    assert optimize(ParquetTable(str(path))).removed == []


def test_files_of_each_partition_of_the_table_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "ingested_records"
    _runs(path, (PartitionBy.TOPIC, PartitionBy.DAY))
    folders = {name.rpartition("/")[0] for name in parquet_names(path)}
    optimize(ParquetTable(str(path)))
    names = parquet_names(path)
    assert len(names) == len(folders)
    assert {name.rpartition("/")[0] for name in names} == folders
    for name in names:
        rows = parquet.read_table(path / name, partitioning=None)
        assert "topic" not in rows.schema.names
        assert _is_in_order(rows.append_column("topic", pa.array([""] * len(rows))))
    assert sorted_rows(listed(path)) == view_rows([SHOP])


def test_a_run_goes_on_after_small_files_were_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "ingested_records"
    ends: dict[str, Any] = {"endingOffsets": json.dumps({"orders": {"0": 9, "1": 9, "2": 9}})}
    exported(ParquetTable(str(path)), [SHOP], subscribe="orders", **ends)
    exported(ParquetTable(str(path)), [SHOP], subscribe="orders")
    optimize(ParquetTable(str(path)))
    exported(ParquetTable(str(path)), [SHOP])
    assert sorted_rows(listed(path)) == view_rows([SHOP])


def test_a_run_meanwhile_wins(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "ingested_records"
    table = _runs(path)
    table.recorded()
    exported(ParquetTable(str(path)), [SHOP], full_refresh=True)
    names = parquet_names(path)
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        table.replace_files([], [])
    assert parquet_names(path) == names


def test_a_directory_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StatePositionError, match=r"is not a table: it has no _manifest\.json"):
        optimize(ParquetTable(str(tmp_path)))


def test_groups_reach_the_target_size_and_leave_large_files_alone() -> None:
    def file(name: str, size: int, offset: int) -> WrittenFile:
        least: dict[str, Bound] = {"topic": "orders", "partition": 0, "offset": offset}
        return WrittenFile(name, size, 1, {}, least, least, {}, {("orders", 0): 1})

    files = [file("d", 40, 30), file("a", 40, 0), file("large", 60, 10), file("b", 30, 5)]
    files += [file("c", 25, 20), file("e", 45, 40)]
    groups = [[each.path for each in group] for group in small_file_groups(files, 100)]
    assert groups == [["a", "b", "c"], ["d", "e"]]
    assert small_file_groups([file("a", 40, 0), file("large", 60, 10)], 100) == []
