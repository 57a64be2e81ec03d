"""A prompt for queries: each ends with a semicolon."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from kafkalog.command_line.terminal import print_error, print_text
from kafkalog.errors import KafkaLogError
from kafkalog.exit_codes import ExitCode

if TYPE_CHECKING:
    from kafkalog.command_line.sql.answers import Answers
    from kafkalog.tables.database import Database

_FIRST, _NEXT = "kafkalog> ", "     ...> "
_ENDS = ("exit", "quit", ".exit", ".quit", "\\q")
_GREETING = """\
Queries end with a semicolon; `show tables;` lists the tables, `describe records;` the columns of
one, and `exit` or Ctrl-D ends."""


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
