"""LZ4 frames as Kafka writes them, and the header checksum that magic 0 gets wrong.

Rule: docs/format.md F53.
"""

from __future__ import annotations

import struct

import cramjam

from kafkalog.wire import BytesLike

_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_VERSION_1_INDEPENDENT_BLOCKS = 0x60
_BLOCKS_OF_64_KIB = 0x40
_BLOCK_BYTES = 64 * 1024
_STORED = 0x80000000
_END_MARK = b"\x00\x00\x00\x00"
_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY_ID = 0x01

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = (
    0x9E3779B1,
    0x85EBCA77,
    0xC2B2AE3D,
    0x27D4EB2F,
    0x165667B1,
)
_MASK = 0xFFFFFFFF


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def _xxh32_short(data: BytesLike) -> int:
    """XXH32, seed 0, of fewer than 16 bytes: all that a frame descriptor can hold."""
    value = (_PRIME_5 + len(data)) & _MASK
    words = len(data) // 4
    for (word,) in struct.iter_unpack("<I", data[: 4 * words]):
        value = _rotated((value + word * _PRIME_3) & _MASK, 17) * _PRIME_4 & _MASK
    for byte in data[4 * words :]:
        value = _rotated((value + byte * _PRIME_5) & _MASK, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _header_checksum(hashed: BytesLike) -> int:
    return _xxh32_short(hashed) >> 8 & 0xFF


def _descriptor_end(frame: BytesLike) -> int:
    flags = frame[4]
    optional = (8 if flags & _HAS_CONTENT_SIZE else 0) + (4 if flags & _HAS_DICTIONARY_ID else 0)
    return 6 + optional


def with_right_header_checksum(frame: memoryview) -> BytesLike:
    """Return the frame as a conforming reader requires it.

    Clients of message format 0 hashed the frame magic too and readers never looked; the result
    differs from `frame` in that one byte.
    """
    if len(frame) < 7 or len(frame) <= (end := _descriptor_end(frame)):
        return frame
    right = bytearray(frame)
    right[end] = _header_checksum(frame[4:end])
    return right


def compress(data: bytes, magic: int) -> bytes:
    """Return one frame of independent 64 KiB blocks; for magic 0 with the checksum of that time."""
    header = _FRAME_MAGIC + bytes((_VERSION_1_INDEPENDENT_BLOCKS, _BLOCKS_OF_64_KIB))
    parts = [header, bytes((_header_checksum(header if magic == 0 else header[4:]),))]
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (struct.pack("<I", len(packed)), packed)
        else:
            parts += (struct.pack("<I", len(block) | _STORED), block)
    return b"".join((*parts, _END_MARK))
