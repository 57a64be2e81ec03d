"""Loggers whose lines have no commands for a terminal, whatever the names in them are."""

from __future__ import annotations

import logging

from kafkalog.words import printable


def logger(name: str) -> logging.Logger:
    """Return the logger of a module."""
    found = logging.getLogger(name)
    found.addFilter(_escape)
    return found


def _escape(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), ()
    return True
