"""The exit codes of jobs and commands, and the signals that stop them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import FrameType
from typing import NoReturn

# As in shells, for a process that a signal has ended.
INTERRUPTED = 128 + signal.SIGINT
OUTPUT_CLOSED = 128 + signal.SIGPIPE


class ExitCode(IntEnum):
    """How a job or a command ended."""

    DONE = 0
    FINDINGS = 1
    WRONG_ARGUMENTS = 2
    UNREADABLE_INPUT = 3


def output_closed() -> int:
    """Return the exit code for an output that its reader has closed; keep the interpreter from
    writing the rest of it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OUTPUT_CLOSED


class StoppedError(KeyboardInterrupt):
    """A signal that ends a process. After any other exception py4j does not repair its
    connection."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@contextmanager
def stopped_by_exceptions() -> Iterator[None]:
    """Let the signals that end a process raise StoppedError in a block, so that it can clean up."""
    is_main = threading.current_thread() is threading.main_thread()
    ending = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if is_main and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in ending:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise StoppedError(number)
