"""A table of records as a directory of Parquet files and a manifest, without a table format.

A commit replaces the manifest, and then gives the new files their names. Engines that list the
directory see a file only from then on; what a killed run left undone the next one completes. Rules:
docs/ingest.md F650 to F653; reasons: docs/decisions/0029.
"""

from __future__ import annotations

import posixpath
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import parquet

from kafkalog.errors import OptionError, StatePositionError
from kafkalog.lake.decoded_columns import NO_COLUMNS, DecodedColumns, Field, merged_columns
from kafkalog.lake.layout import TableLayout, TableOutput
from kafkalog.lake.manifest_rows import TABLE as RUNS
from kafkalog.lake.manifest_rows import manifest_rows
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet.parquet_manifest import TableManifest, read_manifest
from kafkalog.lake.replaced_rows import without_replaced
from kafkalog.lake.table_writer import PENDING_FOLDER
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.log_dir.table_formats import DELTA_LOG, MANIFEST
from kafkalog.views.planning.ingest_positions import IngestPositions, IngestRun

_LOCK = "_manifest.lock"


class ParquetTable:
    """A directory of Parquet files; those count that its manifest names. See `Target`.

    Methods raise OSError as the file system does. An error before the manifest is replaced leaves
    the table as it was; after that, the next run completes the commit.
    """

    def __init__(self, path: str, layout: TableLayout | None = None) -> None:
        """`layout` is how runs write files; that of the newest run where it is None."""
        self.directory = OutputDirectory(path)
        self._layout = layout
        self._recorded: TableManifest | None = None
        self._decoded: tuple[Field, ...] = ()

    @property
    def path(self) -> str:
        return self.directory.path

    def manifest(self) -> TableManifest | None:
        """Return what the table consists of, None without a table. Changes nothing."""
        return read_manifest(self.directory)

    def recorded(self) -> IngestPositions | None:
        self._recorded = self.manifest()
        if self._recorded is None:
            self._refuse_other_files()
            return None
        if self._has_unfinished(self._recorded):
            with self.directory.locked(_LOCK):
                self._recorded = self.manifest() or self._recorded
                self._finish(self._recorded)
        self._report(self._recorded)
        return self._recorded.positions

    def prepare(self, run: IngestRun, decoded: DecodedColumns = NO_COLUMNS) -> TableOutput:
        self._decoded = decoded.fields
        if self._recorded is not None:
            self._decoded = merged_columns(self.path, self._recorded.decoded, decoded)
        return replace(self.output(run.positions.run), decoded=self._decoded)

    def output(self, ingest_run: int) -> TableOutput:
        """Return where tasks write new files. Raises OptionError for another partitioning than the
        table's: engines take the columns of the partitions from the paths of all files."""
        recorded = None if self._recorded is None else self._recorded.layout
        layout = self._layout or recorded or TableLayout()
        if recorded is not None and recorded.partition_by != layout.partition_by:
            given, allowed = (
                ", ".join(by.value for by in each.partition_by) or "none"
                for each in (layout, recorded)
            )
            raise OptionError("--partition-by", given, f"{allowed}, as {self.path} has it")
        return TableOutput(self.path, ingest_run, layout, has_pending_folder=True)

    def commit(self, files: Sequence[WrittenFile], run: IngestRun) -> None:
        output = self.output(run.positions.run)
        new = [*files]
        try:
            self._refuse_newer()
            before = () if self._recorded is None else self._recorded.settled_files()
            after = without_replaced(output, before, run)
            new += after.rewritten
            self._replace_manifest(
                TableManifest(
                    commit_id=uuid.uuid4().hex,
                    positions=run.positions,
                    layout=output.layout,
                    decoded=self._decoded,
                    files=(*after.kept, *new),
                    removed=tuple(file.path for file in after.removed),
                )
            )
        except BaseException:
            self.discard(new)
            raise

    def replace_files(self, old: Iterable[WrittenFile], new: Sequence[WrittenFile]) -> None:
        """Commit files with the rows of others in their place; the table holds the same rows.

        Raises StatePositionError where another run has written since `recorded`: then the table is
        unchanged, and the new files are removed.
        """
        if self._recorded is None:
            raise StatePositionError(f"{self.path} is not a table: it has no {MANIFEST}")
        removed = {file.path for file in old}
        kept = [each for each in self._recorded.settled_files() if each.path not in removed]
        after = replace(
            self._recorded,
            commit_id=uuid.uuid4().hex,
            files=(*kept, *new),
            removed=tuple(sorted(removed)),
        )
        try:
            self._replace_manifest(after)
        except BaseException:
            self.discard(new)
            raise

    def discard(self, files: Sequence[WrittenFile]) -> None:
        manifest = self.manifest()
        named = set() if manifest is None else set(manifest.places())
        for file in files:
            # A commit can be done although its answer was an error.
            if file.path not in named:
                self.directory.delete(file.written_path)

    def _replace_manifest(self, after: TableManifest) -> None:
        """The commit, and what follows it."""
        with self.directory.locked(_LOCK):
            self._refuse_newer()
            self.directory.replace(MANIFEST, after.to_json().encode())
            # Without a lock, as in an object store, another run can have replaced it since.
            self._recorded = after
            self._refuse_newer()
            self._finish(after)
        self._report(after)

    def _refuse_newer(self) -> None:
        """Raise StatePositionError where the manifest is not the one that was recorded."""
        found = self.manifest()
        if _commit_id(found) != _commit_id(self._recorded):
            raise StatePositionError(
                f"{self.path}: another run has written meanwhile, this one has written nothing: "
                "run it again"
            )

    def _has_unfinished(self, manifest: TableManifest) -> bool:
        is_removed = any(self.directory.exists(path) for path in manifest.removed)
        return is_removed or bool(self._waiting(manifest))

    def _waiting(self, manifest: TableManifest) -> list[WrittenFile]:
        """Return the files of the newest commit that do not have their names yet."""
        pending = {self.directory.relative(each) for each in self.directory.files(PENDING_FOLDER)}
        return [file for file in manifest.files if file.pending_path in pending]

    def _finish(self, manifest: TableManifest) -> None:
        """Remove what the commit took out, then name what it added: no engine sees a row twice."""
        for path in manifest.removed:
            self.directory.delete(path)
        files = self._waiting(manifest)
        answers(self._move, files, lambda file: self.path)
        self.directory.flush(file.path for file in files)

    def _move(self, file: WrittenFile) -> None:
        self.directory.move(file.written_path, file.path)

    def _report(self, manifest: TableManifest) -> None:
        """Write the rows of the newest run to table `ingest_manifest`, if they are not there: to a
        file of their own, which appears as a whole."""
        positions = manifest.positions
        runs = OutputDirectory(posixpath.join(posixpath.dirname(self.path), RUNS))
        name = f"{posixpath.basename(self.path)}-{positions.run:06}-{positions.token}.parquet"
        if not positions.ranges or runs.exists(name):
            return
        rows = manifest_rows(positions, time.time_ns() // 1_000_000)
        data = pa.BufferOutputStream()
        parquet.write_table(pa.Table.from_batches([rows]), data, store_schema=False)
        runs.replace(name, data.getvalue().to_pybytes())

    def _refuse_other_files(self) -> None:
        """Raise StatePositionError for a directory with files that no manifest names: engines would
        read them as rows of the table."""
        if self.directory.files(DELTA_LOG):
            raise StatePositionError(f"{self.path} is a Delta table: give another directory")
        for found in self.directory.files():
            path = self.directory.relative(found)
            if path.endswith(".parquet") and not path.startswith("_"):
                raise StatePositionError(
                    f"{self.path} has Parquet files, such as {path}, and no {MANIFEST} that says "
                    "what they hold: give another directory"
                )


def _commit_id(manifest: TableManifest | None) -> str | None:
    return None if manifest is None else manifest.commit_id
