"""What can be wrong with the bytes of a segment, and how severe that is.

Rules: docs/format.md F60 to F78, names in F68. The numbers are the codes that the kernels return.
What a fault says in words: `columns/batches/fault_details.py`.
"""

from __future__ import annotations

from enum import IntEnum


class Severity(IntEnum):
    """How much a fault matters to a reader."""

    NONE = 0
    INFORMATION = 1  # legal, worth knowing
    WARNING = 2  # the records are sound, something around them is not
    ERROR = 3  # the bytes hold no records that can be trusted


class Fault(IntEnum):
    """One reason why a range of bytes is not an ordinary sound batch."""

    NONE = 0
    # Bytes that form no batch.
    TRUNCATED = 1
    ZEROS = 2
    GARBAGE = 3
    LENGTH = 4
    MAGIC = 5
    # A whole batch whose bytes are not those that were written.
    CHECKSUM = 6
    # A whole batch that a checksum vouches for, and still no records come out.
    TOO_LARGE = 7
    CODEC = 8
    COMPRESSION = 9
    RECORD_COUNT = 10
    RECORDS = 11
    RECORD_OFFSETS = 12
    INNER_CHECKSUM = 13
    # A batch where no checksum looks.
    OFFSET_RANGE = 14
    OFFSET_ORDER = 15
    # Beside the records.
    LEADER_EPOCH = 16
    SEGMENT_HOLE = 17
    RESERVED_ATTRIBUTES = 18
    # A sound batch; damage elsewhere hides what became of its transaction.
    TRANSACTION = 19
    # Nothing in the file: what checkpoints say that the log had.
    MISSING_END = 20
    # Bytes that the disk or the store did not give.
    UNREADABLE = 21

    @property
    def label(self) -> str:
        """The name as tables and messages show it."""
        return self.name.lower()

    @property
    def severity(self) -> Severity:
        """How much it matters; a truncated or zero-filled tail of the active segment is normal
        and judged by whoever knows which segment is active."""
        if self is Fault.NONE:
            return Severity.NONE
        if self is Fault.RESERVED_ATTRIBUTES:
            return Severity.INFORMATION
        if self in (Fault.LEADER_EPOCH, Fault.SEGMENT_HOLE):
            return Severity.WARNING
        return Severity.ERROR
