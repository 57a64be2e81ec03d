"""The manifest that Aiven's tiered-storage plug-in writes beside each uploaded segment.

JSON, version 1: how the segment was cut into chunks, which were compressed (zstd) or encrypted each
on its own, and what Kafka knows of the segment. Rule: docs/remote.md F557.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.wire.compression import (
    CompressionError,
    CompressionType,
    OutputTooSmallError,
    decompress_into,
)

_FAULT = "manifest"
_VERSION = "1"
# What reading the fields of some other JSON ends in.
_NOT_AS_WRITTEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_MAGIC = 2  # zstd is framed in one way only
# What the plug-in itself takes; a segment has 2 GiB at most.
_MOST_CHUNK_SIZES_BYTES = 10 * 1024 * 1024
_LARGEST_SEGMENT = 2**31 - 1
# The plug-in's chunks have 4 MiB unless it is set. One is held in memory, stored and decompressed.
MOST_CHUNK_BYTES = 128 * 1024 * 1024
# What zstd makes of bytes that it cannot compress is a little more.
_MOST_STORED_BYTES = MOST_CHUNK_BYTES + MOST_CHUNK_BYTES // 128
# Of 2 KiB each, in the largest segment.
_MOST_CHUNKS = 1024 * 1024
_MOST_MANIFEST_CHARACTERS = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TieredManifest:
    """`segment_bytes` is the segment's size, `chunk_bytes` that of each of its chunks but the last;
    `stored_sizes` are those of the chunks as they are stored. `leader_epochs` are those of the
    segment by their starts."""

    segment_bytes: int
    chunk_bytes: int
    stored_sizes: tuple[int, ...]
    is_compressed: bool
    is_encrypted: bool
    leader_epochs: tuple[EpochStart, ...]


def read_tiered_manifest(text: str) -> TieredManifest:
    """Return the manifest of a segment. Raises CorruptDataError."""
    if len(text) > _MOST_MANIFEST_CHARACTERS:
        raise _damage(f"{len(text)} characters, {_MOST_MANIFEST_CHARACTERS} is the most")
    try:
        fields = json.loads(text)
        if fields["version"] != _VERSION:
            raise _damage(f"version {str(fields['version'])[:80]!r}, known is {_VERSION!r}")
        index = fields["chunkIndex"]
        epochs = fields["remoteLogSegmentMetadata"]["segmentLeaderEpochs"]
        manifest = TieredManifest(
            int(index["originalFileSize"]),
            int(index["originalChunkSize"]),
            _stored_sizes(index),
            bool(fields["compression"]),
            fields.get("encryption") is not None,
            tuple(sorted(EpochStart(int(epoch), int(start)) for epoch, start in epochs.items())),
        )
    except _NOT_AS_WRITTEN as error:
        raise _damage(f"not as the plug-in writes it: {repr(error)[:200]}") from error
    _check(manifest)
    return manifest


def _damage(detail: str) -> CorruptDataError:
    return CorruptDataError(_FAULT, detail, position=0)


def _check(manifest: TieredManifest) -> None:
    size, chunk = manifest.segment_bytes, manifest.chunk_bytes
    if not 0 <= size <= _LARGEST_SEGMENT or not 0 < chunk <= _LARGEST_SEGMENT:
        raise _damage(f"{size} bytes in chunks of {chunk}")
    if len(manifest.stored_sizes) != -(-size // chunk):
        raise _damage(f"{len(manifest.stored_sizes)} chunks of {chunk} for {size} bytes")
    if not manifest.leader_epochs:
        raise _damage("no leader epochs")
    if manifest.is_compressed and min(size, chunk) > MOST_CHUNK_BYTES:
        detail = f"chunks of {min(size, chunk)} bytes, {MOST_CHUNK_BYTES} is the most that is read"
        raise _damage(detail)
    largest = max(manifest.stored_sizes, default=0)
    if manifest.is_compressed and largest > _MOST_STORED_BYTES:
        raise _damage(f"a stored chunk of {largest} bytes, {_MOST_STORED_BYTES} is the most")


def _check_count(count: int) -> None:
    if not 0 <= count <= _MOST_CHUNKS:
        raise _damage(f"{count} chunks, {_MOST_CHUNKS} is the most that is read")


def _stored_sizes(index: dict[str, Any]) -> tuple[int, ...]:
    if index["type"] == "fixed":
        count = -(-int(index["originalFileSize"]) // max(int(index["originalChunkSize"]), 1))
        _check_count(count)
        sizes = [int(index["transformedChunkSize"])] * (count - 1)
        return (*sizes, int(index["finalTransformedChunkSize"])) if count else ()
    if index["type"] != "variable":
        raise _damage(f"chunk index of type {str(index['type'])[:80]!r}")
    try:
        packed = memoryview(base64.b64decode(index["transformedChunks"], validate=True))
        data = bytearray(_MOST_CHUNK_SIZES_BYTES)
        size = decompress_into(CompressionType.ZSTD, _MAGIC, packed, memoryview(data))
    except (binascii.Error, CompressionError, OutputTooSmallError) as error:
        raise _damage(f"sizes of chunks: {error}") from error
    return read_chunk_sizes(bytes(data[:size]))


def read_chunk_sizes(data: bytes) -> tuple[int, ...]:
    """Return a count (4 bytes); of more than one value a base (4), a width (1) and the values but
    the last as differences from the base in so many bytes each; the last value (4). All big-endian.

    Raises CorruptDataError.
    """
    count = int.from_bytes(data[:4], "big")
    if count == 0 and len(data) == 4:
        return ()
    if count == 1 and len(data) == 8:
        return (int.from_bytes(data[4:], "big"),)
    _check_count(count)
    base, width = int.from_bytes(data[4:8], "big"), data[8] if len(data) > 8 else 0
    if count < 2 or not 1 <= width <= 4 or len(data) != 9 + (count - 1) * width + 4:
        raise _damage(f"{count} sizes of chunks in {len(data)} bytes")
    places = range(9, len(data) - 4, width)
    values = [base + int.from_bytes(data[at : at + width], "big") for at in places]
    return (*values, int.from_bytes(data[-4:], "big"))
