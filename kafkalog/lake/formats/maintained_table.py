"""Which table `kafkalog optimize` and `kafkalog vacuum` work on, and what they do to it.

Rules: docs/ingest.md F654, F655, F664 and F665.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
from pyarrow import fs

from kafkalog.errors import OptionError
from kafkalog.lake.formats.targets import ICEBERG, TablePlace, iceberg_table
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet import parquet_maintenance
from kafkalog.lake.parquet.parquet_table import ParquetTable
from kafkalog.lake.small_files import Rewrite, RewrittenFiles
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.table_formats import CATALOG_FILE, DELTA_LOG, MANIFEST

_TABLE = "TABLE"
# Of an Iceberg table, in its directory.
_METADATA = "metadata"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """What is done to a table, whichever format it has. `old_snapshots` gives those from before a
    time that the table does not need, `leftover_files` the files that are older and not part of
    the table, nor of any snapshot but these."""

    directory: OutputDirectory
    optimize: Callable[[Rewrite], RewrittenFiles]
    leftover_files: Callable[[int, Sequence[int]], list[fs.FileInfo]]
    old_snapshots: Callable[[int], list[int]]
    expire_snapshots: Callable[[Sequence[int]], None]


def maintained_table(
    directory: str | None, catalog: str | None, table: str | None, statement: str
) -> MaintainedTable:
    """Return the table in a directory, or `table` of a catalog.

    Raises click.UsageError where both or neither are given, OptionError for a directory without a
    table and for a Delta table, which Delta's own `statement` is for.
    """
    if catalog is not None and table is not None and directory is None:
        return _iceberg(TablePlace(ICEBERG, catalog=catalog, table=table))
    if catalog is not None or table is not None or directory is None:
        raise click.UsageError("give TABLE, or --catalog and --table in its place")
    found = ParquetTable(directory)
    if found.directory.files(DELTA_LOG):
        allowed = (
            "a directory of Parquet files or an Iceberg table; of a Delta table: "
            f"{statement} delta.`{found.path}` in Spark"
        )
        raise OptionError(_TABLE, directory, allowed)
    if found.directory.exists(MANIFEST):
        return _parquet(found)
    place = iceberg_place(directory, found.directory)
    return _parquet(found) if place is None else _iceberg(place)


def iceberg_place(given: str, directory: OutputDirectory) -> TablePlace | None:
    """Return the catalog and the name of the Iceberg table in a directory, None without one."""
    if directory.exists(CATALOG_FILE):
        found = sorted(path.parent for path in Path(directory.path).glob(f"*/*/{_METADATA}"))
        tables = [str(path) for path in found if not path.name.endswith("_manifest")]
        some = " or ".join(tables[:_MOST_NAMED]) or "namespace/name in it"
        raise OptionError(_TABLE, given, f"a table of this directory, such as {some}")
    if not directory.files(_METADATA):
        return None
    path, names = absolute_path(directory.path), list[str]()
    while not is_remote(path) and path != posixpath.dirname(path):
        path, name = posixpath.split(path)
        names.insert(0, name)
        if os.path.exists(os.path.join(path, CATALOG_FILE)):
            return TablePlace(ICEBERG, output_dir=path, table=".".join(names))
    allowed = f"--catalog NAME --table namespace.name instead: no {CATALOG_FILE} is above it"
    raise OptionError(_TABLE, given, allowed)


def _parquet(table: ParquetTable) -> MaintainedTable:
    return MaintainedTable(
        table.directory,
        optimize=partial(parquet_maintenance.optimize, table),
        leftover_files=lambda before_ms, _: parquet_maintenance.leftover_files(table, before_ms),
        old_snapshots=lambda before_ms: [],
        expire_snapshots=lambda snapshots: None,
    )


def _iceberg(place: TablePlace) -> MaintainedTable:
    table = iceberg_table(place)
    from kafkalog.lake.iceberg import iceberg_maintenance

    return MaintainedTable(
        table.directory,
        optimize=partial(iceberg_maintenance.optimize, table),
        leftover_files=partial(iceberg_maintenance.leftover_files, table),
        old_snapshots=partial(iceberg_maintenance.old_snapshots, table),
        expire_snapshots=partial(iceberg_maintenance.expire_snapshots, table),
    )
