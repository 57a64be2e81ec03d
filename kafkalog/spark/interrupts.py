"""Ctrl-C, and signals that stop a process, while Spark starts and in a job."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]


# py4j's, for what it says of the connection that was interrupted.
_LOGGERS = (None, "py4j.clientserver")
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupt_postponed() -> Iterator[None]:
    """Let Ctrl-C, and signals that end a job by an exception, end a block only when that is done; a
    second one ends it at once.

    PySpark starts a JVM that ignores SIGINT, and waits until it has written its port to a file. If
    the waiting is interrupted, the file's directory is removed, the JVM fails to write, and stays
    for ever without anybody who knows of it. Once it has started it ends with this process.
    """
    if not _is_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    found = {number: signal.getsignal(number) for number in _STOPPING}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    postponed: list[signal.Signals] = []

    def postpone(number: int, _: FrameType | None) -> None:
        postponed.append(signal.Signals(number))
        _replace(postpone, handlers)
        sys.stderr.write("interrupted: ends when Spark has started\n")

    _leave_out_traces()
    for number in handlers:
        signal.signal(number, postpone)
    try:
        yield
    finally:
        _replace(postpone, handlers)
    for first in postponed:
        handlers[first](first, None)


def _replace(handler: _Handler, handlers: Mapping[signal.Signals, _Handler]) -> None:
    """Set handlers where the given one is. A new session has put one of its own there."""
    for number, before in handlers.items():
        if signal.getsignal(number) is handler:
            signal.signal(number, before)


def end_at_interrupt() -> None:
    """Have Ctrl-C end a job by KeyboardInterrupt alone: its JVM ends with its process.

    A session's own handler asks Spark to cancel what runs, by the connection that waits for just
    that, and this fails.
    """
    if _is_main_thread() and callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _leave_out_traces()


def _leave_out_traces() -> None:
    """Leave out the page of traces that py4j logs where Ctrl-C comes while it waits for Spark. The
    handler of a session is there before the session is complete."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and not _is_interrupt(error):
        # What fails while a connection is closed because of it.
        error = error.__context__
    return error is None


def _is_interrupt(error: BaseException) -> bool:
    if isinstance(error, RuntimeError):
        # The handler of a session used the connection that was in use.
        return "reentrant call" in str(error)
    return isinstance(error, KeyboardInterrupt)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
