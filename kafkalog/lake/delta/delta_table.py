"""The table of records in Delta's format, committed without Java: each commit has rows and the
offsets that they cover, as those of job ingest-topics have, which can go on from here.

Rules: docs/ingest.md F530 to F535; reasons: docs/decisions/0014 and 0066.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace

from kafkalog.errors import KafkaLogError
from kafkalog.lake.decoded_columns import (
    DECODED_COLUMNS,
    NO_COLUMNS,
    DecodedColumns,
    Field,
    merged_columns,
)
from kafkalog.lake.delta.delta_commits import DeltaLog
from kafkalog.lake.delta.delta_layout import fitting_layout, records_schema
from kafkalog.lake.delta.delta_positions import read_positions
from kafkalog.lake.layout import TableLayout, TableOutput
from kafkalog.lake.manifest_rows import TABLE as MANIFEST
from kafkalog.lake.manifest_rows import manifest_rows
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.table_writer import written_rows
from kafkalog.lake.written_file import WrittenFile
from kafkalog.schemas import table_json
from kafkalog.views.planning.ingest_positions import WRITER, IngestPositions, IngestRun, Replaces


class DeltaTarget:
    """A Delta table in a directory of this machine. See `Target`."""

    def __init__(self, path: str, layout: TableLayout, manifest: str) -> None:
        """`manifest` is the directory of table `ingest_manifest`. Raises MissingExtraError without
        deltalake."""
        self.directory = OutputDirectory(path)
        self._layout, self._manifest = layout, manifest
        self._log = DeltaLog(self.directory.path)
        self._decoded: tuple[Field, ...] = ()

    @property
    def path(self) -> str:
        """The table's directory."""
        return self.directory.path

    def recorded(self) -> IngestPositions | None:
        if not self._log.is_there:
            return None
        found = read_positions(self.directory, IngestPositions.from_json)
        # Numbers of runs are never used again, not even after a RESTORE: the guard goes by them.
        recorded = replace(found, run=max(found.run, self._log.last_version(WRITER)))
        if all(each.rows is not None for each in recorded.ranges):
            self._report(recorded)
        return recorded

    def prepare(self, run: IngestRun, decoded: DecodedColumns = NO_COLUMNS) -> TableOutput:
        if run.replaces is not Replaces.NOTHING:
            raise KafkaLogError(
                f"{self.path}: this run would replace rows of a Delta table, which it cannot do "
                "with delta-rs: `kafkalog job ingest-topics` does, with Java"
            )
        if not self._log.is_there:
            self._decoded = decoded.fields
            self._log.create(
                records_schema(self._decoded, self._layout),
                partition_by=[each.value for each in self._layout.partition_by],
                user_metadata=IngestPositions(run.positions.isolation_level).to_json(),
            )
            self._log = DeltaLog(self.path)
        fields = self._log.fields
        self._log.refuse_other_features()
        self._layout = fitting_layout(self.path, self._layout, self._log.partition_columns, fields)
        of_table = [each for each in fields if each["name"] in DECODED_COLUMNS]
        self._decoded = merged_columns(self.path, of_table, decoded)
        return TableOutput(self.path, run.positions.run, self._layout, decoded=tuple(self._decoded))

    def commit(self, files: Sequence[WrittenFile], run: IngestRun) -> None:
        try:
            self._log = DeltaLog(self.path)
            self._log.append(
                files,
                writer=WRITER,
                version=run.positions.run,
                user_metadata=run.positions.to_json(),
            )
        except BaseException:
            self.discard(files)
            raise
        self._report(run.positions)

    def discard(self, files: Sequence[WrittenFile]) -> None:
        for file in files:
            self.directory.delete(file.path)

    def _report(self, positions: IngestPositions) -> None:
        """Add the rows of a run to table `ingest_manifest`, if they are not there."""
        log, writer = DeltaLog(self._manifest), f"{WRITER} {os.path.basename(self.path)}"
        if not positions.ranges or log.last_version(writer) >= positions.run:
            return
        rows = manifest_rows(positions, time.time_ns() // 1_000_000)
        files = written_rows(TableOutput(self._manifest, positions.run), MANIFEST, [rows])
        if log.is_there:
            log.append(files, writer=writer, version=positions.run, user_metadata=None)
        else:
            schema = json.loads(table_json(MANIFEST))
            log.create(schema, files, writer=(writer, positions.run))
