"""Tables in a directory: their format by the names of files, and what one types to query them.

Rule: docs/ingest.md F938.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from shlex import quote

from kafkalog.storage.files.uris import is_remote

DELTA_LOG = "_delta_log"
# The manifest of a directory of Parquet files. Engines that list it skip names that begin so.
MANIFEST = "_manifest.json"
# Spark's writer puts it beside the files of a table that is whole.
SUCCESS = "_SUCCESS"
# The catalog of Iceberg tables in --output-dir, where no other is named: two levels above each.
CATALOG_FILE = "catalog.db"
_ICEBERG_METADATA = "metadata"
# What shows the rows of a table at a path, by DuckDB.
_QUERIES = {
    "parquet": "import duckdb; duckdb.read_parquet({files}).show()",
    "json": "import duckdb; duckdb.read_json({files}).show()",
    "delta": "import duckdb, deltalake; t = deltalake.DeltaTable({path}).to_pyarrow_dataset(); "
    'duckdb.sql("FROM t").show()',
    "iceberg": 'from pyiceberg.catalog import load_catalog; load_catalog("kafkalog", uri={uri})'
    '.load_table({name}).scan().to_duckdb("t").sql("FROM t").show()',
}


def table_format(names: Callable[[str], Collection[str]], *, is_marked: bool = False) -> str | None:
    """Return the format of the table in a directory: delta, iceberg, parquet or json; None without
    one. `names` returns the names in a folder of it, the directory itself for an empty text. If
    `is_marked`, files alone do not make a table."""
    there = {*names("")}
    if DELTA_LOG in there:
        return "delta"
    if MANIFEST in there:
        return "parquet"
    if _ICEBERG_METADATA in there:
        found = names(_ICEBERG_METADATA)
        if any(name.endswith(".metadata.json") for name in found):
            return "iceberg"
    if is_marked and SUCCESS not in there:
        return None
    endings = {name.rpartition(".")[2] for name in there}
    return next((each for each in ("parquet", "json") if each in endings), None)


def query_line(path: str, found: str) -> str | None:
    """Return the line for a shell that shows rows of a table of this format; None in an object
    store, which needs settings of its own."""
    if is_remote(path):
        return None
    namespace, table = path.split(os.sep)[-2:]
    catalog = os.path.join(os.path.dirname(os.path.dirname(path)), CATALOG_FILE)
    values = {
        "files": os.path.join(path, "**", f"*.{found}"),
        "path": path,
        "uri": f"sqlite:///{catalog}",
        "name": f"{namespace}.{table}",
    }
    code = _QUERIES[found].format(**{name: json.dumps(value) for name, value in values.items()})
    return f"python -c {quote(code)}"
