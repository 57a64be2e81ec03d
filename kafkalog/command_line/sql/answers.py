"""The rows of a query, as text, JSON lines, CSV or a Parquet file, and a prompt for queries."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.command_line.answer_output import table_cells
from kafkalog.command_line.terminal import print_error, print_note, print_text, write_table
from kafkalog.errors import KafkaLogError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.files.output_files import given_file
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.views.options.parameter_types import format_of_file
from kafkalog.words import counted

if TYPE_CHECKING:
    from kafkalog.tables.database import Database

_ROWS = 65_536
_FIRST, _NEXT = "kafkalog> ", "     ...> "
_ENDS = ("exit", "quit", ".exit", ".quit", "\\q")
_GREETING = """\
Queries end with a semicolon; `show tables;` lists the tables, `describe records;` the columns of
one, and `exit` or Ctrl-D ends."""


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


def run_prompt(database: Database, answers: Answers, ask: Callable[[str], str] = input) -> None:
    """Answer queries until the input ends. An error is a line, and the prompt goes on."""
    with suppress(ImportError):
        import_module("readline")  # gives `input` a history and arrow keys
    print_text(_GREETING)
    lines: list[str] = []
    while True:
        try:
            line = ask(_NEXT if lines else _FIRST)
        except EOFError:
            return
        except KeyboardInterrupt:
            lines.clear()
            continue
        if not lines and line.strip().rstrip(";").lower() in _ENDS:
            return
        if line.strip() or lines:
            lines.append(line)
        if not line.rstrip().endswith(";"):
            continue
        query = "\n".join(lines)
        lines.clear()
        try:
            answers.write(database, query)
        except (KafkaLogError, OSError) as error:
            print_error(str(error), ExitCode.WRONG_ARGUMENTS)
        except KeyboardInterrupt:
            database.connection.interrupt()
