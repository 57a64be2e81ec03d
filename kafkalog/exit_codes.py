"""What the exit codes of jobs and commands mean."""

from __future__ import annotations

import os
import signal
import sys
from enum import IntEnum

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
