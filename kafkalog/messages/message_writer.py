"""A message's values to bytes, by its schema. Rules: docs/format.md F185 to F187."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from struct import Struct

from kafkalog.errors import SchemaError
from kafkalog.messages.schema import Message, SchemaField, Value, Values
from kafkalog.messages.value_types import (
    ARRAY_LENGTH,
    BYTES_LENGTH,
    FIXED_WIDTH,
    LONGEST_STRING,
    STRING_LENGTH,
    uuid_bytes,
)
from kafkalog.wire.varints import write_unsigned_varint

_NULL_STRUCT, _STRUCT = b"\xff", b"\x01"
_NULL_TAGGED_STRUCT = b"\x00"
_KINDS: dict[str, type] = {"string": str, "uuid": str, "bytes": bytes}


def write_message(message: Message, version: int, values: Values) -> bytes:
    """Return the bytes of a message. Fields that `values` does not name have their defaults.

    Raises SchemaError if the message has no such version, or if a value does not belong to a field
    of the version, or does not fit its field.
    """
    if version not in message.versions:
        raise SchemaError(f"{message.name} has versions {message.versions}, not {version}")
    write = _Writer(version, is_flexible=version in message.flexible)
    return write.fields(message.name, message.fields, values)


class _Writer:
    """The parts that are the same throughout a message."""

    def __init__(self, version: int, *, is_flexible: bool) -> None:
        self._version = version
        self._is_flexible = is_flexible

    def fields(self, owner: str, fields: Sequence[SchemaField], values: Values) -> bytes:
        there = [field for field in fields if self._version in field.versions]
        unknown = set(values) - {field.name for field in there}
        if unknown:
            raise SchemaError(
                f"{owner} has no {', '.join(sorted(unknown))} in version {self._version}"
            )
        given = [
            (field, values[field.name] if field.name in values else field.default(self._version))
            for field in there
        ]
        parts = [self._value(field, value) for field, value in given if field.tag is None]
        if self._is_flexible:
            parts.append(self._tagged([pair for pair in given if pair[0].tag is not None]))
        return b"".join(parts)

    def _tagged(self, given: Iterable[tuple[SchemaField, Value]]) -> bytes:
        """Return the tagged fields that differ from their defaults, by tag."""
        written = sorted(
            (field.tag or 0, self._value(field, value))
            for field, value in given
            if value != field.default(self._version)
        )
        parts = [write_unsigned_varint(len(written))]
        for tag, data in written:
            parts += (write_unsigned_varint(tag), write_unsigned_varint(len(data)), data)
        return b"".join(parts)

    def _value(self, field: SchemaField, value: Value) -> bytes:
        _check_kind(field, value, is_nullable=self._version in field.nullable)
        if field.is_array:
            return self._array(field, value)
        if field.struct is not None:
            return self._struct(field, field.struct, value)
        if field.type == "string":
            return self._string(field, value)
        if field.type == "bytes":
            return self._length(BYTES_LENGTH, value) + (value or b"")
        return uuid_bytes(value) if field.type == "uuid" else _number(field, value)

    def _array(self, field: SchemaField, value: Sequence[Value] | None) -> bytes:
        element = field.element()
        elements = [self._value(element, part) for part in value or ()]
        return self._length(ARRAY_LENGTH, value) + b"".join(elements)

    def _struct(
        self, field: SchemaField, fields: Sequence[SchemaField], value: Values | None
    ) -> bytes:
        is_tagged = field.tag is not None
        if value is None:
            return _NULL_TAGGED_STRUCT if is_tagged else _NULL_STRUCT
        data = self.fields(field.name, fields, value)
        return _STRUCT + data if self._version in field.nullable else data

    def _string(self, field: SchemaField, value: str | None) -> bytes:
        # A half of a surrogate pair becomes a question mark, as Java's encoder has it.
        data = None if value is None else value.encode("utf-8", errors="replace")
        if data is not None and len(data) > LONGEST_STRING:
            raise SchemaError(f"{field.name} is longer than {LONGEST_STRING} bytes")
        return self._length(STRING_LENGTH, data) + (data or b"")

    def _length(self, layout: Struct, value: Sequence[Value] | None) -> bytes:
        length = -1 if value is None else len(value)
        return write_unsigned_varint(length + 1) if self._is_flexible else layout.pack(length)


def _check_kind(field: SchemaField, value: Value, *, is_nullable: bool) -> None:
    kind: type | tuple[type, ...] = _KINDS.get(field.type, (bool, int, float))
    if field.is_array:
        kind = list
    elif field.struct is not None:
        kind = dict
    if not (is_nullable if value is None else isinstance(value, kind)):
        many = "array of " if field.is_array else ""
        raise SchemaError(f"{field.name} is {many}{field.type} and cannot be {value!r}")


def _number(field: SchemaField, value: Value) -> bytes:
    try:
        return FIXED_WIDTH[field.type].pack(value)
    except struct.error as error:
        raise SchemaError(f"{field.name} is {field.type} and cannot be {value!r}") from error
