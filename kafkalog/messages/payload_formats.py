"""The formats of keys and values: everything that is known before a payload is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

SCHEMA_ID_BYTES = 4
ID_PREFIX_BYTES = 1 + SCHEMA_ID_BYTES
GUID_PREFIX_BYTES = 1 + 16


class Magic(IntEnum):
    """The first byte of Confluent's prefix: what names the schema (F285, F286)."""

    SCHEMA_ID = 0
    SCHEMA_GUID = 1


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Text in UTF-8."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """One JSON value; `type_json` is the type that it becomes, in Spark's JSON form."""

    type_json: str


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """Avro's binary encoding, written by one schema and read into another, each as JSON.

    With `is_raw` the payload is itself the value, of Avro's type bytes (F291).
    """

    writer: str
    reader: str
    is_raw: bool = False


@dataclass(frozen=True, slots=True)
class ProtobufFormat:
    """A Protobuf message, by its full name in a compiled descriptor set."""

    message: str
    descriptor: bytes


SchemaFormat = TextFormat | JsonFormat | AvroFormat | ProtobufFormat


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """How to read payloads with one schema id; `opening` is between the id and the payload."""

    schema_id: int
    format: SchemaFormat
    opening: bytes = b""


@dataclass(frozen=True, slots=True)
class ConfluentFormat:
    """Payloads after Confluent's prefix, each read with the schema that its id names.

    There is at least one use, and all return values of one type. `refused` has the ids whose schema
    cannot be used, with the reason; all others are unknown. `read_as` is the schema id that all are
    read as, None for a schema that was given.
    """

    uses: Sequence[SchemaUse]
    refused: Mapping[int, str]
    read_as: int | None = None


PayloadFormat = SchemaFormat | ConfluentFormat
