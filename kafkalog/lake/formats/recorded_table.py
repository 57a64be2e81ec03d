"""What a table of any format says that it holds, without a change to it and without Spark.

Rule: docs/ingest.md F934.
"""

from __future__ import annotations

from posixpath import dirname

import click

from kafkalog.errors import OptionError, StatePositionError
from kafkalog.lake.delta.delta_positions import read_positions
from kafkalog.lake.formats.maintained_table import iceberg_place
from kafkalog.lake.formats.targets import ICEBERG, TablePlace, iceberg_table
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet.parquet_manifest import read_manifest
from kafkalog.storage.log_dir.table_formats import DELTA_LOG, MANIFEST
from kafkalog.views.planning.ingest_positions import IngestPositions
from kafkalog.views.planning.state_positions import StatePositions

_TABLE = "TABLE"
_MOST_NAMED = 3


def recorded_positions(
    directory: str | None, catalog: str | None, table: str | None
) -> IngestPositions:
    """Return the positions of the table in a directory, or of `table` of a catalog: one that
    exports write, or the Delta table of reconstruct-state.

    Raises click.UsageError where both or neither are given, OptionError for a directory without a
    table, StatePositionError for a table that does not say what it holds.
    """
    if catalog is not None and table is not None and directory is None:
        return _of_iceberg(TablePlace(ICEBERG, catalog=catalog, table=table))
    if catalog is not None or table is not None or directory is None:
        raise click.UsageError("give TABLE, or --catalog and --table in its place")
    found = OutputDirectory(directory)
    if found.files(DELTA_LOG):
        return read_positions(found, _parsed)
    manifest = read_manifest(found)
    if manifest is not None:
        return manifest.positions
    place = iceberg_place(directory, found)
    if place is not None:
        return _of_iceberg(place)
    raise OptionError(_TABLE, directory, f"the directory of a table{_tables_below(found)}")


def _of_iceberg(place: TablePlace) -> IngestPositions:
    found = iceberg_table(place)
    positions = found.positions()
    if positions is None:
        raise StatePositionError(f"table {found.name}: there is none, or no export has written it")
    return positions


def _parsed(text: str | None) -> IngestPositions | None:
    ingested = IngestPositions.from_json(text)
    if ingested is not None:
        return ingested
    state = StatePositions.from_json(text)
    if state is None:
        return None
    return IngestPositions(
        isolation_level=state.isolation_level,
        cluster_id=state.cluster_id,
        next_offsets=state.next_offsets,
        leader_epochs=state.leader_epochs,
        topic_ids=state.topic_ids,
    )


def _tables_below(directory: OutputDirectory) -> str:
    """Return words that name tables in folders of a directory, nothing without any."""
    paths = [directory.relative(each) for each in directory.files()]
    folders = {dirname(path) for path in paths if path.endswith(f"/{MANIFEST}")}
    folders |= {dirname(dirname(path)) for path in paths if dirname(path).endswith(f"/{DELTA_LOG}")}
    tables = sorted(f"{directory.path}/{folder}" for folder in folders if folder)
    return f", such as {' or '.join(tables[:_MOST_NAMED])}" if tables else ""
