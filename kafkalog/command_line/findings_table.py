"""How commands show findings: the first rows, and a verdict in one line."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import answer_output_options
from kafkalog.command_line.terminal import (
    print_note,
    print_text,
    printed_columns,
    styled,
    write_table,
)
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import Decorator
from kafkalog.words import counted, json_value, printable_lines


def shown_rows_option(noun: str) -> Decorator:
    """Add --show, received as `show`, for the table that `write_findings` writes."""
    return shared.show_option(f"{noun} as text; JSON and CSV have all", default=100)


def answer_options(
    kinds: Sequence[str], meaning: str, output: Decorator = answer_output_options
) -> Decorator:
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
