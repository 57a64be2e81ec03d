"""A target that keeps what is committed in memory, to see what an export asks of any target."""

import os
from collections.abc import Sequence
from pathlib import Path

from kafkalog.lake.decoded_columns import NO_COLUMNS, DecodedColumns
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.written_file import WrittenFile
from kafkalog.views.planning.ingest_positions import IngestPositions, IngestRun


class KeptTarget:
    """A table of files in a directory, whose commits are in memory; `error` is what the next
    commit raises."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.positions: IngestPositions | None = None
        self.files: list[WrittenFile] = []
        self.error: BaseException | None = None

    def recorded(self) -> IngestPositions | None:
        return self.positions

    def prepare(self, run: IngestRun, decoded: DecodedColumns = NO_COLUMNS) -> TableOutput:
        return TableOutput(str(self.path), run.positions.run)

    def commit(self, files: Sequence[WrittenFile], run: IngestRun) -> None:
        if self.error is not None:
            raise self.error
        self.files += files
        self.positions = run.positions

    def discard(self, files: Sequence[WrittenFile]) -> None:
        for file in files:
            os.remove(self.path / file.path)
