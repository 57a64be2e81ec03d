"""What the exit codes of jobs and commands mean."""

from __future__ import annotations

import signal
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
