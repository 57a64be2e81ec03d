"""Tables that an export can commit without a JVM, and who commits each."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING

from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.extras import missing_extras_named
from kafkalog.lake.layout import DEFAULT_NAMESPACE, RECORDS, TableLayout
from kafkalog.lake.table_options import TableRequest
from kafkalog.storage.files.uris import is_remote
from kafkalog.views.options.topics_file import OPTION as TOPICS_FILE
from kafkalog.views.options.topics_file import TopicRun

if TYPE_CHECKING:  # pyarrow would make help slow
    from kafkalog.lake.iceberg.iceberg_table import IcebergTable
    from kafkalog.lake.target import Target

# Who commits what delta-rs does not.
_BY_JOB = "`kafkalog job ingest-topics` writes it, with Java"
PARQUET, ICEBERG, DELTA = FORMATS = ("parquet", "iceberg", "delta")


@dataclass(frozen=True, slots=True)
class TablePlace:
    """The format of tables, and the directory or the catalog of pyiceberg's configuration where
    they are; `table` is a name in the catalog, in place of ingested_records."""

    table_format: str
    output_dir: str | None = None
    catalog: str | None = None
    table: str | None = None

    def refuse_contradictions(self) -> None:
        """Raise OptionError for options that do not fit the format, and without a place."""
        if self.catalog is not None and self.table_format == DELTA:
            reason = (
                f"only with --format {ICEBERG}: --table names a Delta table of Spark's catalogs"
            )
            raise RefusedOptionError("--catalog", reason)
        if self.table_format == PARQUET:
            for option, value in (("--catalog", self.catalog), ("--table", self.table)):
                if value is not None:
                    reason = f"only with --format {ICEBERG}: Parquet has no catalog"
                    raise RefusedOptionError(option, reason)
        if self.output_dir is None and self.catalog is None:
            allowed = "a directory, or --catalog for Iceberg tables"
            raise OptionError("--output-dir", None, allowed)
        if self.output_dir is not None and self.catalog is not None:
            reason = "leave it out with --catalog: the catalog says where its tables are"
            raise RefusedOptionError("--output-dir", reason)

    def refuse_delta_of_spark(self) -> None:
        """Raise OptionError for a Delta table that delta-rs does not commit to: one with a name in
        Spark's catalogs, and one in an object store."""
        if self.table_format != DELTA:
            return
        if self.table is not None:
            reason = f"not with --format {DELTA} here: it is a name in Spark's catalogs, {_BY_JOB}"
            raise RefusedOptionError("--table", reason)
        if self.output_dir is not None and is_remote(self.output_dir):
            allowed = f"a directory of this machine with --format {DELTA}; {_BY_JOB}"
            raise OptionError("--output-dir", self.output_dir, allowed)

    def location(self, name: str) -> str:
        """Return the directory of the table of that name, or its name in the catalog."""
        if self.table_format != ICEBERG:
            return posixpath.join(self.output_dir or "", name)
        full_name = iceberg_table(self, name).name
        if self.output_dir is None:
            return full_name
        return posixpath.join(self.output_dir, *full_name.split("."))

    def refuse_other_formats(self, name: str) -> None:
        """Raise RefusedOptionError where the directory has a table of that name, or the manifest of
        its runs, in another format."""
        if self.output_dir is None or (self.table_format == ICEBERG and is_remote(self.output_dir)):
            # No catalog can be in an object store, and opening it says so.
            return
        from kafkalog.lake.formats.found_tables import refuse_inside_table, refuse_other_formats
        from kafkalog.lake.manifest_rows import TABLE as MANIFEST

        # A store can be read from when the options of the source are known.
        refuse_inside_table(self.output_dir)
        paths = [posixpath.join(self.output_dir, each) for each in (name, MANIFEST)]
        in_catalog = posixpath.join(self.output_dir, DEFAULT_NAMESPACE, name)
        if self.table_format == ICEBERG and self.table is not None:
            in_catalog = self.location(name)
        refuse_other_formats(self.output_dir, (*paths, in_catalog), self.table_format)


def requested_place(table_format: str, output_dir: str | None, tables: TableRequest) -> TablePlace:
    """Return where the requested tables are. Raises OptionError for options that do not fit."""
    tables.layout()
    place = TablePlace(table_format, output_dir, tables.catalog, tables.table)
    place.refuse_contradictions()
    if output_dir is not None and not is_remote(output_dir):
        from kafkalog.lake.formats.found_tables import refuse_inside_table

        refuse_inside_table(output_dir)
    return place


def refuse_places(file: str, runs: Iterable[TopicRun], *, by_spark: bool) -> None:
    """Raise RefusedOptionError for topics of a file whose tables cannot be where their options say,
    before any of the runs. Rule: docs/ingest.md F1090."""
    names = [each.name for each in fields(TableRequest)]
    for run in runs:
        given = run.parameters
        tables = TableRequest(**{name: given[name] for name in names})
        try:
            place = requested_place(given["table_format"], given["output_dir"] or None, tables)
            if not by_spark:
                place.refuse_delta_of_spark()
        except OptionError as error:
            raise RefusedOptionError(f"{TOPICS_FILE} {file}: {run.name}", str(error)) from error


def table_target(place: TablePlace, layout: TableLayout) -> Callable[[str], Target]:
    """Return what gives the tables of a place by their names."""
    from kafkalog.lake.parquet.parquet_table import ParquetTable

    def target(name: str) -> Target:
        place.refuse_other_formats(name)
        if place.table_format == PARQUET:
            return ParquetTable(place.location(name), layout)
        if place.table_format == DELTA:
            return delta_table(place, name, layout)
        return iceberg_table(place, name, layout)

    return target


def delta_table(place: TablePlace, name: str, layout: TableLayout) -> Target:
    """Return the Delta table of that name, committed by delta-rs. Raises MissingExtraError without
    deltalake."""
    from kafkalog.lake.delta.delta_table import DeltaTarget
    from kafkalog.lake.manifest_rows import TABLE as MANIFEST

    return DeltaTarget(place.location(name), layout, place.location(MANIFEST))


def iceberg_table(
    place: TablePlace, name: str = RECORDS, layout: TableLayout | None = None
) -> IcebergTable:
    """Return the table of that name, `place.table` instead of ingested_records. Raises
    MissingExtraError without pyiceberg."""
    with missing_extras_named():
        for module in ("pyiceberg", "sqlalchemy"):
            import_module(module)
    from kafkalog.lake.iceberg.iceberg_table import IcebergTable

    return IcebergTable(
        place.table if place.table is not None and name == RECORDS else name,
        catalog=place.catalog,
        output_dir=place.output_dir,
        layout=layout,
    )
