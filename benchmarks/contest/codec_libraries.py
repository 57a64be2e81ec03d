"""The libraries that could decompress Kafka's payloads, each as a function from bytes to bytes.

A library is loaded on request; one that is not installed is left out by name.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.wire.checksums import crc32c
from kafkalog.wire.compression import CompressionType, decompress_into

BytesLike = bytes | memoryview
Decompress = Callable[[bytes], BytesLike]
Checksum = Callable[[memoryview], int]

_GZIP_WINDOW_BITS = 31
_LARGEST_PAYLOAD = 16 * 1024 * 1024
_XERIAL_HEADER_BYTES = 16
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Library:
    """A way to decompress; `module` has to be importable for it."""

    name: str
    module: str
    make: Callable[[Any], Decompress]


def _chosen(codec: str) -> Library:
    """What kafkalog does: into memory that is used again and again."""
    output = np.empty(_LARGEST_PAYLOAD, dtype=np.uint8).data
    codec_id = CompressionType[codec.upper()]

    def decompress(payload: bytes) -> memoryview:
        return output[: decompress_into(codec_id, 2, memoryview(payload), output)]

    return Library("kafkalog's choice", "kafkalog", lambda module: decompress)


def _stream(make_stream: Callable[[], Any]) -> Decompress:
    return lambda payload: make_stream().decompress(payload)


def _arrow_stream(codec: str) -> Callable[[Any], Decompress]:
    def decompress(payload: bytes) -> bytes:
        with pa.CompressedInputStream(pa.BufferReader(payload), codec) as stream:
            return stream.read()  # type: ignore[no-any-return]

    return lambda module: decompress


def _blocks(decompress_block: Callable[[memoryview], BytesLike]) -> Decompress:
    """Snappy in the framing of the Java client: blocks with their lengths before them."""

    def decompress(payload: bytes) -> bytes:
        view = memoryview(payload)
        parts = []
        position = _XERIAL_HEADER_BYTES
        while position < len(view):
            begin = position + _LENGTH.size
            position = begin + _LENGTH.unpack_from(view, position)[0]
            parts.append(decompress_block(view[begin:position]))
        return b"".join(parts)

    return decompress


def _arrow_snappy_block(block: memoryview) -> BytesLike:
    # The block begins with its decompressed size, which Arrow requires.
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return memoryview(pa.decompress(block, size, codec="snappy"))


def _libdeflate(module: Any) -> Decompress:
    # It wants to know the size beforehand; gzip's trailer says so, for streams of one member.
    return lambda payload: module.gzip_decompress(payload, int.from_bytes(payload[-4:], "little"))


LIBRARIES: dict[str, tuple[Library, ...]] = {
    "gzip": (
        _chosen("gzip"),
        Library(
            "isal", "isal.isal_zlib", lambda m: _stream(lambda: m.decompressobj(_GZIP_WINDOW_BITS))
        ),
        Library("libdeflate (deflate)", "deflate", _libdeflate),
        Library(
            "zlib-ng",
            "zlib_ng.zlib_ng",
            lambda m: _stream(lambda: m.decompressobj(_GZIP_WINDOW_BITS)),
        ),
        Library("cramjam", "cramjam", lambda m: lambda payload: bytes(m.gzip.decompress(payload))),
        Library("pyarrow", "pyarrow", _arrow_stream("gzip")),
        Library("zlib", "zlib", lambda m: _stream(lambda: m.decompressobj(_GZIP_WINDOW_BITS))),
    ),
    "snappy": (
        _chosen("snappy"),
        Library("python-snappy", "snappy", lambda m: _blocks(m.uncompress)),
        Library("pyarrow", "pyarrow", lambda m: _blocks(_arrow_snappy_block)),
    ),
    "lz4": (
        _chosen("lz4"),
        Library("cramjam, bytes", "cramjam", lambda m: lambda p: bytes(m.lz4.decompress(p))),
        Library("lz4", "lz4.frame", lambda m: m.decompress),
        Library("pyarrow", "pyarrow", _arrow_stream("lz4")),
    ),
    "zstd": (
        _chosen("zstd"),
        Library("cramjam, bytes", "cramjam", lambda m: lambda p: bytes(m.zstd.decompress(p))),
        Library("zstandard", "zstandard", lambda m: _stream(m.ZstdDecompressor().decompressobj)),
        Library("backports.zstd", "backports.zstd", lambda m: m.decompress),
        Library("pyarrow", "pyarrow", _arrow_stream("zstd")),
    ),
}

# google-crc32c takes nothing but bytes. zlib's CRC-32 is another checksum: it is there to compare
# with, no alternative.
CHECKSUMS: dict[str, tuple[str, Callable[[Any], Checksum]]] = {
    "crc32c, kafkalog's choice": ("crc32c", lambda m: crc32c),
    "google-crc32c, of a copy": ("google_crc32c", lambda m: lambda data: m.value(bytes(data))),
    "aiokafka's own": ("aiokafka.record._crecords.cutil", lambda m: m.crc32c_cython),
    "zlib's CRC-32": ("zlib", lambda m: zlib.crc32),
}


def find(module: str) -> Any | None:
    """The module, or None where it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None
