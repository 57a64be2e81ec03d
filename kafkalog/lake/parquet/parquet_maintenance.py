"""Tables of many runs: small files into large ones, and what killed runs have left.

Rules: docs/ingest.md F654 and F655.
"""

from __future__ import annotations

import posixpath
import re

from pyarrow import fs

from kafkalog.errors import StatePositionError
from kafkalog.lake.parquet.parquet_table import ParquetTable
from kafkalog.lake.small_files import (
    Rewrite,
    RewrittenFiles,
    rewritten_files,
    rewritten_groups,
    small_file_groups,
)
from kafkalog.lake.table_writer import PENDING_FOLDER
from kafkalog.storage.log_dir.table_formats import MANIFEST

# A manifest that a killed run had not written whole.
_UNFINISHED_MANIFEST = re.compile(rf"\.{re.escape(MANIFEST)}\.[0-9a-f]+(\..+)?\.tmp")


def optimize(table: ParquetTable, rewrite: Rewrite = rewritten_groups) -> RewrittenFiles:
    """Write small files of a table again as large ones, in the order of topic, partition and
    offset, and commit them in one commit.

    Raises StatePositionError without a table, and where another run has written meanwhile.
    """
    positions, manifest = table.recorded(), table.manifest()
    if positions is None or manifest is None:
        raise StatePositionError(f"{table.path} is not a table: it has no {MANIFEST}")
    output = table.output(positions.run)
    groups = small_file_groups(manifest.settled_files(), output.layout.target_file_bytes)
    new = rewritten_files(table, rewrite, output, groups)
    old = [file for group in groups for file in group]
    if old:
        table.replace_files(old, new)
    return RewrittenFiles(old, new)


def leftover_files(table: ParquetTable, before_ms: int) -> list[fs.FileInfo]:
    """Return the files that are older than `before_ms` and not part of the table: Parquet files,
    and those of runs that are under way or were killed.

    Raises StatePositionError for a directory that was never a table.
    """
    manifest = table.manifest()
    named = set() if manifest is None else set(manifest.places())
    found = [(table.directory.relative(each), each) for each in table.directory.files()]
    pending = f"{PENDING_FOLDER}/"
    if manifest is None and not any(path.startswith(pending) for path, _ in found):
        raise StatePositionError(f"{table.path} is not a table: it has no {MANIFEST}")
    return [
        each
        for path, each in found
        if path not in named
        and each.mtime_ns // 1_000_000 < before_ms
        and (
            path.startswith(pending)
            or (manifest is not None and path.endswith(".parquet"))
            or _UNFINISHED_MANIFEST.fullmatch(posixpath.basename(path))
        )
    ]
