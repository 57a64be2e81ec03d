"""Compression of record payloads, as Kafka frames it: gzip, snappy, lz4, zstd.

`decompress_into` writes into memory the caller owns, so that a payload can never grow beyond
what the caller allowed. Rules: docs/format.md F50 to F55.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import cramjam
from isal import igzip_lib, isal_zlib

from kafkalog.wire import lz4_frame, snappy_stream


class CompressionType(IntEnum):
    """Kafka's compression codecs by their id in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(Exception):
    """A payload that its codec cannot decompress."""


class OutputTooSmallError(Exception):
    """The decompressed payload is larger than the memory given."""


# The library's type information takes the class for an instance.
_IsalError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]
_FIRST_GZIP_PIECE = 256
_MOST_GZIP_PIECE = 1024 * 1024
_GZIP_MEMBER = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31  # zlib's way to say: a gzip header and trailer around the deflate stream
# What cramjam reports when the output it was given is full.
_OUTPUT_FULL = ("failed to write whole buffer", "output buffer")


def decompress_into(
    compression_id: int, magic: int, payload: memoryview, output: memoryview
) -> int:
    """Decompress `payload` into `output`; the number of bytes written.

    `compression_id` is a CompressionType other than NONE; `magic` is the message format's, for lz4
    differs between 0 and later. Raises OutputTooSmallError when `output` cannot hold all,
    CompressionError on bad input.
    """
    try:
        if compression_id == CompressionType.LZ4 and magic == 0:
            payload = memoryview(lz4_frame.with_right_header_checksum(payload))
        return _DECOMPRESSORS[compression_id](payload, output)
    except cramjam.DecompressionError as error:
        if any(words in str(error) for words in _OUTPUT_FULL):
            raise OutputTooSmallError(str(error)) from error
        raise CompressionError(f"{_name(compression_id)}: {error}") from error
    except (_IsalError, snappy_stream.SnappyError) as error:
        raise CompressionError(f"{_name(compression_id)}: {error}") from error


def _name(compression_id: int) -> str:
    return CompressionType(compression_id).name.lower()


def _gunzip_into(payload: memoryview, output: memoryview) -> int:
    """Decompress all members of a gzip stream; like Java's reader, ignore what follows the last
    one."""
    position = size = 0
    piece_bytes = len(payload)
    while True:
        read, written = _gunzip_member(payload[position:], output[size:], piece_bytes)
        position += read
        size += written
        if payload[position : position + 2] != _GZIP_MEMBER:
            return size
        # isal copies what follows a member's end in a piece: many members need small pieces.
        piece_bytes = _FIRST_GZIP_PIECE


def _gunzip_member(payload: memoryview, output: memoryview, piece_bytes: int) -> tuple[int, int]:
    """Decompress one member; the bytes read and the bytes written."""
    stream = isal_zlib.decompressobj(_GZIP_WINDOW_BITS)
    read = size = 0
    while not stream.eof:
        piece = payload[read : read + min(piece_bytes, _MOST_GZIP_PIECE)]
        room = len(output) - size
        # A limit of 0 would mean no limit. The output is copied, so it comes in pieces.
        part = stream.decompress(piece, min(max(room, 1), _MOST_GZIP_PIECE))
        if len(part) > room:
            raise OutputTooSmallError("gzip: more than fits into the memory given")
        if not piece and not part:
            raise CompressionError("gzip: the stream ends early")
        output[size : size + len(part)] = part
        size += len(part)
        read += len(piece) - len(stream.unused_data if stream.eof else stream.unconsumed_tail)
        piece_bytes *= 2
    return read, size


_DECOMPRESSORS: dict[int, Callable[[memoryview, memoryview], int]] = {
    CompressionType.GZIP: _gunzip_into,
    CompressionType.SNAPPY: snappy_stream.decompress_into,
    CompressionType.LZ4: cramjam.lz4.decompress_into,
    CompressionType.ZSTD: cramjam.zstd.decompress_into,
}


def compress(compression: CompressionType, magic: int, data: bytes) -> bytes:
    """`data` in the framing that Kafka's Java clients write."""
    if compression is CompressionType.GZIP:
        return bytes(isal_zlib.compress(data, wbits=_GZIP_WINDOW_BITS))
    if compression is CompressionType.SNAPPY:
        return snappy_stream.compress(data)
    if compression is CompressionType.LZ4:
        return lz4_frame.compress(data, magic)
    if compression is CompressionType.ZSTD:
        stream = cramjam.zstd.Compressor()
        stream.compress(data)
        return bytes(stream.finish())
    return data
