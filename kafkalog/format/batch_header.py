"""The header of a batch: 61 bytes of a record batch v2, or the head of a message v0 or v1.

A message of the old formats is a batch of its own; compressed, it wraps an inner message set.
Rules: docs/format.md F10 to F15 and F40 to F44.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct, calcsize

from kafkalog.wire import BytesLike
from kafkalog.wire.checksums import crc32, crc32c


class Layout:
    """Big-endian fields in sequence. Declare each once, in order: `field` returns where the field
    begins, and `struct` reads and writes all of them."""

    def __init__(self) -> None:
        self._codes = ">"

    def field(self, code: str) -> int:
        """Add a field, by its code in module `struct`, and return its position."""
        position = calcsize(self._codes)
        self._codes += code
        return position

    @property
    def struct(self) -> Struct:
        return Struct(self._codes)

    @property
    def size(self) -> int:
        """Return the bytes of all fields declared so far."""
        return calcsize(self._codes)


# RecordBatch of format 2 (org.apache.kafka.common.record.DefaultRecordBatch):
_batch = Layout()
BASE_OFFSET_POSITION = _batch.field("q")  # BaseOffset => Int64
LENGTH_POSITION = _batch.field("i")  # Length => Int32
LEADER_EPOCH_POSITION = _batch.field("i")  # PartitionLeaderEpoch => Int32
MAGIC_POSITION = _batch.field("b")  # Magic => Int8
CRC_POSITION = _batch.field("I")  # CRC => Uint32
ATTRIBUTES_POSITION = _batch.field("h")  # Attributes => Int16
LAST_OFFSET_DELTA_POSITION = _batch.field("i")  # LastOffsetDelta => Int32
BASE_TIMESTAMP_POSITION = _batch.field("q")  # BaseTimestamp => Int64
MAX_TIMESTAMP_POSITION = _batch.field("q")  # MaxTimestamp => Int64
PRODUCER_ID_POSITION = _batch.field("q")  # ProducerId => Int64
PRODUCER_EPOCH_POSITION = _batch.field("h")  # ProducerEpoch => Int16
BASE_SEQUENCE_POSITION = _batch.field("i")  # BaseSequence => Int32
RECORDS_COUNT_POSITION = _batch.field("i")  # Records => [Record]: their count
V2_HEADER = _batch.struct
V2_HEADER_BYTES = V2_HEADER.size

# Message of format 0 and 1 in its log entry (org.apache.kafka.common.record.LegacyRecord):
_message = Layout()
_message.field("q")  # Offset => Int64
_message.field("i")  # Size => Int32
LEGACY_CRC_POSITION = _message.field("I")  # Crc => Uint32
_message.field("b")  # Magic => Int8
LEGACY_ATTRIBUTES_POSITION = _message.field("b")  # Attributes => Int8
_V0_HEADER = _message.struct
LEGACY_TIMESTAMP_POSITION = _message.field("q")  # Timestamp => Int64, in format 1 only
_V1_HEADER = _message.struct
# Key => Bytes, Value => Bytes: each after its length, Int32, -1 for null.
FIELD_LENGTH_BYTES = 4
LEGACY_FIELDS_START = (_V0_HEADER.size, _V1_HEADER.size)

LOG_OVERHEAD = LEADER_EPOCH_POSITION  # base offset and length, which the length does not count
FIRST_BYTES = CRC_POSITION  # up to the magic, which is enough to know the format
LENGTH_AND_MAGIC = Struct(f">{LENGTH_POSITION}xi{MAGIC_POSITION - LEADER_EPOCH_POSITION}xb")
V2_CHECKSUM_START = ATTRIBUTES_POSITION
LEGACY_CHECKSUM_START = MAGIC_POSITION
NO_VALUE = -1

# What the length field holds at least, by magic.
LEAST_LENGTH = (
    *(start + 2 * FIELD_LENGTH_BYTES - LOG_OVERHEAD for start in LEGACY_FIELDS_START),
    V2_HEADER_BYTES - LOG_OVERHEAD,
)
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


def read_base_offset(data: BytesLike, position: int = 0) -> int:
    """Read the first field of the batch at `position`, which need not be a whole one."""
    field = data[position + BASE_OFFSET_POSITION : position + LENGTH_POSITION]
    return int.from_bytes(field, "big", signed=True)


def read_length(data: BytesLike, position: int = 0) -> int:
    """Read the length of the batch at `position`, which need not be a whole one."""
    field = data[position + LENGTH_POSITION : position + LOG_OVERHEAD]
    return int.from_bytes(field, "big", signed=True)


def read_header(data: BytesLike, position: int) -> BatchHeader:
    """Read the header at `position`, whose magic is known and whose bytes are all there."""
    magic = data[position + MAGIC_POSITION]
    if magic == 2:
        return BatchHeader(*V2_HEADER.unpack_from(data, position))
    struct = _V1_HEADER if magic == 1 else _V0_HEADER
    offset, length, crc, _, attributes, *timestamps = struct.unpack_from(data, position)
    timestamp = timestamps[0] if timestamps else NO_VALUE
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
    """Return the checksum of the batch's bytes as they are."""
    view = memoryview(data)
    return header.checksum(view[position + header.checksum_start : position + header.size])
