"""Loggers whose lines have no commands for a terminal, whatever the names in them are."""

from __future__ import annotations

import logging

from kafkalog.words import printable

_MOST_WARNED = 1_000
_warned: dict[tuple[str, str], object] = {}


def logger(name: str) -> logging.Logger:
    """Return the logger of a module."""
    found = logging.getLogger(name)
    found.addFilter(_escape)
    return found


def warn_once(name: str, words: str) -> None:
    """Log a warning of a module, unless this process has logged it lately: streams and commands
    list and compare the same logs again and again, DuckDB in several threads at once."""
    if len(_warned) >= _MOST_WARNED:
        forget_warnings()
    own = object()
    # One step, which no other thread comes between; a lock could be held where a process forks.
    if _warned.setdefault((name, words), own) is own:
        logger(name).warning("%s", words)


def forget_warnings() -> None:
    """Let each warning be logged once more."""
    _warned.clear()


def _escape(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), ()
    return True
