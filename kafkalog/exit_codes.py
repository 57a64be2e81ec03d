"""What the exit codes of jobs and commands mean, and how signals that stop them end them."""

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

# As shells have it for a process that a signal has ended.
INTERRUPTED = 128 + signal.SIGINT
OUTPUT_CLOSED = 128 + signal.SIGPIPE


class ExitCode(IntEnum):
    """How a job or a command ended."""

    DONE = 0
    FINDINGS = 1
    WRONG_ARGUMENTS = 2
    UNREADABLE_INPUT = 3


def output_closed() -> int:
    """The exit code where nobody reads the output any more; keeps the interpreter from writing the
    rest of it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OUTPUT_CLOSED


class StoppedError(KeyboardInterrupt):
    """A signal that ends a process. py4j mends its connection after no other exception."""

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
