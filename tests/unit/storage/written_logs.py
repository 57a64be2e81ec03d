"""A writer of logs with a clock and a disk that tests watch."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter


@dataclass
class Machine:
    """A clock that stands still until it is set, and a note of every file forced to disk."""

    now_ms: int = 1_000_000
    flushed: list[str] = field(default_factory=list)

    def clock(self) -> int:
        return self.now_ms

    def flush(self, descriptor: int) -> None:
        self.flushed.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    def taken(self) -> list[str]:
        taken, self.flushed = self.flushed, []
        return taken


def writer(place: Path, machine: Machine, *, start_offset: int = 0, **settings: int) -> LogWriter:
    return LogWriter(
        str(place),
        LogSettings(**settings),
        now_ms=machine.clock,
        flush=machine.flush,
        start_offset=start_offset,
    )


def bases(place: Path) -> list[int]:
    return [int(path.stem) for path in sorted(place.glob("*.log"))]


def log_of(place: Path, base: int) -> bytes:
    return (place / f"{base:020d}.log").read_bytes()
