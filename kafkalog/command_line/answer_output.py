"""What a command does with its answer: it shows the first rows and a verdict in one line on stdout,
or writes the tables that the job of the same question writes to --output-dir."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.terminal import (
    TABLE_FORMATS,
    print_note,
    print_text,
    printed_column_options,
    printed_columns,
    styled,
    write_table,
)
from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.views.options import click_options as shared
from kafkalog.words import counted, json_value, printable_lines

if TYPE_CHECKING:
    from kafkalog.lake.formats.answer_tables import AnswerTables
    from kafkalog.storage.partition_log import PartitionLog
    from kafkalog.views.engine import Rows

_TEXT, _JSON, _CSV = TABLE_FORMATS
_PARQUET, _DELTA = _ONLY_SAVED = ("parquet", "delta")
SAVED_FORMATS = (*_ONLY_SAVED, _JSON, _CSV)


@dataclass(frozen=True, slots=True)
class AnswerOutput:
    """--format and --output-dir, as they were given."""

    answer_format: str | None
    output_dir: str

    @property
    def table_format(self) -> str:
        """The format of what the command prints: with --output-dir that is text."""
        if self.output_dir:
            return _TEXT
        if self.answer_format in _ONLY_SAVED:
            raise RefusedOptionError("--format", f"{self.answer_format} only with --output-dir")
        return self.answer_format or _TEXT

    def tables(
        self, names: Iterable[str], inputs: Sequence[str], directories: Iterable[str]
    ) -> AnswerTables | None:
        """Return where the tables with these names go, None without --output-dir. `inputs` are the
        paths whose rows they have, globs resolved; `directories` are those that are read. Call it
        before the work: raises what `AnswerTables.refuse` raises."""
        if not self.output_dir:
            return None
        from kafkalog.lake.formats.answer_tables import AnswerTables

        if self.answer_format == _TEXT:
            allowed = f"{' or '.join(SAVED_FORMATS)} with --output-dir"
            raise OptionError("--format", _TEXT, allowed)
        place = self.output_dir if is_remote(self.output_dir) else absolute_path(self.output_dir)
        found = AnswerTables(place, self.answer_format or _PARQUET, inputs)
        found.refuse(names, directories)
        return found

    def tables_of_logs(
        self,
        names: Iterable[str],
        paths: Sequence[str],
        logs: Sequence[PartitionLog],
        directories: Iterable[str] = (),
    ) -> AnswerTables | None:
        """Return the same, of logs under some paths; `directories` are read beside them."""
        if not self.output_dir:
            return None
        from kafkalog.storage.log_dir.log_dir import input_entries
        from kafkalog.storage.log_dir.read_directories import directories_read

        entries = [entry for path in paths for entry in input_entries(path)]
        files = (entry.path for entry in entries if not entry.is_directory)
        read = [*directories_read(entries, logs), *files, *directories]
        return self.tables(names, [entry.path for entry in entries], read)


def save_tables(place: AnswerTables | None, rows: Mapping[str, Rows]) -> None:
    """Write the rows of each table and name the tables in the last line; nothing without a
    place."""
    if place is not None:
        name_tables([place.replace(table, each.table) for table, each in rows.items()])


def name_tables(paths: Sequence[str]) -> None:
    """Write the last line, with the tables that are written, if there are any."""
    if paths:
        print_text(f"tables: {' '.join(paths)}")


def answer_output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --output-dir and --format, received as `output`, and --columns and --wide."""
    formats = click.option(
        "--format",
        "answer_format",
        type=click.Choice((*TABLE_FORMATS, *_ONLY_SAVED)),
        show_default=f"{_TEXT}; with --output-dir {_PARQUET}",
        help="Text for people, JSON lines, or CSV with a header; or the format of the tables in "
        "--output-dir; delta, which keeps the rows of other inputs, needs the extra "
        "kafkalog[deltalake].",
    )
    directory = shared.output_dir_option(
        "Write the tables that the job of this question writes to this directory: a local path, or "
        "a URI such as s3://bucket/path.",
        required=False,
    )
    options = shared.settings_options(AnswerOutput, "output", formats, directory)
    return options(printed_column_options(function))


def shown_rows_option(noun: str) -> shared.Decorator:
    """Add --show, received as `show`, for the table that `write_findings` writes."""
    return shared.show_option(f"{noun} as text; JSON and CSV have all", default=100)


def answer_options(
    kinds: Sequence[str], meaning: str, output: shared.Decorator = answer_output_options
) -> shared.Decorator:
    """Add --by, and the options of every command that shows rows by it and can end with findings:
    --show, --fail-on-findings, and those of `output`."""
    added = (
        shared.by_option(kinds, meaning),
        shown_rows_option("rows"),
        shared.fail_on_findings_option(default=True),
        output,
    )

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(added):
            function = option(function)
        return function

    return decorated


def write_findings(
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    table_format: str,
    *,
    show: int,
    noun: str,
    texts: dict[str, Callable[[Any], str]] | None = None,
) -> None:
    """Write the rows: as text the first `show` and how many more there are, and nothing if there
    are none; in the other formats all of them. `texts` is that of `write_table`."""
    is_text = table_format == "text"
    shown = rows[:show] if is_text else rows
    if shown or not is_text:
        write_table(names, shown, table_format, texts=texts)
    if len(shown) < len(rows):
        click.echo(f"and {counted(len(rows) - len(shown), noun)} more: --show {len(rows)}")


def answer_columns(
    table: str, text_columns: Sequence[str], table_format: str, added: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the columns of a table that a command prints: as text `text_columns`, all and those
    that are `added` in the other formats, or those of --columns. Raises OptionError as
    `printed_columns` does."""
    from kafkalog.schemas import table_fields

    every = [*(field["name"] for field in table_fields(table)), *added]
    return printed_columns(every, table_format, text_columns)


def write_answer(
    names: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    table_format: str,
    *,
    show: int,
    texts: dict[str, Callable[[Any], str]] | None = None,
) -> None:
    """Write these columns of rows, of `answer_columns`. `texts` is that of `write_table`."""
    cells = table_rows([*rows], names, table_format)
    write_findings(names, cells, table_format, show=show, noun="row", texts=texts)


def write_verdict(verdict: str, table_format: str, *, has_findings: bool) -> None:
    """Write the last line, to stderr if stdout has rows for programs."""
    if table_format == "text":
        click.echo(styled(printable_lines(verdict), fg="red" if has_findings else "green"))
    else:
        print_note(verdict)


def write_words(lines: Iterable[str], table_format: str) -> None:
    """Write the last lines, to stderr if stdout has rows for programs."""
    (print_text if table_format == "text" else print_note)("\n".join(lines))


def exit_code(*, has_findings: bool, fails: bool) -> ExitCode:
    """Return the exit code of a command that has done its work; `fails` is --fail-on-findings."""
    return ExitCode.FINDINGS if has_findings and fails else ExitCode.DONE


def table_rows(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], table_format: str
) -> list[list[object]]:
    """Return the values of these columns as `table_cells` gives them."""
    return [table_cells((row[name] for name in names), table_format) for row in rows]


def table_cells(values: Iterable[object], table_format: str) -> list[object]:
    """Return the values of a row. Bytes are text, or base64 where they are not UTF-8, as
    `kafkalog dump` writes them; in CSV, which has neither, a list or an object is JSON."""
    is_csv = table_format == "csv"
    return [_cell(value, is_csv=is_csv) for value in values]


def _cell(value: object, *, is_csv: bool) -> object:
    plain = _plain(value)
    return json.dumps(plain) if is_csv and isinstance(plain, list | dict) else plain


def _plain(value: object) -> object:
    """Return a value as text and JSON can have it, also those in lists and objects."""
    if isinstance(value, bytes):
        return _as_text(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return json_value(value)


def _as_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return b64encode(value).decode("ascii")
