"""Why a broker does not start, or does not use a directory, and what mends it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from shlex import quote


@dataclass(frozen=True, slots=True)
class Reason:
    """A file, what a broker makes of it, and the line to type. With `ends_process` the broker ends,
    otherwise the log directory `directory` goes offline. With both, and `stays_up`, the process
    goes on without ever serving anything."""

    file: str
    reason: str
    what_to_do: str
    directory: str
    ends_process: bool = True
    stays_up: bool = False

    def row(self) -> dict[str, str]:
        """Return the columns of the reason."""
        return {"file": self.file, "reason": self.reason, "what_to_do": self.what_to_do}


def move_away(path: str, log_dir: str) -> str:
    """Return the line that moves an entry out of a log directory, to a place beside it."""
    name = os.path.basename(path)
    inner = os.path.basename(os.path.dirname(path))
    of_partition = "" if os.path.dirname(path) == log_dir else f"{inner}."
    target = f"{log_dir.rstrip('/')}.aside.{of_partition}{name}"
    return f"mv {quote(path)} {quote(target)}"
