"""Snappy as found in Kafka's logs: xerial's framing, several such streams in a row, or one block.

Rule: docs/format.md F52.
"""

from __future__ import annotations

import struct

import cramjam

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_BYTES = 32 * 1024
_MAGIC = XERIAL_HEADER[:8]
# The first four bytes of a header, read as a block length, announce a further stream.
_HEADER_AS_LENGTH = int.from_bytes(_MAGIC[:4], "big", signed=True)
_LENGTH = struct.Struct(">i")


class SnappyError(Exception):
    """A stream whose framing is broken."""


def decompress_into(payload: memoryview, output: memoryview) -> int:
    """Decompress a whole payload; the number of bytes written."""
    if len(payload) < len(XERIAL_HEADER) or payload[:8] != _MAGIC:
        return int(cramjam.snappy.decompress_raw_into(payload, output))
    position = len(XERIAL_HEADER)
    size = 0
    # Fewer than four bytes at the end are ignored, as by Java's reader.
    while position + 4 <= len(payload):
        (length,) = _LENGTH.unpack_from(payload, position)
        if length == _HEADER_AS_LENGTH:
            position += len(XERIAL_HEADER)
            continue
        position += 4
        if not 0 < length <= len(payload) - position:
            raise SnappyError(f"a block of {length} bytes, {len(payload) - position} are left")
        block = payload[position : position + length]
        size += int(cramjam.snappy.decompress_raw_into(block, output[size:]))
        position += length
    return size


def compress(data: bytes) -> bytes:
    """Return one xerial stream, blocks of 32 KiB, as the Java client writes it."""
    parts = [XERIAL_HEADER]
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)
