"""Iceberg tables of many runs: small files into large ones, and what no snapshot needs.

pyiceberg expires snapshots; it rewrites no files and removes none. Rules: docs/ingest.md F664, F665
and F915; reasons: docs/decisions/0028.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from kafkalog.errors import StatePositionError, UnsupportedFormatError
from kafkalog.lake.iceberg.catalogs import catalog_errors
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.lake.iceberg.snapshots import newest_run, written_file
from kafkalog.lake.small_files import (
    Rewrite,
    RewrittenFiles,
    rewritten_files,
    rewritten_groups,
    small_file_groups,
)
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.uris import absolute_path, is_inside

# What Nessie says of itself when a client asks for its configuration.
_IS_NESSIE = "nessie.is-nessie-catalog"


def optimize(table: IcebergTable, rewrite: Rewrite = rewritten_groups) -> RewrittenFiles:
    """Write small files of a table again as large ones, in the order of topic, partition and
    offset, and commit them in one snapshot; files with deletes of other engines stay.

    Raises StatePositionError without the table, and where its files were rewritten meanwhile.
    """
    loaded = table.existing()
    if "offset" not in loaded.schema().column_names:
        raise StatePositionError(f"table {table.name} has no records: no export has made it")
    output = table.output(loaded, 0)
    target_file_bytes = output.layout.target_file_bytes
    found: dict[str, DataFile] = {}
    small: list[WrittenFile] = []
    for task in loaded.scan().plan_files():
        is_own = is_inside(task.file.file_path, output.path) and not task.delete_files
        if is_own and task.file.file_size_in_bytes < target_file_bytes // 2:
            small.append(written_file(loaded, task.file))
            found[small[-1].path] = task.file
    groups = small_file_groups(small, target_file_bytes)
    new = rewritten_files(table, rewrite, output, groups)
    old = [file for group in groups for file in group]
    if old:
        table.replace_files([found[file.path] for file in old], new)
    return RewrittenFiles(old, new)


def old_snapshots(table: IcebergTable, before_ms: int) -> list[int]:
    """Return the numbers of the snapshots from before a time, without the current ones of branches
    and tags, and without the newest run's, which has the positions.

    Raises UnsupportedFormatError as `leftover_files` does.
    """
    loaded = table.existing()
    _refuse_other_versions(table)
    newest = newest_run(loaded)
    kept = {ref.snapshot_id for ref in loaded.metadata.refs.values()}
    kept |= set() if newest is None else {newest.snapshot_id}
    return [
        each.snapshot_id
        for each in loaded.metadata.snapshots
        if each.timestamp_ms < before_ms and each.snapshot_id not in kept
    ]


def expire_snapshots(table: IcebergTable, snapshots: Sequence[int]) -> None:
    """Expire snapshots. Raises StatePositionError where another commit came first: then all are
    there."""
    if not snapshots:
        return
    try:
        with catalog_errors(table.name):
            table.existing().maintenance.expire_snapshots().by_ids([*snapshots]).commit()
    except CommitFailedException:
        raise StatePositionError(
            f"table {table.name}: a run or another program has written meanwhile, nothing is "
            "changed: run it again"
        ) from None


def leftover_files(
    table: IcebergTable, before_ms: int, expired: Collection[int] = ()
) -> list[fs.FileInfo]:
    """Return the files in a table's data directory that no snapshot names, but those that are
    `expired`, and that are older: of runs that were killed, and of expired snapshots.

    Raises StatePositionError where no file is in the directory that the snapshots name,
    UnsupportedFormatError where the catalog has more snapshots than it shows.
    """
    loaded = table.existing()
    _refuse_other_versions(table)
    directory = table.directory
    named = {absolute_path(path) for path in _named_files(loaded, expired)}
    places = {directory.location(directory.relative(each)): each for each in directory.files()}
    if named and places and named.isdisjoint(places):
        raise StatePositionError(
            f"table {table.name}: no file in {directory.path} is named by a snapshot: were the "
            "files moved? Nothing is removed"
        )
    return [
        each
        for place, each in places.items()
        if place not in named and each.mtime_ns // 1_000_000 < before_ms
    ]


def _refuse_other_versions(table: IcebergTable) -> None:
    """Raise UnsupportedFormatError for a catalog whose branches and tags are not in the metadata of
    a table, which has the newest snapshot of one branch only."""
    if table.catalog.properties.get(_IS_NESSIE) == "true":
        raise UnsupportedFormatError(
            f"table {table.name} is in a Nessie catalog, whose branches, tags and older commits "
            "name files that the table's metadata does not: nothing is removed; use nessie-gc, "
            "Nessie's own tool"
        )


def _named_files(table: Table, expired: Collection[int]) -> set[str]:
    manifests = {
        manifest
        for each in table.metadata.snapshots
        if each.snapshot_id not in expired
        for manifest in each.manifests(table.io)
    }
    return {
        entry.data_file.file_path
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }
