"""Counts of what this process has read: the work of a task is the difference of two counts."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(slots=True)
class ReadCounts:
    """Files opened and the bytes read of them; the batches that were walked, those of them that
    were looked into for records, those decompressed, and to how many bytes."""

    files: int = 0
    bytes_read: int = 0
    batches: int = 0
    batches_read: int = 0
    batches_decompressed: int = 0
    bytes_decompressed: int = 0

    def copy(self) -> ReadCounts:
        """Return the current counts."""
        return replace(self)

    def since(self, before: ReadCounts) -> dict[str, str]:
        """Return the difference to an earlier copy, by the names of the counts."""
        names = [field.name for field in fields(self)]
        return {name: str(getattr(self, name) - getattr(before, name)) for name in names}


read_counts = ReadCounts()
