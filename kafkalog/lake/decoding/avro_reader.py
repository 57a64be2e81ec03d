"""Avro's binary encoding, read as the values that Arrow takes for a column.

Libraries for Avro take bytes that are not of the schema: a branch of a union or a symbol counted
from the end, a long of 13 bytes. Here a payload is of its schema, or it is none
(docs/decisions/0075). Rules: docs/decoding.md F1270 and F1271.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kafkalog.errors import SchemaError
from kafkalog.lake.decoding.avro_types import RECORDS, AvroSchema, full_name, is_null
from kafkalog.wire.varints import VARINT_BYTES, VARLONG_BYTES

# Takes a payload and a position in it; returns a value and the position behind it.
Read = Callable[[bytes, int], tuple[Any, int]]
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_NUMBERS = ("int", "long", "float", "double")
_TEXTS = ("bytes", "string")
_PROMOTED = {"int": _NUMBERS[1:], "long": _NUMBERS[2:], "float": _NUMBERS[3:]}
_MILLIS = ("timestamp-millis", "local-timestamp-millis")
_FAULTS = (IndexError, ValueError, OverflowError, RecursionError, struct.error)


class NotAvroError(ValueError):
    """Bytes that are not a value of the schema."""


class AvroReader:
    """Reads payloads that one schema has written as values of another."""

    def __init__(self, writer: str, reader: str) -> None:
        """Raises SchemaError for a text that is not a schema, and for a type of no column."""
        schemas = AvroSchema(writer), AvroSchema(reader)
        self.spark_type = schemas[1].spark_type()
        try:
            self._read = _Resolver(*schemas).read(schemas[0].root, schemas[1].root)
        except (AttributeError, TypeError, KeyError, RecursionError) as error:
            raise SchemaError(f"not an Avro schema: {error!r}") from error

    def value(self, payload: bytes) -> Any:
        """Return the value of a payload: records as dictionaries, maps as pairs, times as numbers.

        Raises NotAvroError unless the payload is one value as a whole.
        """
        try:
            value, end = self._read(payload, 0)
        except _FAULTS as error:
            raise NotAvroError(str(error)) from error
        if end != len(payload):
            raise NotAvroError(f"{len(payload) - end} bytes after the value")
        return value


def _varint(data: bytes, at: int, longest: int) -> tuple[int, int]:
    value = shift = 0
    end = at + longest
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise NotAvroError(f"a number of more than {longest} bytes")


def _int(data: bytes, at: int) -> tuple[int, int]:
    return _varint(data, at, VARINT_BYTES)


def _long(data: bytes, at: int) -> tuple[int, int]:
    return _varint(data, at, VARLONG_BYTES)


def _null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    # Java's reader takes all but 1 for false.
    return data[at] == 1, at + 1


def _float(data: bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, at)[0], at + _FLOAT.size


def _double(data: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + _DOUBLE.size


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    return _some(data, at, size)


def _some(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if not at <= end <= len(data):
        raise NotAvroError(f"{size} bytes, where {len(data) - at} are left")
    return data[at:end], end


def _string(data: bytes, at: int) -> tuple[str, int]:
    text, at = _bytes(data, at)
    return text.decode(), at


_PRIMITIVES: Mapping[str, Read] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


def _changed(read: Read, change: Callable[[Any], Any]) -> Read:
    def changed(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read(data, at)
        return change(value), at

    return changed


def _mismatch(data: bytes, at: int) -> tuple[Any, int]:
    raise NotAvroError("its type is not the reader's")


def _fixed(size: int) -> Read:
    return lambda data, at: _some(data, at, size)


def _blocks(read: Read) -> Read:
    """Return what reads the items of an array, or the pairs of a map, in their blocks."""

    def items(data: bytes, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        while True:
            count, at = _long(data, at)
            if not count:
                return found, at
            if count < 0:
                _, at = _long(data, at)
                count = -count
            if count > len(data) - at:
                raise NotAvroError(f"{count} items in {len(data) - at} bytes")
            for _ in range(count):
                item, at = read(data, at)
                found.append(item)

    return items


def _pair(read: Read) -> Read:
    def pair(data: bytes, at: int) -> tuple[tuple[str, Any], int]:
        key, at = _string(data, at)
        value, at = read(data, at)
        return (key, value), at

    return pair


class _Resolver:
    """Makes the reader of one schema's bytes into another's values, by Avro's schema resolution."""

    def __init__(self, writer: AvroSchema, reader: AvroSchema) -> None:
        self._writer, self._reader = writer, reader
        self._records: dict[tuple[str, str], Read] = {}

    def read(self, writer: Any, reader: Any) -> Read:
        """Return what reads a value of the writer's schema as one of the reader's."""
        writer, reader = self._writer.resolved(writer), self._reader.resolved(reader)
        if isinstance(writer, list):
            return self._from_union([self.read(branch, reader) for branch in writer])
        if isinstance(reader, list):
            return self._into_union(writer, reader)
        kind = writer["type"]
        if not _fits(writer, reader):
            return _mismatch
        if kind in RECORDS:
            return self._record(writer, reader)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            if kind == "array" and not self._takes_bytes(writer[part], ()):
                raise SchemaError("an array of items without bytes, whose number nothing limits")
            inner = self.read(writer[part], reader[part])
            return _blocks(inner if kind == "array" else _pair(inner))
        return _with_logical_type(_plain(writer, reader), reader)

    def _from_union(self, reads: Sequence[Read]) -> Read:
        def read(data: bytes, at: int) -> tuple[Any, int]:
            branch, at = _long(data, at)
            if branch < 0:
                raise NotAvroError(f"branch {branch} of a union")
            return reads[branch](data, at)

        return read

    def _into_union(self, writer: Any, union: Sequence[Any]) -> Read:
        branches = [self._reader.resolved(branch) for branch in union]
        for fits in (_is_same, _fits):
            for branch in branches:
                if not isinstance(branch, list) and fits(writer, branch):
                    return self._member(self.read(writer, branch), branch, branches)
        return _mismatch

    def _member(self, read: Read, branch: Any, branches: Sequence[Any]) -> Read:
        others = self._reader.branches(branches)
        if is_null(branch) or len(others) == 1 or self._reader.wider_number(others) is not None:
            return read
        name = f"member{others.index(branch)}"
        return _changed(read, lambda value: {name: value})

    def _record(self, writer: Any, reader: Any) -> Read:
        names = full_name(writer), full_name(reader)
        if names not in self._records:
            # Inside of itself a record is read by what is made only now.
            self._records[names] = lambda data, at: made(data, at)
            made = self._fields(writer, reader)
            self._records[names] = made
        return self._records[names]

    def _fields(self, writer: Any, reader: Any) -> Read:
        read_as: dict[str, Any] = {}
        for field in reader["fields"]:
            for name in (field["name"], *field.get("aliases", ())):
                read_as.setdefault(name, field)
        skipping = _Resolver(self._writer, self._writer)
        steps: list[tuple[str | None, Read]] = []
        for field in writer["fields"]:
            target = read_as.get(field["name"])
            if target is None:
                steps.append((None, skipping.read(field["type"], field["type"])))
            else:
                steps.append((target["name"], self.read(field["type"], target["type"])))
        written = {name for name, _ in steps}
        missing = [field for field in reader["fields"] if field["name"] not in written]
        if any("default" not in field for field in missing):
            return _mismatch
        defaults = {each["name"]: self._default(each["type"], each["default"]) for each in missing}

        def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            found = dict(defaults)
            for name, read_field in steps:
                value, at = read_field(data, at)
                if name is not None:
                    found[name] = value
            return found, at

        return read

    def _default(self, given: Any, value: Any) -> Any:
        """Return the value of a default, which is in JSON."""
        schema = self._reader.resolved(given)
        if isinstance(schema, list):
            branches = [self._reader.resolved(branch) for branch in schema]
            branch = next((each for each in branches if is_null(each) == (value is None)), None)
            if branch is None:
                raise SchemaError(f"the default {value!r} is of no branch of its union")
            inner = self._default(branch, value)
            return self._member(lambda data, at: (inner, at), branch, branches)(b"", 0)[0]
        kind = schema["type"]
        if kind in RECORDS:
            return {
                each["name"]: self._default(
                    each["type"], value.get(each["name"], each.get("default"))
                )
                for each in schema["fields"]
            }
        if kind == "array":
            return [self._default(schema["items"], each) for each in value]
        if kind == "map":
            return [(key, self._default(schema["values"], each)) for key, each in value.items()]
        if kind in ("bytes", "fixed"):
            value = value.encode("latin-1")
        return _with_logical_type(lambda data, at: (value, at), schema)(b"", 0)[0]

    def _takes_bytes(self, given: Any, outer: tuple[str, ...]) -> bool:
        schema = self._writer.resolved(given)
        if isinstance(schema, list):
            return True
        if schema["type"] in RECORDS:
            name = full_name(schema)
            return name in outer or any(
                self._takes_bytes(field["type"], (*outer, name)) for field in schema["fields"]
            )
        return not is_null(schema) and schema.get("size") != 0


def _is_same(writer: Any, reader: Any) -> bool:
    """Return whether types have one kind, and one name where they have names."""
    if writer["type"] != reader["type"]:
        return False
    return "name" not in writer or full_name(writer) == full_name(reader)


def _fits(writer: Any, reader: Any) -> bool:
    """Return whether values of a type can become values of another, by Avro's rules."""
    kind, into = writer["type"], reader["type"]
    if kind in ("enum", "fixed") and kind == into:
        names = {full_name(reader), *reader.get("aliases", ())}
        return full_name(writer) in names and writer.get("size") == reader.get("size")
    both_texts = kind in _TEXTS and into in _TEXTS
    return kind == into or into in _PROMOTED.get(kind, ()) or both_texts


def _plain(writer: Any, reader: Any) -> Read:
    """Return what reads a type without parts, as the type that it becomes."""
    kind, into = writer["type"], reader["type"]
    if kind == "fixed":
        return _fixed(writer["size"])
    if kind == "enum":
        return _symbols(writer["symbols"], reader)
    read = _PRIMITIVES[into if kind in _TEXTS else kind]
    return _changed(read, float) if into in ("float", "double") and kind != into else read


def _symbols(written: Sequence[str], reader: Any) -> Read:
    known = [name if name in reader["symbols"] else reader.get("default") for name in written]

    def read(data: bytes, at: int) -> tuple[str, int]:
        place, at = _int(data, at)
        symbol = known[place] if place >= 0 else None
        if symbol is None:
            raise NotAvroError(f"no symbol {place}")
        return symbol, at

    return read


def _with_logical_type(read: Read, schema: Any) -> Read:
    logical = schema.get("logicalType")
    if schema["type"] == "long" and logical in _MILLIS:
        return _changed(read, lambda value: value * 1000)
    if schema["type"] in ("bytes", "fixed") and logical == "decimal":
        scale = schema.get("scale", 0)
        return _changed(read, lambda value: _decimal(value, scale))
    return read


def _decimal(value: bytes, scale: int) -> Decimal:
    return Decimal(f"{int.from_bytes(value, 'big', signed=True)}E{-scale}")
