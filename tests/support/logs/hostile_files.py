"""Small files that ask for gigabytes of memory: batches whose payloads are repetitions, written a
piece at a time so that making them takes little."""

from collections.abc import Iterable, Iterator

import cramjam
import numpy as np

from kafkalog.format.batch_header import V2_HEADER
from kafkalog.format.message_set import write_old_message
from kafkalog.format.record_batch import with_checksum
from kafkalog.wire.compression import CompressionType
from kafkalog.wire.varints import write_varint

MIB = 1024 * 1024
ZSTD = CompressionType.ZSTD


def repeated(piece: bytes, size: int) -> Iterator[bytes]:
    """So many bytes, a MiB or so at a time."""
    block = piece * max(MIB // len(piece), 1)
    for start in range(0, size, len(block)):
        yield block[: size - start]


def record(
    delta: int,
    *,
    value: bytes = b"\0",
    value_bytes: int = 0,
    headers: int = 0,
    header: bytes = b"\0\0",
) -> Iterator[bytes]:
    """A record without a key; its value is repeated up to so many bytes, its header so often. The
    least header is two bytes: no key, and no value."""
    head = b"\0\0" + write_varint(delta) + write_varint(-1) + write_varint(value_bytes)
    count = write_varint(headers)
    size = len(head) + value_bytes + len(count) + headers * len(header)
    yield write_varint(size) + head
    yield from repeated(value, value_bytes)
    yield count
    yield from repeated(header, headers * len(header))


def least_records(count: int, start: int = 0) -> bytes:
    """Records of nothing but an offset, which takes four bytes from 2**20 on."""
    assert start >= 2**20
    deltas = np.arange(start, start + count, dtype=np.int64) * 2
    rows = np.empty((count, 10), dtype=np.uint8)
    rows[:, 0], rows[:, 1:3], rows[:, 7:9], rows[:, 9] = 2 * 9, 0, 1, 0
    for place in range(4):
        rows[:, 3 + place] = (deltas >> (7 * place) & 0x7F) | (0x80 if place < 3 else 0)
    return rows.tobytes()


def compressed(parts: Iterable[bytes]) -> bytes:
    """All parts in a row, as zstd at its best."""
    stream = cramjam.zstd.Compressor(9)
    for part in parts:
        stream.compress(part)
    return bytes(stream.finish())


def batch(
    payload: bytes, count: int, last_delta: int | None = None, codec: CompressionType = ZSTD
) -> bytes:
    """A batch around a payload that is compressed already, its checksum right."""
    last_delta = count - 1 if last_delta is None else last_delta
    fields = (0, 49 + len(payload), 0, 2, 0, int(codec), last_delta, 0, 0, -1, -1, -1, count)
    return with_checksum(V2_HEADER.pack(*fields) + payload)


def wrapper(messages: Iterable[bytes], last_offset: int, codec: CompressionType) -> bytes:
    """A compressed message of format 1 around others; gzip."""
    stream = cramjam.gzip.Compressor(9)
    for message in messages:
        stream.compress(message)
    return write_old_message(last_offset, 1, None, bytes(stream.finish()), attributes=int(codec))
