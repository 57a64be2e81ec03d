"""Settings for writing a partition's log, with the names and values of a broker's topic configs."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.errors import OptionError
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.indexes import OFFSET_ENTRY, TIME_ENTRY

NEVER = 2**63 - 1
_LARGEST_FILE = 2**31 - 1
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`flush_messages` and `flush_ms` are the M and S of the user's documents. Unset, as with a
    broker, the operating system decides when data goes to disk."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * _DAY_MS
    segment_index_bytes: int = 10 * 1024**2
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    max_message_bytes: int = 1024**2 + 12
    flush_messages: int = NEVER
    flush_ms: int = NEVER

    def __post_init__(self) -> None:
        bounds = {
            "segment_bytes": (1, _LARGEST_FILE),
            "segment_ms": (1, NEVER),
            # One entry of the time index, and the room for the last.
            "segment_index_bytes": (2 * TIME_ENTRY.size, _LARGEST_FILE),
            "index_interval_bytes": (0, _LARGEST_FILE),
            "max_message_bytes": (1, _LARGEST_FILE),
            "flush_messages": (1, NEVER),
            "flush_ms": (0, NEVER),
        }
        for name, (least, largest) in bounds.items():
            value = getattr(self, name)
            if not least <= value <= largest:
                raise OptionError(name, value, f"{least} to {largest}")

    @property
    def index_entries(self) -> int:
        """How many entries an offset index has room for."""
        return self.segment_index_bytes // OFFSET_ENTRY.size

    @property
    def time_index_entries(self) -> int:
        """How many entries a time index has room for."""
        return self.segment_index_bytes // TIME_ENTRY.size
