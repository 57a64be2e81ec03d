"""Segments in memory, framed without kafkalog's help. Only record batches of format 2."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

HEADER_BYTES = 61
CHECKSUM_START = 21
_OVERHEAD = 12
_CODEC_BITS = 0x07
# Base offset, length, epoch, magic, checksum, attributes, last offset delta, both timestamps,
# producer id and epoch, base sequence, count of records.
_HEADER = struct.Struct(">qiibIhiqqqhii")
_KEPT = (0, 1, 3, 4, 5, 6)


@dataclass(frozen=True, slots=True)
class Batch:
    """Where a batch lies in its segment, and what of its header matters here."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    crc: int
    codec_id: int
    records: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment's bytes and its batches."""

    data: np.ndarray
    batches: Sequence[Batch]

    @property
    def records(self) -> int:
        return sum(batch.records for batch in self.batches)

    def leading(self, share: float) -> Segment:
        """The first batches, so many that they make up about this share of the bytes."""
        wanted = share * len(self.data)
        count = sum(batch.position < wanted for batch in self.batches)
        end = self.batches[count - 1].end
        return Segment(self.data[:end].copy(), self.batches[:count])


def read_segment(path: Path) -> Segment:
    """The whole file, in memory that may be written to, as kernels want it."""
    data = np.fromfile(path, dtype=np.uint8)
    return Segment(data, frame(data.data))


def frame(data: memoryview) -> list[Batch]:
    """All batches; they must fill the bytes."""
    batches: list[Batch] = []
    position = 0
    while position < len(data):
        fields = _HEADER.unpack_from(data, position)
        base_offset, length, magic, crc, attributes, last_delta = (fields[i] for i in _KEPT)
        if magic != 2:
            raise ValueError(f"a batch of format {magic}: only format 2 is measured")
        end = position + _OVERHEAD + length
        last_offset = base_offset + last_delta
        codec_id = attributes & _CODEC_BITS
        batches.append(Batch(position, end, base_offset, last_offset, crc, codec_id, fields[-1]))
        position = end
    return batches


def write_repeated(segment: Segment, size: int, file: IO[bytes]) -> None:
    """Write the segment again and again, offsets going on, up to `size` bytes.

    A batch's checksum does not cover the base offset, so each stays right.
    """
    copy = bytearray(segment.data.data)
    step = segment.batches[-1].last_offset + 1 - segment.batches[0].base_offset
    written = shift = 0
    while written < size:
        for batch in segment.batches:
            struct.pack_into(">q", copy, batch.position, batch.base_offset + shift)
        left = size - written
        whole = max((batch.end for batch in segment.batches if batch.end <= left), default=0)
        if not whole:
            return
        file.write(memoryview(copy)[:whole])
        written += whole
        shift += step
