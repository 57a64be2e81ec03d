"""What killed runs leave, and what vacuum removes of it. Rule: F655."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kafkalog.errors import StatePositionError
from kafkalog.lake.parquet.parquet_maintenance import leftover_files
from kafkalog.lake.parquet.parquet_table import ParquetTable
from tests.support.lake.exports import exported, planned_run, written_files
from tests.support.repository import SHOP

DAY_MS = 86_400_000


def _left(path: Path, before_ms: int) -> set[str]:
    table = ParquetTable(str(path))
    return {table.directory.relative(each) for each in leftover_files(table, before_ms)}


def test_files_that_the_manifest_does_not_name_are_left_over_when_they_are_old(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ingested_records"
    table = ParquetTable(str(path))
    written_files(table, [SHOP], planned_run(table, [SHOP], full_refresh=True))
    killed = {f"_uncommitted/{each.name}" for each in (path / "_uncommitted").iterdir()}
    now_ms = int(time.time() * 1000)
    assert killed
    assert _left(path, now_ms + DAY_MS) == killed
    exported(ParquetTable(str(path)), [SHOP])
    (path / "_SUCCESS").touch()
    (path / "topic=x").mkdir()
    orphans = {"topic=x/orphan.parquet", "._manifest.json.0123456789abcdef.tmp"}
    for name in orphans:
        (path / name).touch()
    assert _left(path, now_ms - DAY_MS) == set()
    assert _left(path, now_ms + DAY_MS) == killed | orphans
    for name in killed:
        os.utime(path / name, (now_ms / 1000 - 2 * 86_400,) * 2)
    assert _left(path, now_ms - DAY_MS) == killed


def test_a_directory_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").touch()
    with pytest.raises(StatePositionError, match=r"is not a table: it has no _manifest\.json"):
        _left(tmp_path, DAY_MS)
