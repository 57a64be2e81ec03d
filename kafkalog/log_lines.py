"""Loggers whose lines have no commands for a terminal, whatever the names in them are."""

from __future__ import annotations

import logging
from functools import lru_cache

from kafkalog.words import printable


def logger(name: str) -> logging.Logger:
    """Return the logger of a module."""
    found = logging.getLogger(name)
    found.addFilter(_escape)
    return found


@lru_cache(maxsize=1_000)
def warn_once(name: str, words: str) -> None:
    """Log a warning of a module, unless this process has logged it lately: streams and commands
    list and compare the same logs again and again."""
    logger(name).warning("%s", words)


def _escape(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), ()
    return True
