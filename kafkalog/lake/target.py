"""What an export needs of a table, whichever format it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafkalog.lake.decoded_columns import NO_COLUMNS, DecodedColumns
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.written_file import WrittenFile
from kafkalog.views.planning.ingest_positions import IngestPositions, IngestRun


class Target(Protocol):
    """A table of records that runs add to, each in one commit."""

    def recorded(self) -> IngestPositions | None:
        """Return what the table holds by its newest commit, None without a table.

        Completes what a killed run left undone after its commit. Raises StatePositionError where
        the table does not say what it holds.
        """

    def prepare(self, run: IngestRun, decoded: DecodedColumns = NO_COLUMNS) -> TableOutput:
        """Create the table if it does not exist, with columns for decoded keys and values, and
        return where tasks write for this run, with all decoded columns that the table has then.

        Raises RefusedOptionError where the table has other decoded columns, which the run must not
        or cannot add to.
        """

    def commit(self, files: Sequence[WrittenFile], run: IngestRun) -> None:
        """Make the files, and the positions after the run, part of the table in one commit, in
        place of the rows that the run replaces; then report the run in table `ingest_manifest`,
        with the rows of each range, which `IngestRun.with_rows` has put into the positions.

        Raises StatePositionError where another run has written since `recorded`: then the table is
        unchanged. After any other error the commit can be done or not; it has removed the files
        where it knows that it is not.
        """

    def discard(self, files: Sequence[WrittenFile]) -> None:
        """Remove files that no commit will name."""
