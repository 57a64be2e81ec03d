"""Ctrl-C while Spark starts, and in a job."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupt_postponed() -> Iterator[None]:
    """Let Ctrl-C end a block only when that is done; a second one ends it at once.

    PySpark starts a JVM that ignores SIGINT, and waits until it has written its port to a file. If
    the waiting is interrupted, the file's directory is removed, the JVM fails to write, and stays
    for ever without anybody who knows of it. Once it has started it ends with this process.
    """
    if not _is_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupts: list[int] = []

    def postpone(number: int, _: FrameType | None) -> None:
        interrupts.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stderr.write("interrupted: ends when Spark has started\n")

    signal.signal(signal.SIGINT, postpone)
    try:
        yield
    finally:
        # A new session has put a handler of its own there.
        if signal.getsignal(signal.SIGINT) is postpone:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupts:
        raise KeyboardInterrupt


def end_at_interrupt() -> None:
    """Have Ctrl-C end a job by KeyboardInterrupt alone: its JVM ends with its process.

    A session's own handler asks Spark to cancel what runs, by the connection that waits for just
    that; this fails, and py4j logs a page of traces.
    """
    if _is_main_thread() and callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.getLogger().addFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
