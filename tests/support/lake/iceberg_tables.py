"""Iceberg tables in a directory, read back by pyiceberg, and what other engines do to them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet
from pyiceberg import catalog
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import ALWAYS_TRUE, Table
from pyiceberg.utils.config import Config

from kafkalog.errors import StatePositionError
from kafkalog.lake.iceberg import iceberg_table, snapshots
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from tests.support.lake.exports import planned_run, written_files


def configure_catalog(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make `lake` a catalog of pyiceberg's configuration, in SQLite, with its tables in a folder
    beside it."""
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{folder}/lake.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{folder}/warehouse")
    # pyiceberg reads its configuration when it is imported.
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())


def scanned(table: IcebergTable, row_filter: BooleanExpression = ALWAYS_TRUE) -> pa.Table:
    """The rows of a table, as pyiceberg reads them.

    It reads a null list of structs as an empty one (apache/iceberg-python#3833); no record has an
    empty list of headers, `null_headers` counts those in the files.
    """
    rows = table.existing().scan(row_filter).to_arrow()
    headers = rows["headers"]
    nulls = pa.nulls(len(rows), headers.type)
    index = rows.column_names.index("headers")
    found = pc.if_else(pc.equal(pc.list_value_length(headers), 0), nulls, headers)
    return rows.set_column(index, "headers", found)


def null_headers(table: IcebergTable) -> int:
    """The rows without headers, as Arrow reads the files that the current snapshot names."""
    paths = [
        task.file.file_path.removeprefix("file://") for task in table.existing().scan().plan_files()
    ]
    columns = [parquet.read_table(path, columns=["headers"], partitioning=None) for path in paths]
    return pa.concat_tables(columns)["headers"].null_count


def manifest_ranges(table: IcebergTable) -> list[dict[str, Any]]:
    """The rows of a table's manifest, in the order of runs and partitions."""
    rows = table.catalog.load_table("kafkalog.ingest_manifest").scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["ingest_run"], row["topic"], row["partition"]))


def data_files(root: Path) -> set[str]:
    """The Parquet files of records below a folder."""
    return {str(path) for path in (root / "kafkalog" / "ingested_records").rglob("*.parquet")}


def current_snapshot(table: IcebergTable) -> int:
    """The number of a table's newest snapshot."""
    snapshot = table.existing().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def rewritten_by_another_engine(table: Table) -> None:
    """Replace all files by others with the same rows, in a snapshot that has no positions."""
    table.refresh()
    table.overwrite(table.scan().to_arrow())


def committed_at_once(
    tables: Sequence[IcebergTable], logs: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What becomes of runs from the same positions that commit at once: `done`, or the error
    without the table's name. Each has a catalog of its own."""
    runs = [planned_run(table, logs) for table in tables]
    files = [written_files(table, logs, run) for table, run in zip(tables, runs, strict=True)]
    # All have found that nothing has changed, and go on from there.
    barrier = Barrier(len(tables))
    waited: set[int] = set()
    commit = snapshots.commit

    def at_once(table: Any, *rest: Any) -> None:
        if id(table.catalog) not in waited:
            waited.add(id(table.catalog))
            barrier.wait(60)
        commit(table, *rest)

    def outcome(number: int) -> str:
        try:
            tables[number].commit(files[number], runs[number])
        except StatePositionError as error:
            return str(error).partition(": ")[2]
        return "done"

    with monkeypatch.context() as patched, ThreadPoolExecutor(len(tables)) as threads:
        patched.setattr(iceberg_table, "commit", at_once)
        return list(threads.map(outcome, range(len(tables))))
