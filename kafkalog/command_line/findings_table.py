"""How commands that look for something show it: the first rows, and a verdict in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from kafkalog.command_line.terminal import styled, tell, write_table
from kafkalog.exit_codes import ExitCode
from kafkalog.words import counted, printable_lines


def show_option(noun: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option --show, given to the command as `show`."""
    return click.option(
        "--show",
        metavar="N",
        type=click.IntRange(min=0),
        default=100,
        show_default=True,
        help=f"How many {noun} to list in text; the other formats list all.",
    )


def write_findings(
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    table_format: str,
    *,
    show: int,
    noun: str,
) -> None:
    """Write the rows: in text the first `show` and how many more there are, nothing where there is
    none; all of them in the other formats."""
    is_text = table_format == "text"
    shown = rows[:show] if is_text else rows
    if shown or not is_text:
        write_table(names, shown, table_format)
    if len(shown) < len(rows):
        click.echo(f"and {counted(len(rows) - len(shown), noun)} more: --show {len(rows)}")


def write_verdict(verdict: str, table_format: str, *, has_findings: bool) -> ExitCode:
    """Write the last line, to stderr where stdout has rows for programs; the exit code that goes
    with it."""
    if table_format == "text":
        click.echo(styled(printable_lines(verdict), fg="red" if has_findings else "green"))
    else:
        tell(verdict)
    return ExitCode.FINDINGS if has_findings else ExitCode.DONE


def table_rows(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], table_format: str
) -> list[list[object]]:
    """The values of these columns; in CSV, which has no lists, a list is JSON."""
    found = [[row[name] for name in names] for row in rows]
    if table_format != "csv":
        return found
    return [
        [json.dumps(value) if isinstance(value, list) else value for value in values]
        for values in found
    ]
