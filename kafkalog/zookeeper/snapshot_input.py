"""A snapshot's bytes, decompressed piece by piece, and their running checksum.

Rules: docs/zookeeper.md F403 and F404.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import cramjam

from kafkalog.storage.files.files import InputFile
from kafkalog.wire.snappy_stream import XERIAL_HEADER
from kafkalog.zookeeper.faults import ZooKeeperFault, corrupt

SNAPSHOT_CHUNK_BYTES = 1 << 20
# ZooKeeper refuses requests above jute.maxbuffer, 1 MB unless it is set: no value is near this.
LARGEST_VALUE_BYTES = 64 << 20
# The path in the last seal, with its length.
END_OF_SNAPSHOT = b"\0\0\0\x01/"
_LARGEST_SNAPPY_BLOCK = 64 << 20
_BLOCK_LENGTH = struct.Struct(">i")
_GZIP_WINDOW = 31


def plain_chunks(file: InputFile) -> Iterator[bytes]:
    """Yield the file as it is."""
    for position in range(0, file.size, SNAPSHOT_CHUNK_BYTES):
        yield file.read(position, SNAPSHOT_CHUNK_BYTES)


def gzip_chunks(file: InputFile) -> Iterator[bytes]:
    """Yield the contents of a gzip file. Raises CorruptDataError at the place in the file."""
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    position = 0
    while not inflater.eof:
        compressed = inflater.unconsumed_tail
        if not compressed:
            compressed = file.read(position, SNAPSHOT_CHUNK_BYTES)
            position += len(compressed)
        try:
            piece = inflater.decompress(compressed, SNAPSHOT_CHUNK_BYTES)
        except zlib.error as error:
            raise corrupt(ZooKeeperFault.COMPRESSION, f"gzip: {error}", position) from None
        if not (compressed or piece or inflater.eof):
            raise corrupt(ZooKeeperFault.TRUNCATED, "the gzip stream is cut short", file.size)
        yield piece
    if inflater.unused_data or position < file.size:
        raise corrupt(ZooKeeperFault.MALFORMED, "bytes after the gzip stream", position)


def snappy_chunks(file: InputFile) -> Iterator[bytes]:
    """Yield the contents of a stream of snappy blocks, as snappy-java frames them. Raises
    CorruptDataError at the place in the file."""
    if file.read(0, len(XERIAL_HEADER)) != XERIAL_HEADER:
        raise corrupt(ZooKeeperFault.COMPRESSION, "not the header of a snappy stream", 0)
    position = len(XERIAL_HEADER)
    while position < file.size:
        head = file.read(position, _BLOCK_LENGTH.size)
        if len(head) < _BLOCK_LENGTH.size:
            raise corrupt(ZooKeeperFault.TRUNCATED, "the snappy stream is cut short", position)
        (size,) = _BLOCK_LENGTH.unpack(head)
        if not 0 < size <= _LARGEST_SNAPPY_BLOCK:
            raise corrupt(ZooKeeperFault.COMPRESSION, f"a snappy block of {size} bytes", position)
        block = file.read(position + _BLOCK_LENGTH.size, size)
        if len(block) < size:
            raise corrupt(ZooKeeperFault.TRUNCATED, "the snappy stream is cut short", position)
        yield _decompressed_block(block, position)
        position += _BLOCK_LENGTH.size + size


def _decompressed_block(block: bytes, position: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > _LARGEST_SNAPPY_BLOCK:
            raise corrupt(ZooKeeperFault.COMPRESSION, f"a snappy block of {size} bytes", position)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise corrupt(ZooKeeperFault.COMPRESSION, f"snappy: {error}", position) from None


_CODECS = {"gz": gzip_chunks, "snappy": snappy_chunks}


def snapshot_chunks(file: InputFile) -> Iterator[bytes]:
    """Return the contents of a snapshot, decompressed as the end of its name says."""
    return _CODECS.get(file.path.rpartition(".")[2], plain_chunks)(file)


class SnapshotInput:
    """A window over a snapshot's bytes. `data[position:]` is what comes next; readers that take
    bytes from the window themselves set `position`."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.data = b""
        self.position = 0
        self._chunks = chunks
        self._start = 0
        self._checksum = 1
        self._summed = 0

    @property
    def place(self) -> int:
        """The position of what comes next in the decompressed file."""
        return self._start + self.position

    def holds(self, size: int) -> bool:
        """Return whether at least `size` bytes follow, after reading more into the window if
        needed."""
        if len(self.data) - self.position >= size:
            return True
        if size > LARGEST_VALUE_BYTES:
            raise corrupt(ZooKeeperFault.MALFORMED, f"a value of {size} bytes", self.place)
        self._checksum = self._summed_up()
        parts = [self.data[self.position :]]
        held = len(parts[0])
        for chunk in self._chunks:
            parts.append(chunk)
            held += len(chunk)
            if held >= size:
                break
        self._start += self.position
        self.data, self.position, self._summed = b"".join(parts), 0, 0
        return held >= size

    def require(self, size: int) -> None:
        """Read until the window has `size` bytes. Raises CorruptDataError if the file ends before:
        it is truncated, or, if it ends as complete ones do, has a wrong length."""
        if not self.holds(size):
            fault = (
                ZooKeeperFault.MALFORMED
                if self.data.endswith(END_OF_SNAPSHOT)
                else ZooKeeperFault.TRUNCATED
            )
            detail = f"the file ends {size - len(self.data) + self.position} bytes too early"
            raise corrupt(fault, detail, self.place)

    def _summed_up(self) -> int:
        return zlib.adler32(memoryview(self.data)[self._summed : self.position], self._checksum)

    def checksum(self) -> int:
        """Adler-32 of all bytes up to `place`."""
        self._checksum = self._summed_up()
        self._summed = self.position
        return self._checksum

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        self.require(size)
        self.position += size
        return self.data[self.position - size : self.position]

    def read_int(self) -> int:
        """Return a number of 32 bits."""
        return int.from_bytes(self.read(4), "big", signed=True)

    def read_long(self) -> int:
        """Return a number of 64 bits."""
        return int.from_bytes(self.read(8), "big", signed=True)

    def read_buffer(self) -> bytes:
        """Return bytes with their length before them, which cannot be null here."""
        size = self.read_int()
        if size < 0:
            raise corrupt(ZooKeeperFault.MALFORMED, f"a length of {size}", self.place - 4)
        return self.read(size)
