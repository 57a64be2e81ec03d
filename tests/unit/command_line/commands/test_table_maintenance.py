"""`kafkalog optimize` and `kafkalog vacuum`, as a user calls them. Rules: F654, F655, F664 and
F665."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyiceberg import catalog
from pyiceberg.utils.config import Config

from kafkalog.command_line.main import kafkalog
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.lake.parquet.parquet_table import ParquetTable
from tests.support.lake.exports import exported, sorted_rows, view_rows
from tests.support.lake.iceberg_tables import scanned
from tests.support.lake.parquet_tables import listed, parquet_names
from tests.support.repository import SHOP


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of two runs."""
    path = tmp_path / "ingested_records"
    ends = json.dumps({"orders": {"0": 40, "1": 40, "2": 40}})
    exported(ParquetTable(str(path)), [SHOP], subscribe="orders", endingOffsets=ends)
    exported(ParquetTable(str(path)), [SHOP])
    return path


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """The directory of an Iceberg table of two runs."""
    ends = json.dumps({"orders": {"0": 40, "1": 40, "2": 40}})
    some: dict[str, Any] = {"subscribe": "orders", "endingOffsets": ends}
    for options in (some, {}):
        table = IcebergTable(output_dir=str(tmp_path))
        exported(table, [SHOP], **options)
        table.catalog.close()
    return tmp_path / "kafkalog" / "ingested_records"


def _iceberg_rows(output_dir: Path) -> list[dict[str, Any]]:
    table = IcebergTable(output_dir=str(output_dir))
    rows = sorted_rows(scanned(table))
    table.catalog.close()
    return rows


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(kafkalog, arguments)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_optimize_writes_small_files_again_as_large_ones(table: Path, processes: str) -> None:
    count = len(parquet_names(table))
    done = _run("optimize", str(table), "--processes", processes)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"wrote {count} files (")
    assert len(parquet_names(table)) == 1
    assert sorted_rows(listed(table)) == view_rows([SHOP])
    again = _run("optimize", str(table))
    assert again.stdout == "the table has no small files that could be one\n"


def test_vacuum_removes_what_is_not_part_of_the_table(table: Path) -> None:
    orphan = table / "orphan.parquet"
    orphan.write_bytes(b"12345")
    an_hour_ago = time.time() - 3600
    os.utime(orphan, (an_hour_ago, an_hour_ago))
    assert _run("vacuum", str(table)).stdout == ""
    tried = _run("vacuum", str(table), "--older-than", "1ms", "--dry-run")
    assert (tried.stdout, tried.stderr) == (f"{orphan}\n", "to remove: 1 file (5 B)\n")
    assert orphan.exists()
    done = _run("vacuum", str(table), "--older-than", "1ms")
    assert (done.stdout, done.stderr) == (f"{orphan}\n", "removed: 1 file (5 B)\n")
    assert not orphan.exists()
    assert sorted_rows(listed(table)) == view_rows([SHOP])


@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_iceberg_table_is_optimized_and_what_only_old_snapshots_have_is_removed(
    processes: str, iceberg: Path, tmp_path: Path
) -> None:
    small = sorted(str(path) for path in iceberg.rglob("*.parquet"))
    done = _run("optimize", str(iceberg), "--processes", processes)
    assert done.stdout.startswith(f"wrote {len(small)} files ("), done.output
    assert _iceberg_rows(tmp_path) == view_rows([SHOP])
    assert _run("vacuum", str(iceberg)).stderr == "removed: 0 files (0 B)\n"
    tried = _run("vacuum", str(iceberg), "--older-than", "1ms", "--dry-run")
    assert sorted(tried.stdout.splitlines()) == small
    assert tried.stderr.startswith(f"to expire: 2 snapshots\nto remove: {len(small)} files (")
    assert all(Path(path).exists() for path in small)
    done = _run("vacuum", str(iceberg), "--older-than", "1ms")
    assert sorted(done.stdout.splitlines()) == small
    assert done.stderr.startswith(f"expired: 2 snapshots\nremoved: {len(small)} files (")
    assert len([*iceberg.rglob("*.parquet")]) == 1
    assert _iceberg_rows(tmp_path) == view_rows([SHOP])


def test_a_table_of_a_catalog_has_its_name(
    iceberg: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    (tmp_path / "catalog.db").rename(tmp_path / "lake.db")
    # pyiceberg reads its configuration when it is imported; the first is the catalog's own name.
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    with sqlite3.connect(tmp_path / "lake.db") as database:
        for table in ("iceberg_tables", "iceberg_namespace_properties"):
            database.execute(f"UPDATE {table} SET catalog_name = 'lake'")
    database.close()
    given = ("--catalog", "lake", "--table", "kafkalog.ingested_records")
    assert _run("vacuum", *given).exit_code == 0
    assert _run("optimize", *given).stdout.startswith("wrote ")
    assert _run("optimize", "--catalog", "lake", "--table", "raw.none").exit_code == 3
    done = _run("optimize", str(iceberg))
    assert (done.exit_code, "--catalog NAME --table namespace.name" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["optimize", "vacuum"])
def test_what_is_not_one_table_is_refused(command: str, iceberg: Path, tmp_path: Path) -> None:
    done = _run(command, str(tmp_path))
    assert done.exit_code == 2
    assert f"a table of this directory, such as {iceberg}\n" in done.stderr
    for given in ([], ["--catalog", "a"], [str(tmp_path), "--catalog", "a", "--table", "b"]):
        done = _run(command, *given)
        assert done.exit_code == 2
        assert "give TABLE, or --catalog and --table in its place" in done.stderr


def test_a_table_of_other_rows_has_nothing_to_optimize(iceberg: Path) -> None:
    done = _run("optimize", str(iceberg.with_name("ingest_manifest")))
    assert done.exit_code == 3
    assert "table kafkalog.ingest_manifest has no records" in done.stderr


@pytest.mark.parametrize("command", ["optimize", "vacuum"])
def test_a_delta_table_has_statements_of_its_own(command: str, tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "00000000000000000000.json").touch()
    done = _run(command, str(tmp_path))
    assert done.exit_code == 2
    assert f"of a Delta table: {command.upper()} delta.`{tmp_path}` in Spark" in done.stderr


@pytest.mark.parametrize("command", ["optimize", "vacuum"])
def test_a_directory_without_a_table_is_an_error(command: str, tmp_path: Path) -> None:
    done = _run(command, str(tmp_path))
    assert done.exit_code == 3
    assert "is not a table: it has no _manifest.json" in done.stderr
