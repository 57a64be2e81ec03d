"""Runs into a directory of Parquet files that are killed, and the runs after them.

Rules: F530 and F651.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from kafkalog.lake.export_task import ExportTask
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet.parquet_maintenance import leftover_files
from kafkalog.lake.parquet.parquet_table import ParquetTable
from tests.support.forks import killed_at
from tests.support.lake.exports import exported, sorted_rows, view_rows
from tests.support.lake.parquet_tables import listed, named, parquet_names
from tests.support.repository import SHOP

# Where a run is killed: before a call of a method, and before which one of its calls.
POINTS: dict[str, tuple[Callable[..., Any], int]] = {
    "planned": (ParquetTable.prepare, 1),
    "one of several tasks is done": (ExportTask.written_files, 2),
    "a file is begun": (OutputDirectory.create, 2),
    "all tasks are done": (ParquetTable.commit, 1),
    "files are on disk": (OutputDirectory.locked, 1),
    "locked": (OutputDirectory.replace, 1),
    "committed": (ParquetTable._finish, 1),
    "old files are removed": (ParquetTable._waiting, 1),
    "one of several files is moved": (ParquetTable._move, 2),
    "all files are moved": (ParquetTable._report, 2),
    "about to report": (OutputDirectory.replace, 2),
}
# The first run has a task for each topic and partition, the second one replaces rows of it.
FIRST: dict[str, Any] = {
    "subscribe": "orders,customers",
    "endingOffsets": json.dumps({"orders": {"0": 50, "1": 70, "2": 80}, "customers": {"0": 10}}),
}
ADDS: dict[str, Any] = {"maxPartitionBytes": "30000"}
REPLACES: dict[str, Any] = {
    **ADDS,
    "subscribe": "orders,customers",
    "startingOffsets": json.dumps({"orders": {"0": 20, "1": 0, "2": 80}, "customers": {"0": 10}}),
}
# A run that only adds has nothing to remove, and reports and moves as the other one does.
CASES = [
    *((point, "replaces") for point in POINTS),
    *((point, "adds") for point in ("locked", "committed", "one of several files is moved")),
]
QUICK = {("locked", "replaces"), ("old files are removed", "replaces"), ("committed", "adds")}
KEYS = ("topic", "partition", "offset")


def killed_run(path: Path, point: str, options: dict[str, Any]) -> None:
    """A run that is killed at a point."""
    method, call = POINTS[point]
    name = f"{method.__module__}.{method.__qualname__}"
    killed_at(name, partial(exported, ParquetTable(str(path)), [SHOP], **options), call)


@pytest.mark.parametrize(
    ("point", "kind"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.deep) for case in CASES],
)
def test_the_next_run_makes_the_table_of_one_undisturbed_run(
    point: str, kind: str, tmp_path: Path
) -> None:
    options = REPLACES if kind == "replaces" else ADDS
    path = tmp_path / "lake" / "ingested_records"
    exported(ParquetTable(str(path)), [SHOP], **FIRST)
    before = sorted_rows(named(path), KEYS)
    killed_run(path, point, options)

    expected = view_rows([SHOP])
    after = [{name: row[name] for name in KEYS} for row in expected]
    committed = sorted_rows(named(path), KEYS)
    assert committed in (before, after)
    seen = [tuple(row.values()) for row in sorted_rows(listed(path), KEYS)]
    assert len(seen) == len(set(seen))
    assert set(seen) <= {tuple(row.values()) for row in committed}

    table = ParquetTable(str(path))
    exported(table, [SHOP], **options)
    assert sorted_rows(listed(path)) == sorted_rows(named(path)) == expected
    runs = parquet.read_table(path.parent / "ingest_manifest").select(
        ["ingest_run", "topic", "partition"]
    )
    recorded = table.recorded()
    assert recorded is not None
    assert len(runs) == 4 * recorded.run == len({tuple(row.values()) for row in runs.to_pylist()})

    manifest = table.manifest()
    assert manifest is not None
    left = {table.directory.relative(each) for each in leftover_files(table, 1 << 62)}
    assert parquet_names(path) - left == {file.path for file in manifest.files}


def test_a_first_run_that_is_killed_leaves_no_table(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "ingested_records"
    killed_run(path, "locked", ADDS)
    assert ParquetTable(str(path)).recorded() is None
    exported(ParquetTable(str(path)), [SHOP])
    assert sorted_rows(listed(path)) == view_rows([SHOP])
