"""Messages of the oldest layout (Kafka 0.7 and before), read and written.

A file is entries one after another, each a length and a message; a message's offset is the place
of its entry in the stream of all that was ever written to the partition. There is no broker of
that age to compare with: the rules are those of the user's documents and of the message format
that 0.7 documents. Rules: docs/format.md F154 to F157.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import NO_TIMESTAMP_TYPE, NO_VALUE
from kafkalog.format.faults import Fault
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.format.records import Record
from kafkalog.wire.checksums import crc32
from kafkalog.wire.compression import (
    CompressionError,
    CompressionType,
    OutputTooSmallError,
    decompress_into,
)

LENGTH_BYTES = 4
# Bytes of a message before its payload, by magic; attributes came with magic 1.
HEAD_BYTES = (5, 6)
_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_CODEC_BITS = 0x03
_CODECS = (CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY)
_FIRST_GUESS = 1024 * 1024


class EntryFraming(Enum):
    """Whether the bytes at a place are a whole entry."""

    WHOLE = "whole"
    PARTIAL = "partial"  # the bytes end first: usual at the end of a file or of a fetch
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class OldestEntry:
    """A length and a message. `position` is its place in the bytes it was read from."""

    position: int
    magic: int
    compression_id: int
    crc: int
    payload: bytes

    @property
    def size(self) -> int:
        return LENGTH_BYTES + HEAD_BYTES[self.magic] + len(self.payload)

    @property
    def is_valid(self) -> bool:
        """Whether the checksum is that of the payload."""
        return crc32(self.payload) == self.crc


def framing(data: bytes, position: int) -> EntryFraming:
    """Return what the bytes at `position` are by their length and magic."""
    left = len(data) - position
    if left >= LENGTH_BYTES:
        (length,) = _LENGTH.unpack_from(data, position)
        if length < HEAD_BYTES[0]:
            return EntryFraming.WRONG
        if left > LENGTH_BYTES:
            magic = data[position + LENGTH_BYTES]
            if magic >= len(HEAD_BYTES) or length < HEAD_BYTES[magic]:
                return EntryFraming.WRONG
        if left >= LENGTH_BYTES + length:
            return EntryFraming.WHOLE
    return EntryFraming.PARTIAL


def read_entry(data: bytes, position: int) -> OldestEntry:
    """Return the whole entry at `position`."""
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + LENGTH_BYTES
    magic = data[start]
    payload_start = start + HEAD_BYTES[magic]
    return OldestEntry(
        position,
        magic,
        data[start + 1] & _CODEC_BITS if magic else CompressionType.NONE,
        _CRC.unpack_from(data, payload_start - _CRC.size)[0],
        bytes(data[payload_start : start + length]),
    )


def read_entries(data: bytes, *, max_message_bytes: int = MAX_BATCH_BYTES) -> Iterator[OldestEntry]:
    """Yield the entries one after another, their checksums right; a part of one at the end is left
    out.

    Raises CorruptDataError at the first that is not sound.
    """
    position = 0
    while (found := framing(data, position)) is not EntryFraming.PARTIAL:
        if found is EntryFraming.WRONG:
            detail = f"no length and magic of an entry: {data[position : position + 5].hex()}"
            raise _corrupt(Fault.LENGTH, detail, position)
        entry = read_entry(data, position)
        if entry.size - LENGTH_BYTES > max_message_bytes:
            detail = f"a message of {entry.size - LENGTH_BYTES} bytes, allowed {max_message_bytes}"
            raise _corrupt(Fault.TOO_LARGE, detail, position)
        if not entry.is_valid:
            detail = f"stored {entry.crc:#010x}, computed {crc32(entry.payload):#010x}"
            raise _corrupt(Fault.CHECKSUM, detail, position)
        yield entry
        position += entry.size


def entry_records(
    entry: OldestEntry, offset: int, *, max_message_bytes: int = MAX_BATCH_BYTES
) -> list[Record]:
    """Return the records of a sound entry whose offset is known.

    Those inside a compressed one all have its offset: that is where a consumer can begin to read.
    Raises CorruptDataError whose position is the entry's.
    """
    payloads = [entry.payload]
    if entry.compression_id:
        payloads = _inner_payloads(entry, max_message_bytes)
    return [Record(offset, NO_VALUE, NO_TIMESTAMP_TYPE, None, payload) for payload in payloads]


def _inner_payloads(entry: OldestEntry, limit: int) -> list[bytes]:
    if entry.compression_id >= len(_CODECS):
        detail = f"compression codec {entry.compression_id} in the oldest layout"
        raise _corrupt(Fault.CODEC, detail, entry.position)
    inner = _decompressed(entry, limit)
    try:
        entries = list(read_entries(inner, max_message_bytes=limit))
    except CorruptDataError as error:
        detail = f"inside the compressed message, position {error.position}: {error.detail}"
        raise CorruptDataError(error.fault, detail, position=entry.position) from error
    if not entries:
        detail = "a compressed message without messages inside"
        raise _corrupt(Fault.RECORD_COUNT, detail, entry.position)
    if any(found.compression_id for found in entries):
        raise _corrupt(Fault.RECORDS, "a compressed message inside another", entry.position)
    return [found.payload for found in entries]


def _decompressed(entry: OldestEntry, limit: int) -> bytes:
    room = min(max(_FIRST_GUESS, 8 * len(entry.payload)), limit)
    while True:
        output = memoryview(bytearray(room))
        try:
            size = decompress_into(
                entry.compression_id, entry.magic, memoryview(entry.payload), output
            )
            return bytes(output[:size])
        except OutputTooSmallError:
            if room == limit:
                detail = f"decompresses to more than {limit} bytes"
                raise _corrupt(Fault.TOO_LARGE, detail, entry.position) from None
            room = min(4 * room, limit)
        except CompressionError as error:
            raise _corrupt(Fault.COMPRESSION, str(error), entry.position) from error


def _corrupt(fault: Fault, detail: str, position: int) -> CorruptDataError:
    return CorruptDataError(fault.label, detail, position=position)
