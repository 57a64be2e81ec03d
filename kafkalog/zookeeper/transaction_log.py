"""A transaction log, entry by entry, and what of its bytes is no entry.

Rules: docs/zookeeper.md F408 to F412.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from kafkalog.errors import CorruptDataError
from kafkalog.storage.files import InputFile
from kafkalog.zookeeper.buffered_file import BufferedFile
from kafkalog.zookeeper.faults import Fault, Finding, corrupt, finding_of
from kafkalog.zookeeper.snapshot_input import LARGEST_VALUE_BYTES
from kafkalog.zookeeper.transactions import Transaction, read_transaction

MAGIC = 0x5A4B4C47
VERSION = 2
_HEADER = struct.Struct(">iiq")
# Before an entry's bytes: their Adler-32 in 64 bits, and their number.
ENTRY_HEADER = struct.Struct(">qi")
END_OF_ENTRY = b"B"
# What a transaction's header takes alone.
_SHORTEST_ENTRY = 32
_PIECE_BYTES = 1 << 20
# Looking for the next entry behind damage, no more than so many times the file is summed up.
_RESYNC_FACTOR = 4


class LogEntry(NamedTuple):
    """A sound entry and the position of its first byte."""

    position: int
    transaction: Transaction


def read_transaction_log(file: InputFile) -> Iterator[LogEntry | Finding]:
    """The entries of a log in their order, findings between them where bytes are damaged."""
    log = BufferedFile(file)
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
            data = log.read(position + ENTRY_HEADER.size, end - 1 - position - ENTRY_HEADER.size)
            yield LogEntry(position, read_transaction(data, position + ENTRY_HEADER.size))
        except CorruptDataError as error:
            end, budget = _next_entry(log, position + 1, budget)
            yield _judged(log, position, end, error)
            if end is None:
                return
        position = end


def _read_header(log: BufferedFile) -> int:
    header = log.read(0, _HEADER.size)
    if len(header) < _HEADER.size:
        raise corrupt(Fault.TRUNCATED, "the file ends within its header", len(header))
    magic, version, _ = _HEADER.unpack(header)
    if not any(header):
        raise corrupt(Fault.TRUNCATED, "zeros where the header should be", 0)
    if magic != MAGIC:
        raise corrupt(Fault.MAGIC, f"magic {magic & 0xFFFFFFFF:#x}, not ZKLG", 0)
    if version != VERSION:
        raise corrupt(Fault.VERSION, f"version {version}, known is {VERSION}", 4)
    return _HEADER.size


def _entry_end(log: BufferedFile, position: int) -> int | None:
    """Where a sound entry ends, None at the end of all entries. Raises CorruptDataError."""
    header = log.read(position, ENTRY_HEADER.size)
    if not any(header) and _last_byte(log, position) is None:
        return None
    if len(header) < ENTRY_HEADER.size:
        raise corrupt(Fault.MALFORMED, f"{len(header)} bytes of an entry", position)
    checksum: int
    size: int
    checksum, size = ENTRY_HEADER.unpack(header)
    end = position + ENTRY_HEADER.size + size + 1
    if not _SHORTEST_ENTRY <= size <= LARGEST_VALUE_BYTES or end > log.size:
        raise corrupt(Fault.MALFORMED, f"an entry of {size} bytes", position)
    data = log.read(position + ENTRY_HEADER.size, size + 1)
    found = zlib.adler32(memoryview(data)[:size])
    if data[size:] != END_OF_ENTRY:
        raise corrupt(Fault.MALFORMED, f"no {END_OF_ENTRY!r} behind {size} bytes", position)
    if found != checksum:
        detail = f"the checksum says {checksum:#x}, the bytes give {found:#x}"
        raise corrupt(Fault.CHECKSUM, detail, position)
    return end


def _judged(log: BufferedFile, position: int, end: int | None, error: CorruptDataError) -> Finding:
    """The finding for bytes that are no entry, `end` being where the next one begins.

    An entry that was not written to its end leaves neither a whole one behind itself nor its own
    last byte; a whole entry with a wrong length does.
    """
    if end is not None:
        detail = f"{error.detail}; the next entry begins at {end}"
        return Finding(log.path, position, Fault(error.fault), detail)
    last = _last_byte(log, position)
    is_torn = last is None or not _is_whole(log, position, last)
    if is_torn and error.fault == Fault.MALFORMED.value:
        return Finding(
            log.path, position, Fault.TRUNCATED, f"the last entry is cut: {error.detail}"
        )
    return finding_of(error, log.path)


def _is_whole(log: BufferedFile, position: int, last: int) -> bool:
    """Whether all bytes up to the file's last one that is not zero are an entry whose length alone
    is wrong."""
    checksum: int
    checksum, _ = ENTRY_HEADER.unpack(log.read(position, ENTRY_HEADER.size).ljust(12, b"\0"))
    begin = position + ENTRY_HEADER.size
    if not begin < last <= begin + LARGEST_VALUE_BYTES or log.read(last, 1) != END_OF_ENTRY:
        return False
    return checksum == zlib.adler32(log.read(begin, last - begin))


def _last_byte(log: BufferedFile, position: int) -> int | None:
    """The last place from `position` on whose byte is not zero."""
    end = log.size
    while end > position:
        begin = max(end - _PIECE_BYTES, position)
        piece = log.read(begin, end - begin).rstrip(b"\0")
        if piece:
            return begin + len(piece) - 1
        end = begin
    return None


def _next_entry(log: BufferedFile, position: int, budget: int) -> tuple[int | None, int]:
    """Where the next sound entry begins from `position` on, and what is left of the budget of
    bytes to sum up."""
    mark = END_OF_ENTRY + b"\0\0\0\0"
    while position < log.size and budget > 0:
        piece = log.read(position - 1, _PIECE_BYTES)
        found = piece.find(mark)
        while found >= 0 and budget > 0:
            begin = position + found
            size = int.from_bytes(log.read(begin + 8, 4), "big")
            if _SHORTEST_ENTRY <= size < log.size - begin - ENTRY_HEADER.size:
                budget -= size
                if _is_sound(log, begin):
                    return begin, budget
            found = piece.find(mark, found + 1)
        position += max(len(piece) - len(mark) + 1, 1)
    return None, budget


def _is_sound(log: BufferedFile, position: int) -> bool:
    try:
        return _entry_end(log, position) is not None
    except CorruptDataError:
        return False
