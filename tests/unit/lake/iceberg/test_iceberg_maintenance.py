"""Iceberg tables of many runs: small files into large ones, and what no snapshot needs.

Rules: F664 and F665.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from kafkalog.errors import StatePositionError
from kafkalog.lake.iceberg.iceberg_maintenance import (
    expire_snapshots,
    leftover_files,
    old_snapshots,
    optimize,
)
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.lake.layout import PartitionBy, TableLayout
from kafkalog.lake.small_files import rewritten_in_order
from tests.support.lake.exports import exported, planned_run, sorted_rows, view_rows
from tests.support.lake.iceberg_tables import (
    current_snapshot,
    null_headers,
    rewritten_by_another_engine,
    scanned,
)
from tests.support.repository import SHOP

_AFTER_ALL_MS = 4_102_444_800_000


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., IcebergTable]]:
    tables: list[IcebergTable] = []

    def table(**options: Any) -> IcebergTable:
        tables.append(IcebergTable(output_dir=str(tmp_path), **options))
        return tables[-1]

    yield table
    for each in tables:
        each.catalog.close()


Opened = Callable[..., IcebergTable]


def runs(table: IcebergTable) -> None:
    """Four runs, each with some more records of every partition."""
    for end in (20, 40, 60):
        ends = json.dumps({"orders": {"0": end, "1": end, "2": end}})
        exported(table, [SHOP], subscribe="orders", endingOffsets=ends)
    exported(table, [SHOP])


@pytest.mark.parametrize("partition_by", [(), (PartitionBy.TOPIC,)])
def test_small_files_become_one_for_each_partition_of_the_table(
    partition_by: tuple[PartitionBy, ...], opened: Opened
) -> None:
    runs(opened(layout=TableLayout(partition_by)))
    table = opened()
    before = null_headers(table)
    positions = table.recorded()
    files = optimize(table)
    assert len(files.removed) > len(files.added) == 1
    assert len(list(table.existing().scan().plan_files())) == (2 if partition_by else 1)
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    assert null_headers(table) == before
    for task in table.existing().scan().plan_files():
        rows = parquet.read_table(task.file.file_path.removeprefix("file://"), partitioning=None)
        columns = [rows[name].to_pylist() for name in ("topic", "partition", "offset")]
        places = list(zip(*columns, strict=True))
        assert places == sorted(places)
    assert opened().recorded() == positions
    assert planned_run(opened(), [SHOP]).has_work is False
    assert optimize(table).removed == []


def test_large_files_stay(opened: Opened) -> None:
    table = opened(layout=TableLayout(target_file_bytes=1000))
    runs(table)
    assert optimize(table).removed == []


def test_files_that_another_engine_has_rewritten_are_compacted_too(opened: Opened) -> None:
    table = opened()
    exported(table, [SHOP], subscribe="orders")
    rewritten_by_another_engine(table.existing())
    exported(table, [SHOP])
    optimize(table)
    assert len(list(table.existing().scan().plan_files())) == 1
    assert sorted_rows(scanned(table)) == view_rows([SHOP])


def test_a_run_while_files_are_rewritten_is_kept(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(opened(), [SHOP], subscribe="orders")
    exported(
        opened(),
        [SHOP],
        subscribe="orders",
        startingOffsets=json.dumps({"orders": {"0": 5, "1": 0, "2": 0}}),
    )

    def during_a_run(*given: Any) -> Any:
        exported(opened(), [SHOP])
        return rewritten_in_order(*given)

    monkeypatch.setattr("kafkalog.lake.small_files.rewritten_in_order", during_a_run)
    optimize(opened())
    assert sorted_rows(scanned(opened())) == view_rows([SHOP])
    assert planned_run(opened(), [SHOP]).has_work is False


def test_files_that_are_rewritten_twice_at_once_are_committed_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(opened())

    def during_another(*given: Any) -> Any:
        rewritten_by_another_engine(opened().existing())
        return rewritten_in_order(*given)

    monkeypatch.setattr("kafkalog.lake.small_files.rewritten_in_order", during_another)
    with pytest.raises(StatePositionError, match="rewritten the same files meanwhile"):
        optimize(opened())
    assert sorted_rows(scanned(opened())) == view_rows([SHOP])


def test_old_snapshots_and_their_files_are_removed_and_the_positions_stay(opened: Opened) -> None:
    table = opened()
    runs(table)
    run = current_snapshot(table)
    assert leftover_files(table, _AFTER_ALL_MS) == []
    rewritten_by_another_engine(table.existing())
    assert leftover_files(table, _AFTER_ALL_MS) == []
    old = old_snapshots(table, _AFTER_ALL_MS)
    assert len(old) >= 3
    expire_snapshots(table, old)
    assert table.existing().snapshot_by_id(run) is not None
    assert planned_run(opened(), [SHOP]).has_work is False
    optimize(table)
    old = old_snapshots(table, _AFTER_ALL_MS)
    files = {each.path for each in leftover_files(table, _AFTER_ALL_MS, old)}
    expire_snapshots(table, old)
    assert len(table.existing().metadata.snapshots) == 1
    assert len(files) > 1
    assert {each.path for each in leftover_files(table, _AFTER_ALL_MS)} == files
    assert leftover_files(table, int(time.time() * 1000) - 3_600_000) == []
    assert planned_run(opened(), [SHOP]).has_work is False


def test_files_in_another_place_than_the_snapshots_name_are_not_removed(
    opened: Opened, tmp_path: Path
) -> None:
    table = opened()
    runs(table)
    data = tmp_path / "kafkalog" / "ingested_records" / "data"
    for number, path in enumerate(data.rglob("*.parquet")):
        path.rename(path.with_name(f"moved-{number}.parquet"))
    with pytest.raises(StatePositionError, match=r"were the files moved\? Nothing is removed"):
        leftover_files(table, _AFTER_ALL_MS)


def test_a_table_that_is_not_there_is_an_error(opened: Opened) -> None:
    with pytest.raises(StatePositionError, match=r"there is no table kafkalog.ingested_records"):
        optimize(opened())
