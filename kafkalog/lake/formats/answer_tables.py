"""The tables of an answer as files, with the names, columns and places that a job's tables have:
`DIR/TABLE/*.parquet`, replaced as a whole.

1. A run replaces the rows of its inputs. A table with rows of other inputs is refused.
   Delta tables, which delta-rs commits, keep those rows instead.
2. A local table is written beside the one that is there, and then gets its name: readers see the
   one or the other. In an object store it is whole when it has `_SUCCESS`.

Reasons: docs/decisions/0066.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kafkalog.errors import KafkaLogError, OptionError
from kafkalog.extras import missing_extras_named
from kafkalog.lake.file_schemas import file_schema, write_no_rows
from kafkalog.lake.formats.found_tables import refuse_inside_table, refuse_other_formats
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.table_writer import written_rows
from kafkalog.lake.written_file import OnReport, WrittenFile, no_report
from kafkalog.schemas import table_json
from kafkalog.storage.files.output_files import refuse_unwritable
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.read_directories import refuse_tables
from kafkalog.storage.log_dir.table_formats import SUCCESS
from kafkalog.views.engine import Rows
from kafkalog.words import json_value

INPUT_COLUMN = "input_path"
_OPTION = "--output-dir"
# Rows that are made into text at once.
_ROWS_OF_TEXT = 10_000
_MOST_NAMED = 3


class RowsOfTasks(Protocol):
    """Rows of a table that tasks make: as rows, or as files that these write and report."""

    def rows(self) -> Rows:
        """Return the rows, which tasks make now."""
        ...

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]:
        """Run the tasks, which write the rows to files and report these; return the files."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerTables:
    """Tables below a directory, local or a URI, in format json, csv, parquet or delta, with the
    rows of `inputs`: the paths that were read, globs resolved."""

    output_dir: str
    table_format: str
    inputs: Sequence[str]

    def refuse(self, tables: Iterable[str], directories: Iterable[str]) -> None:
        """Raise OptionError for a directory that is in one of the `directories` that are read, that
        cannot be written to, or that is a table; and KafkaLogError for tables of other inputs. Call
        it before the work."""
        refuse_tables(self.output_dir, directories)
        if self.table_format == "delta":
            self._refuse_for_delta()
        if not is_remote(self.output_dir):
            refuse_inside_table(self.output_dir)
            refuse_unwritable(_OPTION, self.output_dir)
        for table in tables:
            self._refuse_others(table)

    def _refuse_for_delta(self) -> None:
        """Raise OptionError for an object store, and MissingExtraError without deltalake."""
        if is_remote(self.output_dir):
            allowed = "a directory of this machine with --format delta; jobs write to others"
            raise OptionError(_OPTION, self.output_dir, allowed)
        with missing_extras_named():
            import_module("deltalake")

    def replace(
        self, table: str, rows: pa.Table | RowsOfTasks, schema: pa.Schema | None = None
    ) -> str:
        """Write the rows of a table in place of those that it has; return its path. Tasks write
        what they make themselves, where the format is Parquet. `schema` is that of files of a
        table whose columns the options decide."""
        self._refuse_others(table)
        path = self._path(table)
        if self.table_format == "delta":
            self._replace_in_delta(path, table, rows)
            return path
        replace_directory(path, lambda directory: self._write(directory, table, rows, schema))
        return path

    def _path(self, table: str) -> str:
        return os.path.join(self.output_dir, table)

    def _replace_in_delta(self, path: str, table: str, rows: pa.Table | RowsOfTasks) -> None:
        from kafkalog.lake.delta.delta_commits import DeltaLog

        log = DeltaLog(path)
        if log.is_there:
            found = rows if isinstance(rows, pa.Table) else rows.rows().table
            log.replace_rows(found, INPUT_COLUMN, self.inputs)
            return
        files = self._parquet_files(TableOutput(path, ingest_run=0), table, rows)
        try:
            log.create(json.loads(table_json(table)), files)
        except BaseException:
            for file in files:
                OutputDirectory(path).delete(file.path)
            raise

    def _write(
        self, path: str, table: str, rows: pa.Table | RowsOfTasks, schema: pa.Schema | None
    ) -> None:
        directory = OutputDirectory(path)
        if self.table_format == "parquet":
            if not self._parquet_files(TableOutput(path, ingest_run=0), table, rows, schema):
                write_no_rows(directory, schema or file_schema(table))
        else:
            rows = rows if isinstance(rows, pa.Table) else rows.rows().table
            lines = json_lines(rows) if self.table_format == "json" else csv_lines(rows)
            name = f"{uuid.uuid4()}.{self.table_format}"
            with directory.create(name) as file:
                for text in lines:
                    file.write(text.encode())
            directory.flush([name])
        directory.replace(SUCCESS, b"")

    def _parquet_files(
        self,
        output: TableOutput,
        table: str,
        rows: pa.Table | RowsOfTasks,
        schema: pa.Schema | None = None,
    ) -> list[WrittenFile]:
        if not isinstance(rows, pa.Table):
            return rows.written(output, no_report)
        return written_rows(output, table, rows.cast(schema or file_schema(table)).to_batches())

    def _refuse_others(self, table: str) -> None:
        """Raise RefusedOptionError for a table of another format, and KafkaLogError for one with
        rows of other inputs, and for what is not a table."""
        path = self._path(table)
        refuse_other_formats(self.output_dir, [path], self.table_format)
        if self.table_format == "delta":
            # Which keeps the rows of other inputs.
            return
        found = inputs_of_table(path, self.table_format)
        if found is None:
            raise KafkaLogError(
                f"{path} exists and is not a table {table} in {self.table_format}: writing would "
                f"delete what it holds; give another {_OPTION}"
            )
        others = sorted(found - set(self.inputs))
        if others:
            raise KafkaLogError(
                f"{path} holds rows of {', '.join(others[:_MOST_NAMED])}: writing "
                f"{self.table_format} would replace them; give another {_OPTION}, or use --format "
                "delta"
            )


def replace_directory(path: str, write: Callable[[str], object]) -> None:
    """Replace the directory of a table by what `write` writes to the directory that it receives."""
    if is_remote(path):
        directory = OutputDirectory(path)
        old = [directory.relative(each) for each in directory.files()]
        write(path)
        for each in old:
            if each != SUCCESS:
                directory.delete(each)
        return
    folder, name = os.path.split(path.rstrip("/"))
    unfinished = os.path.join(folder, f".{name}.unfinished")
    older = f"{unfinished}-older"
    for left_over in (unfinished, older):
        shutil.rmtree(left_over, ignore_errors=True)
    try:
        write(unfinished)
        has_older = os.path.lexists(path)
        if has_older:
            os.rename(path, older)
        try:
            os.rename(unfinished, path)
        except BaseException:
            if has_older:
                os.rename(older, path)
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    shutil.rmtree(older, ignore_errors=True)


def inputs_of_table(path: str, table_format: str) -> set[str] | None:
    """Return the inputs that the table in a directory has rows of, none where there is nothing;
    None where it holds something else."""
    if not is_remote(path) and os.path.lexists(path) and not os.path.isdir(path):
        return None
    directory = OutputDirectory(path)
    names = [name for name in directory.names() if not name.startswith(("_", "."))]
    found: set[Any] = set()
    for name in names:
        if not name.endswith(f".{table_format}"):
            return None
        try:
            found |= _INPUTS_OF_FILE[table_format](directory, name)
        except (ValueError, KeyError, pa.ArrowException):
            return None
    return None if None in found else found


def _of_parquet(directory: OutputDirectory, name: str) -> set[Any]:
    with directory.open(name) as file:
        rows = parquet.read_table(file, columns=[INPUT_COLUMN])
    return set(rows.column(INPUT_COLUMN).unique().to_pylist())


def _of_json(directory: OutputDirectory, name: str) -> set[Any]:
    lines = (directory.read(name) or b"").splitlines()
    return {json.loads(line)[INPUT_COLUMN] for line in lines}


def _of_csv(directory: OutputDirectory, name: str) -> set[Any]:
    text = (directory.read(name) or b"").decode()
    return {row[INPUT_COLUMN] for row in csv.DictReader(StringIO(text, newline=""))}


_INPUTS_OF_FILE = {"parquet": _of_parquet, "json": _of_json, "csv": _of_csv}


def json_lines(rows: pa.Table) -> Iterator[str]:
    """Yield rows as lines of JSON, many at once. Bytes are base64, as Spark reads them."""
    for some in _in_parts(rows):
        yield "".join(f"{json.dumps(each, ensure_ascii=False, default=_base64)}\n" for each in some)


def csv_lines(rows: pa.Table) -> Iterator[str]:
    """Yield rows as lines of CSV after a header, many at once. Bytes are base64, and lists and
    objects JSON."""
    for number, some in enumerate(_in_parts(rows, if_empty=True)):
        text = StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if number == 0:
            writer.writerow(rows.column_names)
        writer.writerows([_csv_cell(value) for value in each.values()] for each in some)
        yield text.getvalue()


def _in_parts(rows: pa.Table, *, if_empty: bool = False) -> Iterator[list[Mapping[str, Any]]]:
    for begin in range(0, max(len(rows), int(if_empty)), _ROWS_OF_TEXT):
        some = with_times_as_text(rows.slice(begin, _ROWS_OF_TEXT))
        yield some.to_pylist(maps_as_pydicts="strict")


def with_times_as_text(rows: pa.Table) -> pa.Table:
    """Return rows with timestamps as text, as Spark reads them from JSON: Python's own times end
    with the year 9999."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            texts = pc.strftime(rows.column(place), format="%Y-%m-%dT%H:%M:%SZ")
            rows = rows.set_column(place, field.name, texts)
    return rows


def _csv_cell(value: object) -> object:
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=_base64)
    return value


def _base64(value: object) -> object:
    return b64encode(value).decode("ascii") if isinstance(value, bytes) else json_value(value)
