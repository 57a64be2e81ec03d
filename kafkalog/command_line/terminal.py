"""Tables, colour and progress for people. A pipe gets neither colour nor progress."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any

import click

from kafkalog.exit_codes import ExitCode
from kafkalog.words import printable, printable_lines

TABLE_FORMATS = ("text", "json", "csv")

TextRow = Sequence[object]
# Kafka allows 249 characters, which would take two lines of a terminal.
_WIDEST_TOPIC = 48


def table_format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--format`, received as `table_format`, to a command that prints a table."""
    return click.option(
        "--format",
        "table_format",
        type=click.Choice(TABLE_FORMATS),
        default=TABLE_FORMATS[0],
        show_default=True,
        help="Text for people, JSON lines, or CSV with a header.",
    )(function)


def write_table(
    names: Sequence[str],
    rows: Iterable[TextRow],
    table_format: str,
    *,
    texts: dict[str, Callable[[Any], str]] | None = None,
) -> None:
    """Write rows to stdout: as text with a header and right-aligned numbers, as JSON lines or CSV.

    `texts` has functions that write a column's values as text, such as `size_text`; the other
    formats have the values themselves. None is `-` in text, null in JSON and empty in CSV. On a
    terminal, long topic names lose their middle.
    """
    if table_format == "json":
        for row in rows:
            line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
            click.echo("".join(map(_json_character, line)) if not line.isprintable() else line)
    elif table_format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _write_aligned(names, list(rows), texts or {})


def _write_aligned(
    names: Sequence[str], rows: list[TextRow], texts: dict[str, Callable[[Any], str]]
) -> None:
    usual = {"topic": _topic_text} if sys.stdout.isatty() else {}
    writers = [texts.get(name, usual.get(name, _text)) for name in names]
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
    for number, line in enumerate([headers, *cells]):
        padded = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, numeric, strict=True)
        ]
        text = "  ".join(padded).rstrip()
        click.echo(styled(text, bold=True) if number == 0 else text)


def _json_character(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _topic_text(topic: str) -> str:
    """Return a topic's name, without its middle if it is too wide for a column."""
    if len(topic) <= _WIDEST_TOPIC:
        return topic
    half = _WIDEST_TOPIC // 2
    return f"{topic[:half]}…{topic[-half + 1 :]}"


def is_coloured(stream: IO[Any]) -> bool:
    """Return whether to write colour: only to a terminal, and as https://no-color.org asks."""
    is_dumb = os.environ.get("TERM") == "dumb"
    return stream.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


def styled(text: str, stream: IO[Any] | None = None, **style: Any) -> str:
    """Return the text with click's styles, such as `fg="red"`, if colour is wanted."""
    return click.style(text, **style) if is_coloured(stream or sys.stdout) else text


def progress_bar(
    length: int, label: str = "", *, hidden: bool = False
) -> AbstractContextManager[Any]:
    """Return a bar on stderr for `length` bytes, which `update(n)` moves; `update(n, text)` also
    shows a text beside the time that is left.

    The bar is not shown if stderr is not a terminal, or if `hidden`.
    """
    return click.progressbar(
        length=length,
        label=label,
        file=sys.stderr,
        hidden=hidden or not sys.stderr.isatty(),
        item_show_func=lambda text: text,
    )


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
