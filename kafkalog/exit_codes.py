"""What the exit codes of jobs and commands mean."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a job or a command ended."""

    DONE = 0
    FINDINGS = 1
    WRONG_ARGUMENTS = 2
    UNREADABLE_INPUT = 3
