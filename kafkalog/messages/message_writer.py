"""A message's values to bytes, by its schema. Rules: docs/format.md F185 to F187."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from struct import Struct
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class Outside(Protocol):
    """A value of type bytes that is not in memory; its length is known."""

    def __len__(self) -> int: ...

    def read(self) -> bytes:
        """Return the bytes."""
        ...


Part = bytes | Outside
_KINDS: dict[str, type | tuple[type, ...]] = {"string": str, "uuid": str, "bytes": (bytes, Outside)}


def write_message(message: Message, version: int, values: Values) -> bytes:
    """Return the bytes of a message. Fields that `values` does not name have their defaults.

    Raises SchemaError if the message has no such version, or if a value does not belong to a field
    of the version, or does not fit its field.
    """
    parts = _Writer(message, version).parts(values)
    return b"".join(part if isinstance(part, bytes) else part.read() for part in parts)


def message_parts(message: Message, version: int, values: Values) -> list[Part]:
    """Return the same in pieces: what is not in memory is not read.

    Values of fields that only other versions have are left out. Raises SchemaError otherwise as
    `write_message` does.
    """
    parts = _Writer(message, version, is_for_any_version=True).parts(values)
    joined: list[Part] = []
    held: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            held.append(part)
        else:
            joined += (b"".join(held), part)
            held.clear()
    return [*joined, b"".join(held)]


@cache
def _fields_in(
    fields: Sequence[SchemaField], version: int
) -> tuple[tuple[SchemaField, ...], tuple[SchemaField, ...], frozenset[str]]:
    """Return the fields that a version has: those without a tag, those with one, and the names of
    all."""
    there = [field for field in fields if version in field.versions]
    return (
        tuple(field for field in there if field.tag is None),
        tuple(field for field in there if field.tag is not None),
        frozenset(field.name for field in there),
    )


class _Writer:
    """Writes one message, its pieces in their order."""

    def __init__(self, message: Message, version: int, *, is_for_any_version: bool = False) -> None:
        if version not in message.versions:
            raise SchemaError(f"{message.name} has versions {message.versions}, not {version}")
        self._message = message
        self._version = version
        self._is_flexible = version in message.flexible
        self._is_for_any_version = is_for_any_version
        self._parts: list[Part] = []

    def parts(self, values: Values) -> list[Part]:
        """Return the message's pieces."""
        self._fields(self._message.name, self._message.fields, values)
        return self._parts

    def _fields(self, owner: str, fields: Sequence[SchemaField], values: Values) -> None:
        version = self._version
        plain, tagged, names = _fields_in(fields, version)
        if not names >= values.keys():
            self._check_names(owner, fields, values, names)
        for field in plain:
            name = field.name
            self._value(field, values[name] if name in values else field.default(version))
        if self._is_flexible:
            self._tagged((field, values[field.name]) for field in tagged if field.name in values)

    def _check_names(
        self, owner: str, fields: Sequence[SchemaField], values: Values, names: frozenset[str]
    ) -> None:
        known = {field.name for field in fields} if self._is_for_any_version else names
        unknown = values.keys() - known
        if unknown:
            raise SchemaError(
                f"{owner} has no {', '.join(sorted(unknown))} in version {self._version}"
            )

    def _tagged(self, given: Iterable[tuple[SchemaField, Value]]) -> None:
        """Write the tagged fields that differ from their defaults, by tag."""
        before, written = self._parts, []
        for field, value in given:
            if value != field.default(self._version):
                self._parts = []
                self._value(field, value)
                written.append((field.tag or 0, self._parts))
        self._parts = before
        self._parts.append(write_unsigned_varint(len(written)))
        for tag, parts in sorted(written, key=lambda pair: pair[0]):
            size = sum(map(len, parts))
            self._parts += (write_unsigned_varint(tag), write_unsigned_varint(size), *parts)

    def _value(self, field: SchemaField, value: Value) -> None:
        _check_kind(field, value, is_nullable=self._version in field.nullable)
        if field.is_array:
            self._array(field, value)
        elif field.struct is not None:
            self._struct(field, field.struct, value)
        elif field.type == "string":
            self._string(field, value)
        elif field.type == "bytes":
            self._parts.append(self._length(BYTES_LENGTH, value))
            if value is not None and len(value):
                self._parts.append(value)
        else:
            self._parts.append(uuid_bytes(value) if field.type == "uuid" else _number(field, value))

    def _array(self, field: SchemaField, value: Sequence[Value] | None) -> None:
        self._parts.append(self._length(ARRAY_LENGTH, value))
        element = _element(field)
        for part in value or ():
            self._value(element, part)

    def _struct(
        self, field: SchemaField, fields: Sequence[SchemaField], value: Values | None
    ) -> None:
        if value is None:
            is_tagged = field.tag is not None
            self._parts.append(_NULL_TAGGED_STRUCT if is_tagged else _NULL_STRUCT)
            return
        if self._version in field.nullable:
            self._parts.append(_STRUCT)
        self._fields(field.name, fields, value)

    def _string(self, field: SchemaField, value: str | None) -> None:
        # A half of a surrogate pair becomes a question mark, as Java's encoder has it.
        data = None if value is None else value.encode("utf-8", errors="replace")
        if data is not None and len(data) > LONGEST_STRING:
            raise SchemaError(f"{field.name} is longer than {LONGEST_STRING} bytes")
        self._parts.append(self._length(STRING_LENGTH, data) + (data or b""))

    def _length(self, layout: Struct, value: Sequence[Value] | Outside | None) -> bytes:
        length = -1 if value is None else len(value)
        return write_unsigned_varint(length + 1) if self._is_flexible else layout.pack(length)


@cache
def _element(field: SchemaField) -> SchemaField:
    return field.element()


def _check_kind(field: SchemaField, value: Value, *, is_nullable: bool) -> None:
    kind = _KINDS.get(field.type, (bool, int, float))
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
