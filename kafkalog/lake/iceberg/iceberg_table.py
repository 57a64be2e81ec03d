"""An Iceberg table of records: one snapshot has a run's files and the positions after it.

Rules: docs/ingest.md F660 to F663; reasons: docs/decisions/0028.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from kafkalog.errors import OptionError, StatePositionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.decoded_columns import NO_COLUMNS, DecodedColumns, merged_columns
from kafkalog.lake.iceberg.catalogs import (
    catalog_errors,
    created_table,
    decoded_columns,
    divided_by,
    evolved,
    has_catalog,
    identifier,
    loaded_table,
    opened_catalog,
    table_layout,
)
from kafkalog.lake.iceberg.snapshots import (
    LAST_RUN,
    POSITIONS,
    commit,
    data_files,
    data_path,
    last_run,
    newest_run,
    positions_of,
    positions_summary,
    refuse_deletes,
    rows_in,
    without_retries,
    written_file,
)
from kafkalog.lake.layout import RECORDS, TableLayout, TableOutput
from kafkalog.lake.manifest_rows import TABLE as MANIFEST
from kafkalog.lake.manifest_rows import manifest_rows
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.replaced_rows import replaced_offsets, without_replaced
from kafkalog.lake.written_file import WrittenFile
from kafkalog.views.planning.ingest_positions import IngestPositions, IngestRun

# Commits of others, such as a compaction, that a run gives way to before it gives up.
_ATTEMPTS = 10


class IcebergTable:
    """A table in a catalog of pyiceberg's configuration, or in the catalog of a local directory.

    A `Target`. Beside the table is its manifest: `ingest_manifest` for table `ingested_records`,
    `<name>_manifest` for any other.
    """

    def __init__(
        self,
        table: str = RECORDS,
        *,
        catalog: str | None = None,
        output_dir: str | None = None,
        layout: TableLayout | None = None,
    ) -> None:
        """`table` is `namespace.name`, or a name in namespace kafkalog; one of `catalog` and
        `output_dir` is given. `layout` is how runs write files, the table's own where it is None;
        without `partition_by` a table stays partitioned as it is.

        Raises OptionError for a name with an empty part.
        """
        self._name = identifier(table)
        name = MANIFEST if self._name[-1] == RECORDS else f"{self._name[-1]}_manifest"
        self._manifest_name = (*self._name[:-1], name)
        self._catalog_name, self._output_dir = catalog, output_dir
        self._layout = layout
        self._recorded: IngestPositions | None = None
        self._is_in_doubt = False

    @property
    def name(self) -> str:
        """The table's name with its namespace."""
        return ".".join(self._name)

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog, which a directory gets when it has none."""
        return opened_catalog(self._catalog_name, self._output_dir)

    def load(self) -> Table | None:
        """Return pyiceberg's table, None without it."""
        return self._load(self._name)

    def _load(self, name: tuple[str, ...]) -> Table | None:
        if not has_catalog(self._catalog_name, self._output_dir):
            return None
        with catalog_errors(self.name):
            return loaded_table(self.catalog, name)

    def recorded(self) -> IngestPositions | None:
        """Return what the table holds by its newest run, None without a run; write that run's rows
        of the manifest if it was killed before it did.

        Raises StatePositionError where the table does not say what it holds.
        """
        self._recorded = self.positions()
        if self._recorded is not None:
            self._write_manifest(self._recorded)
        return self._recorded

    def positions(self) -> IngestPositions | None:
        """Return what the table holds, None without a run; change nothing. Raises as `recorded`
        does."""
        table = self.load()
        return None if table is None else self._positions(table)

    def prepare(self, run: IngestRun, decoded: DecodedColumns = NO_COLUMNS) -> TableOutput:
        """Create the table if it does not exist, and return where tasks write for this run.

        Raises OptionError for another partitioning than the table's and for other decoded columns,
        UnsupportedFormatError where tasks cannot write the table's, StatePositionError where
        another program changes its columns meanwhile.
        """
        with catalog_errors(self.name):
            layout = self._layout or TableLayout()
            table = created_table(self.catalog, self._name, RECORDS, layout, decoded.fields)
        output = self.output(table, run.positions.run)
        merged = merged_columns(self.name, decoded_columns(table), decoded, can_widen=True)
        with catalog_errors(self.name):
            try:
                evolved(table, merged)
            except CommitFailedException as error:
                raise StatePositionError(
                    f"table {self.name}: another program has changed its columns meanwhile, this "
                    "run has written nothing: run it again"
                ) from error
        return replace(output, decoded=merged)

    def output(self, table: Table, ingest_run: int) -> TableOutput:
        """Return where and how files of the table are written. Raises as `prepare` does."""
        layout = table_layout(table)
        if self._layout is not None:
            given, allowed = (
                ", ".join(by.value for by in each) or "none"
                for each in (divided_by(self._layout), layout.partition_by)
            )
            if self._layout.partition_by and given != allowed:
                raise OptionError("--partition-by", given, f"{allowed}, as {self.name} has it")
            layout = replace(self._layout, partition_by=layout.partition_by)
        return TableOutput(data_path(table), ingest_run, layout, keeps_partition_columns=True)

    def commit(self, files: Sequence[WrittenFile], run: IngestRun) -> None:
        """Add the files and the positions after the run in one snapshot, without the rows that the
        run replaces; then write the run's rows of the manifest.

        Raises StatePositionError where another run has written since `recorded`: then the table is
        unchanged, and the files are removed.
        """
        added: list[DataFile] | None = None
        try:
            for _ in range(_ATTEMPTS):
                table = self._unchanged()
                added = added or self._data_files(table, files)
                if self._is_committed(table, added, run):
                    self._write_manifest(run.positions)
                    return
        except BaseException:
            self.discard(files)
            raise
        self.discard(files)
        raise StatePositionError(
            f"table {self.name}: others write to it all the time, this run has written nothing: "
            "run it again"
        )

    def discard(self, files: Sequence[WrittenFile]) -> None:
        """Remove files that no commit will name; none after a commit whose outcome is unknown."""
        table = None if self._is_in_doubt or not files else self.load()
        if table is None:
            return
        directory = OutputDirectory(data_path(table))
        for file in files:
            directory.delete(file.path)

    def replace_files(self, old: Sequence[DataFile], new: Sequence[WrittenFile]) -> None:
        """Commit files with the rows of others in their place; the table holds the same rows.

        Raises StatePositionError where the table no longer has all of `old` as they were: then it
        is unchanged, and the new files are removed.
        """
        try:
            for _ in range(_ATTEMPTS):
                table = self.existing()
                if not self._has_all(table, old):
                    break
                added = self._data_files(table, new)
                if self._has_landed(table, added, old, positions_summary(table), {}):
                    return
            raise StatePositionError(
                f"table {self.name}: a run or another program has rewritten the same files "
                "meanwhile, nothing is changed: run it again"
            )
        except BaseException:
            self.discard(new)
            raise

    def existing(self) -> Table:
        """Return pyiceberg's table. Raises StatePositionError without it."""
        table = self.load()
        if table is None:
            raise StatePositionError(f"there is no table {self.name}")
        return table

    @property
    def directory(self) -> OutputDirectory:
        """The directory of the data files. Raises StatePositionError without the table."""
        return OutputDirectory(data_path(self.existing()))

    def _has_all(self, table: Table, files: Sequence[DataFile]) -> bool:
        found = {task.file for task in table.scan().plan_files() if not task.delete_files}
        return found.issuperset(files)

    def _positions(self, table: Table) -> IngestPositions | None:
        snapshot = newest_run(table)
        if snapshot is not None:
            return positions_of(table, snapshot)
        if table.current_snapshot() is None and not last_run(table):
            return None
        return self._in_manifest(table)

    def _in_manifest(self, table: Table) -> IngestPositions:
        """Return the positions from the manifest, where the snapshots that had them are expired."""
        manifest = self._load(self._manifest_name)
        rows = [] if manifest is None else manifest.scan().to_arrow().to_pylist()
        run = last_run(table)
        # A rollback leaves rows in the manifest, and a killed run none.
        newest = max((row["ingest_run"] for row in rows if row["rows"]), default=None)
        if newest is None or not _has_run(table, newest) or run not in _column(rows, "ingest_run"):
            raise StatePositionError(
                f"table {self.name}: no snapshot has the offsets that the table holds: they were "
                "expired, or another program has made the table; begin with another --table"
            )
        next_offsets: dict[TopicPartition, int] = {}
        for row in rows:
            key = row["topic"], row["partition"]
            next_offsets[key] = max(row["until_offset"], next_offsets.get(key, 0))
        rows.sort(key=itemgetter("ingest_run"))
        return IngestPositions(
            isolation_level=rows[-1]["isolation_level"],
            run=run,
            cluster_id=next((each for each in _column(reversed(rows), "cluster_id") if each), None),
            next_offsets=next_offsets,
            topic_ids={row["topic"]: row["topic_id"] for row in rows if row["topic_id"]},
        )

    def _unchanged(self) -> Table:
        """Return the table, if no other run has written since `recorded`."""
        table = self.load()
        if table is None or self._positions(table) != self._recorded:
            raise StatePositionError(
                f"table {self.name}: another run has written meanwhile, this one has written "
                "nothing: run it again"
            )
        return table

    def _data_files(self, table: Table, files: Sequence[WrittenFile]) -> list[DataFile]:
        return data_files(table, [posixpath.join(data_path(table), each.path) for each in files])

    def _is_committed(self, table: Table, added: Sequence[DataFile], run: IngestRun) -> bool:
        """Return whether the run's snapshot is the one after that of `table`."""
        removed, rewritten = self._without_replaced(table, run)
        try:
            new = [*added, *self._data_files(table, rewritten)]
            summary = {POSITIONS: run.positions.to_json()}
            properties = {LAST_RUN: str(run.positions.run)}
            has_landed = self._has_landed(table, new, removed, summary, properties)
        except BaseException:
            self.discard(rewritten)
            raise
        if not has_landed:
            self.discard(rewritten)
        return has_landed

    def _has_landed(
        self,
        table: Table,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
        summary: Mapping[str, str],
        properties: Mapping[str, str],
    ) -> bool:
        """Commit, and return whether the catalog accepted it. Whatever else is raised leaves it
        unknown."""
        self._is_in_doubt = True
        with catalog_errors(self.name):
            try:
                commit(table, added, removed, summary, properties)
            except CommitFailedException:
                self._is_in_doubt = False
        return self._is_in_doubt

    def _without_replaced(
        self, table: Table, run: IngestRun
    ) -> tuple[list[DataFile], list[WrittenFile]]:
        """Return the files to remove, and new ones with those of their rows that stay."""
        offsets = replaced_offsets(run)
        if not offsets or table.current_snapshot() is None:
            return [], []
        found: dict[str, DataFile] = {}
        files = []
        for task in table.scan(row_filter=rows_in(offsets)).plan_files():
            refuse_deletes(self.name, task)
            files.append(written_file(table, task.file))
            found[files[-1].path] = task.file
        after = without_replaced(self.output(table, run.positions.run), files, run)
        return [found[file.path] for file in after.removed], after.rewritten

    def _write_manifest(self, positions: IngestPositions) -> None:
        """Add a run's rows to the manifest, unless it has them."""
        if not positions.ranges:
            return
        rows = manifest_rows(positions, time.time_ns() // 1_000_000)
        for _ in range(_ATTEMPTS):
            with suppress(CommitFailedException), catalog_errors(self.name):
                manifest = created_table(self.catalog, self._manifest_name, MANIFEST)
                if not _has_run(manifest, positions.run):
                    without_retries(manifest).append(pa.Table.from_batches([rows]))
                return


def _has_run(manifest: Table, run: int) -> bool:
    rows = manifest.scan(EqualTo("ingest_run", run), selected_fields=("ingest_run",), limit=1)
    return len(rows.to_arrow()) > 0


def _column(rows: Iterable[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]
