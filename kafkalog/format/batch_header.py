"""The header of a batch: 61 bytes of a record batch v2, or the head of a message v0 or v1.

A message of the old formats is a batch of its own; compressed, it wraps an inner message set.
Rules: docs/format.md F10 to F15 and F40 to F44.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from kafkalog.wire import BytesLike
from kafkalog.wire.checksums import crc32, crc32c

LOG_OVERHEAD = 12  # base offset and length, before what the length counts
MAGIC_POSITION = 16
FIRST_BYTES = 17  # offset, length, epoch or crc, magic: enough to know the format
V2_HEADER_BYTES = 61
V2_CHECKSUM_START = 21
LEGACY_CHECKSUM_START = 16
NO_VALUE = -1

# What the length field holds at least, by magic.
LEAST_LENGTH = (14, 22, V2_HEADER_BYTES - LOG_OVERHEAD)
MAGICS = range(len(LEAST_LENGTH))

COMPRESSION_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
# Attribute bits that some version of Kafka gives a meaning, by magic.
USED_ATTRIBUTES = (COMPRESSION_BITS, COMPRESSION_BITS | LOG_APPEND_TIME_BIT, 0x7F)

NO_TIMESTAMP_TYPE = -1
CREATE_TIME = 0
LOG_APPEND_TIME = 1

V2_HEADER = struct.Struct(">qiibIhiqqqhii")
_LEGACY_HEADER = struct.Struct(">qiIbb")
_LONG = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """What can be known of a batch without touching its records.

    Times are milliseconds since 1970, -1 for none, as Kafka writes them. For a compressed
    message of format 0 or 1 `base_offset` is that of its *last* inner message, and
    `records_count` is -1: both need decompression.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes in the file, header included."""
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> int:
        return wrapped_int64(self.base_offset + self.last_offset_delta)

    @property
    def compression_id(self) -> int:
        return self.attributes & COMPRESSION_BITS

    @property
    def timestamp_type(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP_TYPE
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return self.magic == 2 and bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        has_horizon = self.magic == 2 and self.attributes & DELETE_HORIZON_BIT
        return self.base_timestamp_ms if has_horizon else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_VALUE:
            return NO_VALUE
        return wrapped_sequence(self.base_sequence + self.last_offset_delta)

    @property
    def checksum_start(self) -> int:
        """Where the checksummed bytes begin, counted from the start of the batch."""
        return V2_CHECKSUM_START if self.magic == 2 else LEGACY_CHECKSUM_START

    @property
    def checksum(self) -> Callable[..., int]:
        return crc32c if self.magic == 2 else crc32


def wrapped_int64(value: int) -> int:
    """`value` as a signed 64-bit integer that overflowed, as Java's do."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def wrapped_sequence(sequence: int) -> int:
    """Sequence numbers count from 0 to 2147483647 and then from 0 again."""
    return sequence & 0x7FFFFFFF


def read_header(data: BytesLike, position: int) -> BatchHeader:
    """The header at `position`, whose magic is known and whose bytes are all there."""
    if data[position + MAGIC_POSITION] == 2:
        (base, length, epoch, magic, crc, attributes, last_delta, base_ms, max_ms, *producer) = (
            V2_HEADER.unpack_from(data, position)
        )
        return BatchHeader(
            base, length, epoch, magic, crc, attributes, last_delta, base_ms, max_ms, *producer
        )
    offset, length, crc, magic, attributes = _LEGACY_HEADER.unpack_from(data, position)
    timestamp = _LONG.unpack_from(data, position + 18)[0] if magic == 1 else NO_VALUE
    return BatchHeader(
        base_offset=offset,
        length=length,
        leader_epoch=NO_VALUE,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
        producer_id=NO_VALUE,
        producer_epoch=NO_VALUE,
        base_sequence=NO_VALUE,
        records_count=NO_VALUE if attributes & COMPRESSION_BITS else 1,
    )


def computed_crc(data: BytesLike, position: int, header: BatchHeader) -> int:
    """The checksum of the batch's bytes as they are."""
    view = memoryview(data)
    return header.checksum(view[position + header.checksum_start : position + header.size])
