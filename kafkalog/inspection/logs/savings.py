"""What other compression and larger batches would save of a topic, by a sample of its batches.

The sample is blocks of adjacent batches, chosen at random, each with the same chance. Their sizes
before and after give the ratio for all bytes of the topic, and how much it differs between blocks
gives the error. Rule: docs/command-line.md F592.
"""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.errors import CorruptDataError
from kafkalog.format import batch_header as layout
from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.record_batch import decompressed_payload
from kafkalog.storage.files.unreadable_input import note_deleted
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.renamed_files import opened, opened_segment
from kafkalog.wire.compression import CompressionType, compress

BLOCK_BYTES = 1024 * 1024
MERGED_BYTES = 512 * 1024
_GZIP_LEVEL = 6


class Change(NamedTuple):
    """Another codec, None for the one that batches have, and how many bytes of records a batch
    holds before compression, 0 for those that it has."""

    name: str
    compression: CompressionType | None
    batch_bytes: int = 0


_CODECS = [each for each in CompressionType if each is not CompressionType.NONE]
CHANGES = (
    *(Change(f"compression.type={each.name.lower()}", each) for each in _CODECS),
    Change("512 KiB batches", None, MERGED_BYTES),
    Change("512 KiB batches, zstd", CompressionType.ZSTD, MERGED_BYTES),
)


class Saving(NamedTuple):
    """What batches take, and what they would take after a change; the true number lies within
    `error_bytes` of it in 19 of 20 samples. The error is 0 if all batches were looked at, None if
    there was one block only."""

    change: str
    size: int
    would_take: int
    error_bytes: int | None
    sampled_bytes: int


class _Block(NamedTuple):
    """Adjacent batches of a file."""

    path: str
    position: int
    end_position: int
    size: int


class _Batch(NamedTuple):
    header: BatchHeader
    records: bytes | None  # decompressed; None for those that stay as they are


def savings(segments: Sequence[SegmentFile], most_bytes: int, seed: str) -> list[Saving]:
    """Estimate what each change would save, from a sample of about `most_bytes` of the batches. The
    same `seed` chooses the same blocks. Messages of formats 0 and 1, transaction markers, damage
    what the disk does not return, and what is deleted meanwhile stay as they are. Raises
    OSError."""
    blocks = [block for segment in segments for block in _blocks(segment)]
    whole = sum(block.size for block in blocks)
    if not whole:
        return []
    wanted = max(2, most_bytes * len(blocks) // whole)
    chosen = random.Random(seed).sample(blocks, min(wanted, len(blocks)))
    sizes = [block.size for block in chosen]
    after: list[list[int]] = [[] for _ in CHANGES]
    for block in chosen:
        try:
            batches = list(_batches(block))
        except CorruptDataError:
            batches = None
        except FileNotFoundError:
            note_deleted(block.path)
            batches = None
        for found, change in zip(after, CHANGES, strict=True):
            found.append(block.size if batches is None else _size_after(batches, change))
    return [
        Saving(change.name, whole, *_estimate(sizes, found, len(blocks), whole), sum(sizes))
        for change, found in zip(CHANGES, after, strict=True)
    ]


def _estimate(
    sizes: Sequence[int], after: Sequence[int], blocks: int, whole: int
) -> tuple[int, int | None]:
    """Return the ratio estimate of the size of all blocks after the change, and twice its standard
    error (Cochran, Sampling Techniques, 6.4: without replacement)."""
    ratio = sum(after) / sum(sizes)
    count = len(sizes)
    if count == blocks:
        return sum(after), 0
    if count < 2:
        return round(ratio * whole), None
    squares = sum((y - ratio * x) ** 2 for x, y in zip(sizes, after, strict=True))
    error = blocks * math.sqrt((1 - count / blocks) * squares / (count - 1) / count)
    return round(ratio * whole), math.ceil(2 * error)


def _blocks(segment: SegmentFile) -> Iterator[_Block]:
    """Yield the sound batches of a segment by its headers, in blocks of about BLOCK_BYTES."""
    first = end = size = 0
    with opened_segment(segment) as file:
        for chunk in SegmentHeaders(FileWindow(file), SegmentOptions.of(segment)).chunks():
            sound = chunk.table[chunk.table[:, column.FAULT] == 0]
            for position, length in sound[:, (column.POSITION, column.SIZE)].tolist():
                if size and (position != end or size >= BLOCK_BYTES):
                    yield _Block(segment.path, first, end, size)
                    size = 0
                first = position if not size else first
                size += length
                end = position + length
    if size:
        yield _Block(segment.path, first, end, size)


def _batches(block: _Block) -> Iterator[_Batch]:
    """Yield the batches of a block. Raises CorruptDataError if the disk does not return it, and
    FileNotFoundError."""
    with opened(block.path) as file:
        data = file.read(block.position, block.end_position - block.position)
    position = 0
    while position < len(data):
        header = read_header(data, position)
        yield _Batch(header, _records(header, data, position))
        position += header.size


def _records(header: BatchHeader, data: bytes, position: int) -> bytes | None:
    if header.magic < 2 or header.is_control:
        return None
    try:
        return decompressed_payload(data, position)
    except CorruptDataError:
        return None


def _size_after(batches: Sequence[_Batch], change: Change) -> int:
    return sum(
        size
        for _, group in groupby(batches, key=_merges_with)
        for size in _sizes_after(list(group), change)
    )


def _merges_with(batch: _Batch) -> tuple[bool, int, int, bool]:
    header = batch.header
    is_same = batch.records is not None
    return is_same, header.compression_id, header.producer_id, header.is_transactional


def _sizes_after(batches: Sequence[_Batch], change: Change) -> Iterator[int]:
    """Yield the sizes of batches of one producer and codec after the change."""
    held: list[bytes] = []
    for number, batch in enumerate(batches):
        if batch.records is None:
            yield batch.header.size
            continue
        own = CompressionType(batch.header.compression_id)
        codec = own if change.compression is None else change.compression
        if codec is own and not change.batch_bytes:
            # A broker does not touch a batch that has the topic's codec.
            yield batch.header.size
            continue
        held.append(batch.records)
        is_full = sum(map(len, held)) >= change.batch_bytes
        if is_full or number == len(batches) - 1:
            yield layout.V2_HEADER_BYTES + _compressed_size(codec, b"".join(held))
            held = []


def _compressed_size(codec: CompressionType, data: bytes) -> int:
    if codec is CompressionType.GZIP:
        # Java's level, at which zlib compresses more than the faster library that writes do.
        return len(gzip.compress(data, _GZIP_LEVEL, mtime=0))
    return len(compress(codec, 2, data))
