"""A transaction log, entry by entry, and the bytes that are not an entry.

Rules: docs/zookeeper.md F408 to F412.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from kafkalog.errors import CorruptDataError
from kafkalog.storage.files.files import InputFile
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding, corrupt, finding_of
from kafkalog.zookeeper.snapshot_input import LARGEST_VALUE_BYTES
from kafkalog.zookeeper.transactions import Transaction, read_transaction

LOG_MAGIC = 0x5A4B4C47
LOG_VERSION = 2
_HEADER = struct.Struct(">iiq")
_BEGIN = struct.pack(">ii", LOG_MAGIC, LOG_VERSION)
# Before an entry's bytes: their Adler-32 in 64 bits, and their number.
ENTRY_HEADER = struct.Struct(">qi")
END_OF_ENTRY = b"B"
# The size of a transaction's header.
_SHORTEST_ENTRY = 32
_PIECE_BYTES = 1 << 20
# A limit for damaged entries: checksums may cover this many times the bytes of the file.
_RESYNC_FACTOR = 16


class _Buffered:
    """Bytes of an opened file by their position, for a reader that wants a few at a time; the last
    piece is kept."""

    def __init__(self, file: InputFile) -> None:
        self.path = file.path
        self.size = file.size
        self._file = file
        self._start = 0
        self._piece = b""

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes from `position`, fewer than `size` only at the end of the file."""
        begin = position - self._start
        if begin < 0 or begin + size > len(self._piece):
            self._piece = self._file.read(position, max(size, _PIECE_BYTES))
            self._start, begin = position, 0
        return self._piece[begin : begin + size]


class LogEntry(NamedTuple):
    """A sound entry and the position of its first byte."""

    position: int
    transaction: Transaction


def read_transaction_log(file: InputFile) -> Iterator[LogEntry | ZooKeeperFinding]:
    """Yield the entries of a log in their order, findings between them where bytes are damaged."""
    log = _Buffered(file)
    try:
        position = _read_header(log)
    except CorruptDataError as error:
        yield finding_of(error, log.path)
        return
    budget = _RESYNC_FACTOR * log.size
    while position < log.size:
        try:
            end = _entry_end(log, position)
            if end is None:
                return
            begin = position + ENTRY_HEADER.size
            transaction = read_transaction(log.read(begin, end - 1 - begin), begin)
        except CorruptDataError as error:
            end, budget = _next_entry(log, position, budget)
            yield _judged(log, position, end, error, is_given_up=budget <= 0)
            if end is None:
                return
        else:
            yield LogEntry(position, transaction)
        position = end


def _read_header(log: _Buffered) -> int:
    header = log.read(0, _HEADER.size)
    if len(header) < _HEADER.size:
        raise corrupt(ZooKeeperFault.TRUNCATED, "the file ends within its header", len(header))
    magic, version, _ = _HEADER.unpack(header)
    last = _last_byte(log, 0)
    written = header[: 0 if last is None else last + 1]
    if len(written) < len(_BEGIN) and _BEGIN.startswith(written):
        raise corrupt(ZooKeeperFault.TRUNCATED, "zeros where the header should be", 0)
    if magic != LOG_MAGIC:
        raise corrupt(ZooKeeperFault.MAGIC, f"magic {magic & 0xFFFFFFFF:#x}, not ZKLG", 0)
    if version != LOG_VERSION:
        detail = f"version {version}, known is {LOG_VERSION}"
        raise corrupt(ZooKeeperFault.VERSION, detail, 4)
    return _HEADER.size


def _entry_end(log: _Buffered, position: int) -> int | None:
    """Return where a sound entry ends, None at the end of all entries. Raises CorruptDataError."""
    header = log.read(position, ENTRY_HEADER.size)
    if not any(header) and _last_byte(log, position) is None:
        return None
    if len(header) < ENTRY_HEADER.size:
        raise corrupt(ZooKeeperFault.MALFORMED, f"{len(header)} bytes of an entry", position)
    checksum: int
    size: int
    checksum, size = ENTRY_HEADER.unpack(header)
    end = position + ENTRY_HEADER.size + size + 1
    if not _SHORTEST_ENTRY <= size <= LARGEST_VALUE_BYTES or end > log.size:
        raise corrupt(ZooKeeperFault.MALFORMED, f"an entry of {size} bytes", position)
    data = log.read(position + ENTRY_HEADER.size, size + 1)
    found = zlib.adler32(memoryview(data)[:size])
    if data[size:] != END_OF_ENTRY:
        raise corrupt(ZooKeeperFault.MALFORMED, f"no {END_OF_ENTRY!r} after {size} bytes", position)
    if found != checksum:
        detail = f"the checksum says {checksum:#x}, the bytes give {found:#x}"
        raise corrupt(ZooKeeperFault.CHECKSUM, detail, position)
    return end


def _judged(
    log: _Buffered, position: int, end: int | None, error: CorruptDataError, *, is_given_up: bool
) -> ZooKeeperFinding:
    """Return the finding for bytes that are not an entry; the next one begins at `end`."""
    detail = error.detail
    if end is not None:
        detail += f"; the next entry begins at {end}"
    elif is_given_up:
        detail += "; so much damage follows that the rest is not read"
    elif error.fault == ZooKeeperFault.MALFORMED.value and _is_torn(log, position):
        return ZooKeeperFinding(
            log.path, position, ZooKeeperFault.TRUNCATED, f"the last entry is incomplete: {detail}"
        )
    return ZooKeeperFinding(log.path, position, ZooKeeperFault(error.fault), detail)


def _is_torn(log: _Buffered, position: int) -> bool:
    """Return whether an entry was not written to its end: it extends to the end of the file, or
    ends in zeros. A complete entry with a wrong length has its last byte; another byte in that
    place is damage."""
    header = log.read(position, ENTRY_HEADER.size).ljust(ENTRY_HEADER.size, b"\0")
    last = _last_byte(log, position)
    if last is None:
        return True
    written = last - position - ENTRY_HEADER.size
    size: int = ENTRY_HEADER.unpack(header)[1]
    return written < max(size, 0) and not _is_whole(log, position, last)


def _is_whole(log: _Buffered, position: int, last: int) -> bool:
    """Return whether all bytes up to the file's last one that is not zero are an entry whose length
    alone is wrong."""
    checksum: int
    checksum, _ = ENTRY_HEADER.unpack(log.read(position, ENTRY_HEADER.size).ljust(12, b"\0"))
    begin = position + ENTRY_HEADER.size
    if not begin < last <= begin + LARGEST_VALUE_BYTES or log.read(last, 1) != END_OF_ENTRY:
        return False
    return checksum == zlib.adler32(log.read(begin, last - begin))


def _last_byte(log: _Buffered, position: int) -> int | None:
    """Return the last place from `position` on whose byte is not zero."""
    end = log.size
    while end > position:
        begin = max(end - _PIECE_BYTES, position)
        piece = log.read(begin, end - begin).rstrip(b"\0")
        if piece:
            return begin + len(piece) - 1
        end = begin
    return None


def _next_entry(log: _Buffered, position: int, budget: int) -> tuple[int | None, int]:
    """Return where the next sound entry begins after the damaged one at `position`, and the rest of
    the budget of bytes for checksums: where its length says, or after the end of any other."""
    claimed_end = position + ENTRY_HEADER.size + _claimed(log, position) + 1
    # The damaged entry was summed up as well.
    budget -= _claimed(log, position)
    for begin in chain([claimed_end], _possible_entry_ends(log, position + 1)):
        size = _claimed(log, begin)
        if size >= _SHORTEST_ENTRY:
            budget -= size
            if _is_sound(log, begin):
                return begin, budget
        if budget <= 0:
            break
    return None, budget


def _claimed(log: _Buffered, position: int) -> int:
    """Return the length of an entry by its header, 0 if the file has less."""
    size = int.from_bytes(log.read(position + 8, 4), "big", signed=True)
    return size if 0 <= size < log.size - position - ENTRY_HEADER.size else 0


def _possible_entry_ends(log: _Buffered, position: int) -> Iterator[int]:
    """Yield the positions after the last byte of a possible entry, where a checksum can follow."""
    mark = END_OF_ENTRY + b"\0\0\0\0"
    while position < log.size:
        piece = log.read(position - 1, _PIECE_BYTES)
        found = piece.find(mark)
        while found >= 0:
            yield position + found
            found = piece.find(mark, found + 1)
        position += max(len(piece) - len(mark) + 1, 1)


def _is_sound(log: _Buffered, position: int) -> bool:
    try:
        return _entry_end(log, position) is not None
    except CorruptDataError:
        return False
