"""Snapshots of an Iceberg table: what a run has written into one, and how one is added.

A run's positions are in the summary of its snapshot. Commits are never repeated by pyiceberg, which
would add the files to whatever snapshot is newest by then.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan, Or
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table, TableProperties
from pyiceberg.table.snapshots import Snapshot, ancestors_of
from pyiceberg.types import PrimitiveType

from kafkalog.errors import UnsupportedFormatError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.uris import absolute_path
from kafkalog.views.planning.ingest_positions import IngestPositions

# In the summary of a snapshot: the positions after the run.
POSITIONS = "kafkalog.positions"
# A property of the table, which no rollback takes back: numbers of runs are never used again.
LAST_RUN = "kafkalog.last-run"
# Files whose footers are read at once.
_FOOTERS_AT_ONCE = 16
_BOUNDED = ("topic", "partition", "offset")


def newest_run(table: Table) -> Snapshot | None:
    """Return the newest snapshot with positions that the table's rows come from."""
    for snapshot in ancestors_of(table.current_snapshot(), table.metadata):
        if snapshot.summary is not None and snapshot.summary.get(POSITIONS):
            return snapshot
    return None


def positions_of(table: Table, snapshot: Snapshot) -> IngestPositions | None:
    """Return the positions of a run's snapshot, with the number of the last run of all."""
    text = None if snapshot.summary is None else snapshot.summary.get(POSITIONS)
    positions = IngestPositions.from_json(text)
    if positions is None:
        return None
    return replace(positions, run=max(positions.run, last_run(table)))


def positions_summary(table: Table) -> dict[str, str]:
    """Return the positions for the summary of a snapshot with the same rows: those of the run can
    be expired then."""
    snapshot = newest_run(table)
    if snapshot is None or snapshot.summary is None:
        return {}
    return {POSITIONS: str(snapshot.summary[POSITIONS])}


def last_run(table: Table) -> int:
    """Return the number of the last run, 0 before the first."""
    return int(table.properties.get(LAST_RUN, 0))


def data_files(table: Table, paths: Sequence[str]) -> list[DataFile]:
    """Return what a commit has to know of files, from their footers."""
    described = partial(parquet_file_to_data_file, table.io, table.metadata)
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as threads:
        return list(threads.map(described, paths))


def without_retries(table: Table) -> Table:
    """Return the table so that its commits fail where it has another snapshot by now.

    pyiceberg repeats commits as often as a property says; only this copy of the table has it.
    """
    own = {**table.metadata.properties, TableProperties.COMMIT_NUM_RETRIES: "0"}
    metadata = table.metadata.model_copy(update={"properties": own})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def commit(
    table: Table,
    added: Sequence[DataFile],
    removed: Sequence[DataFile],
    summary: Mapping[str, str],
    properties: Mapping[str, str],
) -> None:
    """Add one snapshot, with files added and removed, to the snapshot that `table` has.

    Raises CommitFailedException where the table has another one by now: then nothing is changed.
    """
    with without_retries(table).transaction() as transaction:
        names = table.schema().name_mapping.model_dump_json()
        # Columns have no numbers in the files: readers find them by their names.
        transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: names, **properties})
        update = transaction.update_snapshot(dict(summary))
        with update.overwrite() if removed else update.merge_append() as snapshot:
            for file in added:
                snapshot.append_data_file(file)
            for file in removed:
                snapshot.delete_data_file(file)


def rows_in(offsets: Mapping[TopicPartition, tuple[int, int]]) -> BooleanExpression:
    """Return the filter of the rows that have offsets from the first up to the second."""
    found = [
        And(
            EqualTo("topic", topic),
            EqualTo("partition", partition),
            GreaterThanOrEqual("offset", first),
            LessThan("offset", end),
        )
        for (topic, partition), (first, end) in offsets.items()
    ]
    return found[0] if len(found) == 1 else Or(*found)


def data_path(table: Table) -> str:
    """Return the directory of a table's data files."""
    default = posixpath.join(table.location(), "data")
    return str(table.properties.get(TableProperties.WRITE_DATA_PATH, default)).rstrip("/")


def refuse_deletes(name: str, task: FileScanTask) -> None:
    """Raise UnsupportedFormatError for a file whose deleted rows are named in other files."""
    if task.delete_files:
        raise UnsupportedFormatError(
            f"table {name} has deletes that are not merged into its files: compact it with the "
            "engine that wrote them, then run again"
        )


def written_file(table: Table, file: DataFile) -> WrittenFile:
    """Return what is known of a file in the table, as a task reports it; columns of the file are
    read where its bounds do not say which partitions it has."""
    directory = OutputDirectory(data_path(table))
    path = posixpath.relpath(absolute_path(file.file_path), directory.path)
    least, greatest = _bounds(table, file.lower_bounds), _bounds(table, file.upper_bounds)
    key = least.get("topic"), least.get("partition")
    if None in key or key != (greatest.get("topic"), greatest.get("partition")):
        with directory.open(path) as source, ParquetFile(source) as parquet:
            rows = parquet.read([*_BOUNDED])
        least, greatest = (
            {name: compute(rows[name]).as_py() for name in _BOUNDED} for compute in (pc.min, pc.max)
        )
        counts = rows.group_by(["topic", "partition"]).aggregate([([], "count_all")])
        rows_of = {
            (each["topic"], each["partition"]): each["count_all"] for each in counts.to_pylist()
        }
    else:
        rows_of = {key: file.record_count}
    names = [field.name for field in table.specs()[file.spec_id].fields]
    found = [file.partition[index] for index in range(len(names))]
    values = [None if each is None else str(each) for each in found]
    return WrittenFile(
        path=path,
        size=file.file_size_in_bytes,
        rows=file.record_count,
        partition_values=dict(zip(names, values, strict=True)),
        least=least,
        greatest=greatest,
        null_counts={},
        rows_of=rows_of,
    )


def _bounds(table: Table, encoded: Mapping[int, bytes] | None) -> dict[str, Any]:
    """Return the least or greatest values of the columns that say where rows are from."""
    bounds: dict[str, Any] = {}
    for name in _BOUNDED:
        field = table.schema().find_field(name)
        value = (encoded or {}).get(field.field_id)
        if value is not None and isinstance(field.field_type, PrimitiveType):
            bounds[name] = from_bytes(field.field_type, value)
    return bounds
