"""How to open and read files: credentials, and settings that spare a broker on the same machine.

Kept per process, because paths are plain strings everywhere: a Spark process plans one read or runs
one task at a time, and sets this first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class FileAccess:
    """`storage` has the settings of remote file systems by their lower-case names, including
    secrets: they are never printed."""

    storage: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    drop_page_cache: bool = False
    max_bytes_per_second: int | None = None

    def settings(self) -> Mapping[str, str]:
        """Return the settings of remote file systems."""
        return MappingProxyType(dict(self.storage))


class RateLimit:
    """Limits the bytes per second, by waiting before each read for the earlier ones."""

    def __init__(
        self,
        bytes_per_second: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()

    def take(self, size: int) -> None:
        """Wait until `size` more bytes may be read. Time in which nothing was read is not saved
        up."""
        if self._bytes_per_second is None:
            return
        now = self._clock()
        if self._free_at > now:
            self._sleep(self._free_at - now)
        self._free_at = max(self._free_at, now) + size / self._bytes_per_second


class _Process:
    access = FileAccess()
    rate_limit = RateLimit(None)


def use_file_access(access: FileAccess) -> None:
    """Open and read files this way from now on, in this process."""
    _Process.access = access
    _Process.rate_limit = RateLimit(access.max_bytes_per_second)


def file_access() -> FileAccess:
    """Return the current file access."""
    return _Process.access


def rate_limit() -> RateLimit:
    """Return the limit that all files of this process share."""
    return _Process.rate_limit
