"""The prefix that Confluent's serializers put before a payload. Rules: docs/format.md F285, F286,
F293."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from kafkalog.errors import CorruptDataError
from kafkalog.messages.payload_formats import GUID_PREFIX_BYTES, ID_PREFIX_BYTES, Magic
from kafkalog.wire.varints import VarintError, read_varint, write_varint

_FAULT = "malformed"


@dataclass(frozen=True, slots=True)
class SchemaPrefix:
    """The prefix of a payload, or the value of its header: a schema's id or its GUID.

    `size` is the number of its bytes, including Protobuf's message indexes.
    """

    schema_id: int | None
    guid: UUID | None
    message_indexes: tuple[int, ...] | None
    size: int


def read_schema_prefix(data: bytes, *, with_message_indexes: bool = False) -> SchemaPrefix:
    """Read the prefix of a payload, or the whole value of a header that names a schema.

    Set `with_message_indexes` for Protobuf. Raises CorruptDataError if the bytes are not such a
    prefix.
    """
    if not data:
        raise _corrupt("empty, without a schema id", 0)
    if data[0] not in tuple(Magic):
        raise _corrupt(f"not a schema id: the first byte is {data[0]:02X}, not 00", 0)
    size = ID_PREFIX_BYTES if data[0] == Magic.SCHEMA_ID else GUID_PREFIX_BYTES
    if len(data) < size:
        raise _corrupt(f"{len(data)} bytes, shorter than a schema id's prefix", len(data))
    schema_id = guid = indexes = None
    if data[0] == Magic.SCHEMA_ID:
        schema_id = int.from_bytes(data[1:size], "big", signed=True)
    else:
        guid = UUID(bytes=data[1:size])
    if with_message_indexes:
        indexes, indexes_size = _read_message_indexes(data, size)
        size += indexes_size
    return SchemaPrefix(schema_id, guid, indexes, size)


def write_message_indexes(indexes: Sequence[int]) -> bytes:
    """Return the path to a message in its .proto file, from the bytes after the schema's id."""
    if tuple(indexes) == (0,):
        return b"\0"
    return b"".join(write_varint(number) for number in (len(indexes), *indexes))


def _read_message_indexes(data: bytes, position: int) -> tuple[tuple[int, ...], int]:
    try:
        count, size = read_varint(data, position, len(data))
        # Each index has a byte at least.
        if not 0 <= count <= len(data) - position - size:
            raise _corrupt(f"{count} message indexes", position)
        indexes = []
        for _ in range(count):
            index, index_size = read_varint(data, position + size, len(data))
            indexes.append(index)
            size += index_size
    except VarintError as error:
        raise _corrupt(f"message indexes: {error}", position) from error
    return tuple(indexes) or (0,), size


def _corrupt(detail: str, position: int) -> CorruptDataError:
    return CorruptDataError(_FAULT, detail, position=position)
