"""How a broker frames the batches of a segment. Rules: docs/format.md F113 to F116.

It differs from kafkalog's own framing (docs/format.md F60 to F67): a broker never reads on after
the first fault, takes unknown magics for format 2, and does not look into records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from kafkalog.errors import CorruptDataError
from kafkalog.format import batch_header as layout
from kafkalog.format.batch_header import BatchHeader, read_header, read_length
from kafkalog.wire.checksums import CHUNK, crc32, crc32c

LATEST_FORMAT = 2


class Readable(Protocol):
    """A file, as `kafkalog.storage.files.files.InputFile` is one."""

    size: int

    def read(self, position: int, size: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Frame:
    """A batch as a broker frames it."""

    position: int
    header: BatchHeader

    @property
    def end(self) -> int:
        return self.position + self.header.size


def frames(file: Readable, position: int = 0, end: int | None = None) -> Iterator[Frame]:
    """Yield the batches from `position` on, none of them checked.

    Ends where no whole batch is left. Raises CorruptDataError where the length is impossible.
    """
    end = file.size if end is None else end
    while position < end - layout.FIRST_BYTES:
        head = file.read(position, layout.V2_HEADER_BYTES)
        length = read_length(head)
        if length < layout.LEAST_LENGTH[0]:
            detail = f"a length of {length}, no batch is below {layout.LEAST_LENGTH[0]}"
            raise CorruptDataError("length", detail, position=position)
        if position > end - layout.LOG_OVERHEAD - length:
            return
        yield Frame(position, _header(head, length, position))
        position += layout.LOG_OVERHEAD + length


def _header(head: bytes, length: int, position: int) -> BatchHeader:
    magic = int.from_bytes(
        head[layout.MAGIC_POSITION : layout.MAGIC_POSITION + 1], "big", signed=True
    )
    if magic < LATEST_FORMAT:
        if magic == 1 and len(head) < layout.LOG_OVERHEAD + layout.LEAST_LENGTH[1]:
            raise CorruptDataError("length", "too short for format 1", position=position)
        legacy = (
            head
            if magic >= 0
            else head[: layout.MAGIC_POSITION] + b"\0" + head[layout.FIRST_BYTES :]
        )
        return replace(read_header(legacy, 0), magic=magic)
    if length < layout.LEAST_LENGTH[LATEST_FORMAT]:
        detail = f"a length of {length}, no batch of format 2 is below {layout.LEAST_LENGTH[2]}"
        raise CorruptDataError("length", detail, position=position)
    if magic == LATEST_FORMAT:
        return read_header(head, 0)
    as_known = head[: layout.MAGIC_POSITION] + bytes([LATEST_FORMAT]) + head[layout.FIRST_BYTES :]
    return replace(read_header(as_known, 0), magic=magic)


def check_sum(file: Readable, frame: Frame) -> None:
    """Raise CorruptDataError where a batch's checksum is wrong. Of a batch of any size little is in
    memory at a time."""
    is_old = frame.header.magic < LATEST_FORMAT
    position = frame.position + (
        layout.LEGACY_CHECKSUM_START if is_old else layout.V2_CHECKSUM_START
    )
    function = crc32 if is_old else crc32c
    computed = 0
    while position < frame.end:
        chunk = file.read(position, min(16 * CHUNK, frame.end - position))
        computed = function(chunk, computed)
        position += len(chunk)
    if computed != frame.header.crc:
        detail = f"stored {frame.header.crc:#010x}, computed {computed:#010x}"
        raise CorruptDataError("checksum", detail, position=frame.position)
