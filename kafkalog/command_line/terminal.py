"""Tables and colour for people. A pipe gets no colour."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import IO, Any

import click

from kafkalog.command_line.fitting import GAP, Column, fitted, lines_of_cell
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.words import printable, printable_json, printable_lines

TABLE_FORMATS = ("text", "json", "csv")

TextRow = Sequence[object]
# Where click keeps what the options chose, for the command that runs.
_COLUMNS, _WIDE = "kafkalog.columns", "kafkalog.wide"
_LINES_AT_ONCE = 1000
_SEVERITIES = {"error": "red", "warning": "yellow"}


def table_format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--format`, received as `table_format`, to a command that prints a table, and `--columns`
    and `--wide`, which `write_table` heeds."""
    add_format = click.option(
        "--format",
        "table_format",
        type=click.Choice(TABLE_FORMATS),
        default=TABLE_FORMATS[0],
        show_default=True,
        help="Text for people, JSON lines, or CSV with a header.",
    )
    return add_format(printed_column_options(function))


def printed_column_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--columns` and `--wide`, which `write_table` heeds."""
    add_columns = click.option(
        "--columns",
        metavar="NAME,...",
        expose_value=False,
        callback=_choose_columns,
        help="Print these columns of the table, in this order.",
    )
    add_wide = click.option(
        "--wide",
        is_flag=True,
        expose_value=False,
        callback=_choose_wide,
        help="Print the whole table, also where it is wider than the terminal.",
    )
    return add_columns(add_wide(function))


def _choose_columns(context: click.Context, _: click.Parameter, given: str | None) -> None:
    if given is not None:
        names = [name.strip().lower().replace("-", "_") for name in given.split(",")]
        context.meta[_COLUMNS] = names


def _choose_wide(context: click.Context, _: click.Parameter, is_wide: bool) -> None:
    context.meta[_WIDE] = is_wide


def printed_columns(
    every: Sequence[str], table_format: str = TABLE_FORMATS[0], in_text: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the columns that a command prints of a table: those of --columns or, without it, as
    text `in_text` and otherwise `every` one. Commands call this before they read anything.

    Raises OptionError for a column that is not one of `every`, whatever the rows have.
    """
    context = click.get_current_context(silent=True)
    chosen = None if context is None else context.meta.get(_COLUMNS)
    if chosen is None:
        return tuple(every if in_text is None or table_format != "text" else in_text)
    named = _by_given_name(every)
    unknown = [name for name in chosen if name not in named]
    if unknown:
        near = get_close_matches(unknown[0], named, n=2)
        guess = f"did you mean {' or '.join(near)}? There are " if near else ""
        columns = f"columns of this table: {guess}{', '.join(every)}"
        raise OptionError("--columns", ",".join(unknown), columns)
    return tuple(dict.fromkeys(named[name] for name in chosen))


def has_chosen_columns() -> bool:
    """Return whether --columns was given."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_COLUMNS) is not None


def _by_given_name(names: Sequence[str]) -> dict[str, str]:
    """Return columns by the names that may be given for them: times are in milliseconds in some
    formats, and headers do not say so."""
    return {name.removesuffix("_ms"): name for name in names} | {name: name for name in names}


def write_table(
    names: Sequence[str],
    rows: Iterable[TextRow],
    table_format: str,
    *,
    texts: dict[str, Callable[[Any], str]] | None = None,
    without_rows: str | None = None,
) -> None:
    """Write rows to stdout: as text with a header and right-aligned numbers, as JSON lines or CSV.

    `texts` has functions that write a column's values as text, such as `size_text`; the other
    formats have the values themselves. None is `-` in text, null in JSON and empty in CSV. A
    table for people fits the terminal; in place of one without rows people get the line
    `without_rows`. Of --columns those are printed that this table has; the command has refused the
    others by `printed_columns`.
    """
    context = click.get_current_context(silent=True)
    options = {} if context is None else context.meta
    chosen = options.get(_COLUMNS)
    if chosen is not None:
        names, rows = _with_columns(names, rows, chosen)
    if table_format == "json":
        for row in rows:
            line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
            click.echo(printable_json(line))
    elif table_format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    elif (lines := list(rows)) or without_rows is None:
        _write_aligned(names, lines, texts or {}, is_whole=options.get(_WIDE, False))
    else:
        print_text(without_rows)


def _with_columns(
    names: Sequence[str], rows: Iterable[TextRow], chosen: Sequence[str]
) -> tuple[Sequence[str], Iterable[TextRow]]:
    named = _by_given_name(names)
    wanted = [names.index(named[name]) for name in dict.fromkeys(chosen) if name in named]
    return [names[place] for place in wanted], ([row[place] for place in wanted] for row in rows)


def _write_aligned(
    names: Sequence[str],
    rows: list[TextRow],
    texts: dict[str, Callable[[Any], str]],
    *,
    is_whole: bool,
) -> None:
    # A time that is written as text is not in milliseconds.
    headers = [
        (name.removesuffix("_ms") if name in texts else name).upper().replace("_", "-")
        for name in names
    ]
    columns = []
    for place, (name, header) in enumerate(zip(names, headers, strict=True)):
        values = [row[place] for row in rows]
        is_number = all(isinstance(value, int | float | None) for value in values)
        columns.append(Column(name, [header, *_cells(values, texts.get(name))], is_number))
    if sys.stdout.isatty() and not is_whole:
        widths = fitted(columns, shutil.get_terminal_size().columns)
        fitting = [_fitting(columns[place], width) for place, width in widths.items()]
    else:
        widths = {place: column.usual_width for place, column in enumerate(columns)}
        fitting = [_fitting(columns[place], width, is_cut=False) for place, width in widths.items()]
    blanks = [" " * width for width in widths.values()]
    lines = (line for cells in zip(*fitting, strict=True) for line in _lines(cells, blanks))
    click.echo(styled(next(lines, ""), bold=True))
    # Each is written at once: a table can have a row for each commit.
    while some := [*islice(lines, _LINES_AT_ONCE)]:
        click.echo("\n".join(some))
    left_out = [place for place in range(len(headers)) if place not in widths]
    with_values = [headers[place] for place in left_out if not columns[place].is_blank]
    without = [headers[place] for place in left_out if columns[place].is_blank]
    parts = [", ".join(with_values)] if with_values else []
    if without:
        parts.append(f"{', '.join(without)} (empty or 0 in all rows)")
    if left_out:
        print_note(
            f"too wide for this terminal: {'; '.join(parts)}; --wide and --columns show them"
        )


def _cells(values: Sequence[object], write: Callable[[Any], str] | None) -> list[str]:
    """Return the values of a column as text."""
    if write is not None:
        return ["-" if value is None else printable(write(value)) for value in values]
    return [str(value) if type(value) is int else _text(value) for value in values]


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(str(value))


def _fitting(column: Column, width: int, *, is_cut: bool = True) -> list[list[str]]:
    """Return the cells of a column, its header first, each in lines that are as wide as it; not
    `is_cut`, in one line, which may be wider."""
    if column.is_number:
        return [[cell.rjust(width)] for cell in column.cells]
    cells = [
        [
            line.ljust(width)
            for line in (lines_of_cell(column.name, cell, width) if is_cut else [cell])
        ]
        for cell in column.cells
    ]
    if column.name == "severity":
        for number, cell in enumerate(column.cells):
            if number and cell in _SEVERITIES:
                cells[number] = [styled(each, fg=_SEVERITIES[cell]) for each in cells[number]]
    return cells


def _lines(cells: Sequence[Sequence[str]], blanks: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a row; `blanks` are as wide as its cells."""
    if all(len(cell) == 1 for cell in cells):
        yield GAP.join(cell[0] for cell in cells).rstrip()
        return
    for number in range(max(map(len, cells))):
        parts = zip(cells, blanks, strict=True)
        yield GAP.join(
            cell[number] if number < len(cell) else blank for cell, blank in parts
        ).rstrip()


def is_coloured(stream: IO[Any]) -> bool:
    """Return whether to write colour: only to a terminal, and as https://no-color.org asks."""
    is_dumb = os.environ.get("TERM") == "dumb"
    return stream.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


def styled(text: str, stream: IO[Any] | None = None, **style: Any) -> str:
    """Return the text with click's styles, such as `fg="red"`, if colour is wanted."""
    return click.style(text, **style) if is_coloured(stream or sys.stdout) else text


def print_text(text: str) -> None:
    """Write a line or several to stdout."""
    click.echo(printable_lines(text))


def print_note(message: str) -> None:
    """Write a line or several to stderr, where they do not mix with the output."""
    click.echo(printable_lines(message), err=True)


def print_error(message: str, code: ExitCode) -> ExitCode:
    """Write an error as one line to stderr; return the exit code."""
    head = styled("error:", sys.stderr, fg="red", bold=True)
    click.echo(f"{head} {printable(message)}", err=True)
    return code
