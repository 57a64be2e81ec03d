"""Tables of Parquet files, read by Arrow: as engines list them, and as the manifest names them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from pyarrow import dataset, parquet


def listed(table: Path) -> pa.Table:
    """What an engine reads that lists the directory."""
    found: pa.Table = dataset.dataset(table, partitioning="hive").to_table()
    return found


def named(table: Path) -> pa.Table:
    """What the manifest names, a file that is still pending included; without partitions."""
    manifest = json.loads((table / "_manifest.json").read_text())
    paths = [
        next(
            table / place
            for place in (file["path"], file["pending_path"])
            if place and (table / place).exists()
        )
        for file in manifest["files"]
    ]
    return pa.concat_tables([parquet.read_table(path, partitioning=None) for path in paths])


def parquet_names(folder: Path) -> set[str]:
    """The Parquet files below a folder, pending ones included."""
    files = [*folder.rglob("*.parquet"), *folder.rglob("*.pending")]
    return {str(path.relative_to(folder)) for path in files}
