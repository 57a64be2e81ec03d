"""Tables, colour and progress for people. A pipe gets neither colour nor progress."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import IO, Any

import click

from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.words import printable, printable_lines

TABLE_FORMATS = ("text", "json", "csv")

TextRow = Sequence[object]
# Of a table that is wider than the terminal, texts keep at least so many characters.
_NARROWEST = 16
_GAP = "  "
# Where click keeps what the options chose, for the command that runs.
_COLUMNS, _WIDE = "kafkalog.columns", "kafkalog.wide"
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
    return add_format(add_columns(add_wide(function)))


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
        is_short = table_format == "text" and in_text is not None
        return tuple(in_text if is_short and in_text is not None else every)
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
) -> None:
    """Write rows to stdout: as text with a header and right-aligned numbers, as JSON lines or CSV.

    `texts` has functions that write a column's values as text, such as `size_text`; the other
    formats have the values themselves. None is `-` in text, null in JSON and empty in CSV. A
    table for people fits the terminal. Of --columns those are printed that this table has; the
    command has refused the others by `printed_columns`.
    """
    context = click.get_current_context(silent=True)
    options = {} if context is None else context.meta
    chosen = options.get(_COLUMNS)
    if chosen is not None:
        names, rows = _with_columns(names, rows, chosen)
    if table_format == "json":
        for row in rows:
            line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
            click.echo("".join(map(_json_character, line)) if not line.isprintable() else line)
    elif table_format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _write_aligned(names, list(rows), texts or {}, is_whole=options.get(_WIDE, False))


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
    writers = [texts.get(name, _text) for name in names]
    cells = [
        [
            "-" if value is None else printable(write(value))
            for write, value in zip(writers, row, strict=True)
        ]
        for row in rows
    ]
    numeric = [
        all(isinstance(row[index], int | float | None) for row in rows)
        for index in range(len(names))
    ]
    # A time that is written as text is not in milliseconds.
    headers = [
        (name.removesuffix("_ms") if name in texts else name).upper().replace("_", "-")
        for name in names
    ]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    if sys.stdout.isatty() and not is_whole:
        least = [
            width if is_number else min(width, max(_NARROWEST, len(header)))
            for width, is_number, header in zip(widths, numeric, headers, strict=True)
        ]
        widths = _fitted(widths, least, shutil.get_terminal_size().columns)
    kept = len(widths)
    severity = names.index("severity") if "severity" in names[:kept] else None
    for number, line in enumerate([headers, *cells]):
        padded = [
            cell.rjust(width) if is_number else _shortened(cell, width).ljust(width)
            for cell, width, is_number in zip(line[:kept], widths, numeric[:kept], strict=True)
        ]
        if number == 0:
            click.echo(styled(_GAP.join(padded).rstrip(), bold=True))
            continue
        if severity is not None and line[severity] in _SEVERITIES:
            padded[severity] = styled(padded[severity], fg=_SEVERITIES[line[severity]])
        click.echo(_GAP.join(padded).rstrip())
    if kept < len(headers):
        left_out = ", ".join(headers[kept:])
        print_note(f"too wide for this terminal: {left_out}; --wide and --columns show them")


def _fitted(widths: list[int], least: list[int], terminal: int) -> list[int]:
    """Return widths of columns with which a line fits: wide columns become as narrow as `least`,
    then the last columns are left out, but never the first one."""
    kept = len(widths)
    while kept > 1 and _line_width(least[:kept]) > terminal:
        kept -= 1
    pairs = list(zip(widths[:kept], least[:kept], strict=True))
    narrowing = (
        [min(width, max(most, narrowest)) for width, narrowest in pairs]
        for most in range(max(widths), -1, -1)
    )
    return next((found for found in narrowing if _line_width(found) <= terminal), least[:kept])


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _shortened(text: str, width: int) -> str:
    """Return a text of at most `width` characters, without its middle if it is longer."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def _json_character(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def is_coloured(stream: IO[Any]) -> bool:
    """Return whether to write colour: only to a terminal, and as https://no-color.org asks."""
    is_dumb = os.environ.get("TERM") == "dumb"
    return stream.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


def styled(text: str, stream: IO[Any] | None = None, **style: Any) -> str:
    """Return the text with click's styles, such as `fg="red"`, if colour is wanted."""
    return click.style(text, **style) if is_coloured(stream or sys.stdout) else text


@contextmanager
def progress_bar(length: int, label: str = "", *, hidden: bool = False) -> Iterator[Any]:
    """Show a bar on stderr for `length` bytes, which `update(n)` moves; `update(n, text)` also
    shows a text beside the time that is left.

    It disappears when the work is done. It is not shown if stderr is not a terminal, or if
    `hidden`.
    """
    is_hidden = hidden or not sys.stderr.isatty()
    with click.progressbar(
        length=length,
        label=label,
        file=sys.stderr,
        hidden=is_hidden,
        item_show_func=lambda text: text,
    ) as bar:
        yield bar
    if not is_hidden:
        # The line above, where the bar was.
        click.echo("\x1b[1A\x1b[2K", nl=False, err=True)


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
