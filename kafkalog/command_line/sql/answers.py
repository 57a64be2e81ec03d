"""The rows of a query, as text, JSON lines, CSV or a Parquet file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.command_line.findings_table import table_cells
from kafkalog.command_line.terminal import print_note, write_table
from kafkalog.errors import RefusedOptionError
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.files.output_files import given_file
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.views.options.parameter_types import format_of_file
from kafkalog.words import counted

if TYPE_CHECKING:
    from kafkalog.tables.database import Database

_ROWS = 65_536


def output_format(given: str | None, output: str | None) -> str:
    """Return the given format, otherwise that of the output's ending, otherwise text. Raises
    OptionError where only a file can have it, and for an unknown ending."""
    found = given or format_of_file(output)
    if found == "parquet" and output is None:
        raise RefusedOptionError("--format", "parquet needs --output FILE")
    return found


@dataclass(frozen=True, slots=True)
class Answers:
    """Where answers go: their format, the file, None for stdout, and the paths that are read."""

    table_format: str
    output: str | None
    paths: Sequence[str]

    def write(self, database: Database, query: str) -> None:
        """Write the rows that a query gives. Raises OptionError for one that DuckDB does not take,
        and what reading raises."""
        with database.reader(query, _ROWS) as reader:
            if self.output is None:
                self._write_rows(reader)
                return
            inputs = [path for given in self.paths for path in matching_paths(given)]
            refuse_inside("--output", self.output, inputs, what="file")
            with given_file("--output", self.output) as file:
                if self.table_format == "parquet":
                    count = _write_parquet(reader, file)
                else:
                    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
                    with redirect_stdout(text):
                        count = self._write_rows(reader)
                    text.flush()
                    text.detach()
        print_note(f"{counted(count, 'row')} written to {self.output}")

    def _write_rows(self, reader: pa.RecordBatchReader) -> int:
        names = reader.schema.names
        count = 0

        def rows() -> Iterator[list[object]]:
            nonlocal count
            for batch in reader:
                count += len(batch)
                columns = [column.to_pylist() for column in batch.columns]
                for row in zip(*columns, strict=True):
                    yield table_cells(row, self.table_format)

        write_table(names, rows(), self.table_format)
        return count


def _write_parquet(reader: pa.RecordBatchReader, file: Any) -> int:
    count = 0
    with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            count += len(batch)
    return count
