"""Protobuf messages as the values that Arrow takes for a column, with Google's own library.

The columns are those of Spark's from_protobuf, as the job has it. Rules: docs/decoding.md F1343 and
F1344.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

from kafkalog.errors import SchemaError
from kafkalog.extras import missing_extras_named
from kafkalog.words import name_suggestions

# By the numbers of FieldDescriptorProto.Type; those of messages and groups are MESSAGES.
_MESSAGES, _ENUM = (10, 11), 14
_TYPES = {
    1: "double",
    2: "float",
    3: "long",
    4: "decimal(20,0)",
    5: "integer",
    6: "long",
    7: "integer",
    8: "boolean",
    9: "string",
    12: "binary",
    13: "long",
    15: "integer",
    16: "long",
    17: "integer",
    18: "long",
}
# Unsigned numbers that Spark has as signed ones of the same bits.
_WRAPPED = {6: 64, 7: 32}
_TEXT = 9
_DURATION = "interval day to second"
Read = Callable[[Any], Any]


class NotProtobufError(ValueError):
    """Bytes that are not a message of the schema."""


class ProtobufReader:
    """Reads payloads that are one message each."""

    def __init__(self, message: str, descriptor_set: bytes) -> None:
        """`message` is its full name, or its name without the package. Raises SchemaError for bytes
        that are not a descriptor set, a message that it does not have, and one of no column;
        MissingExtraError."""
        with missing_extras_named():
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
            from google.protobuf.message import DecodeError
        pool = descriptor_pool.DescriptorPool()
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file
            for file in files:
                pool.Add(file)
            found = pool.FindMessageTypeByName(_full_name(message, files))
        except KeyError:
            names = [*_message_names(files)]
            known = name_suggestions([message], names) if names else "it is empty"
            raise SchemaError(f"it has no message {message}: {known}") from None
        except (DecodeError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise SchemaError(f"not a descriptor set with all imports: {reason}") from error
        self._class = message_factory.GetMessageClass(found)
        self._faults = (DecodeError, UnicodeDecodeError)
        column = _struct(found, ())
        if column is None:
            raise SchemaError(f"message {message} has no field that a column can hold")
        self.spark_type, self._read = column.spark_type, column.read

    def value(self, payload: bytes) -> Any:
        """Return the value of a payload: messages as dictionaries, maps as pairs, times as numbers.

        Raises NotProtobufError for other bytes.
        """
        try:
            message = self._class.FromString(payload)
            if not message.IsInitialized():
                raise NotProtobufError("a required field is missing")
            return self._read(message)
        except self._faults as error:
            raise NotProtobufError(str(error)) from error


class _Column(NamedTuple):
    """A type in the JSON form of Spark's types, and what reads its values."""

    spark_type: Any
    read: Read


def _struct(descriptor: Any, outer: tuple[str, ...]) -> _Column | None:
    """Return the column of a message, None of one without fields."""
    if descriptor.full_name in outer:
        raise SchemaError(f"message {descriptor.full_name} is within itself: no column holds it")
    outer = (*outer, descriptor.full_name)
    columns = {
        field: column for field in descriptor.fields if (column := _field(field, outer)) is not None
    }
    if not columns:
        return None
    check = _field_check(descriptor)
    places = [(field.number, field.name, each.read) for field, each in columns.items()]
    absent = {field.name: _absent(field, each.read) for field, each in columns.items()}

    def read(message: Any) -> dict[str, Any]:
        check(message)
        given = {field.number: value for field, value in message.ListFields()}
        row = dict(absent)
        for number, name, read_value in places:
            if number in given:
                row[name] = read_value(given[number])
        return row

    fields = [_part(field.name, each.spark_type) for field, each in columns.items()]
    return _Column({"type": "struct", "fields": fields}, read)


def _field_check(descriptor: Any) -> Callable[[Any], None]:
    """Return what raises NotProtobufError for a message with a field that is not of its type: the
    library passes over those of another wire type, over numbers that a closed enum does not have,
    and over entries of maps with more than a key and a value."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    own = frozenset(field.number for field in descriptor.fields)

    def check(message: Any) -> None:
        for unknown in UnknownFieldSet(message):
            if unknown.field_number in own:
                raise NotProtobufError(f"field {unknown.field_number} is of another type")

    return check


def _field(field: Any, outer: tuple[str, ...]) -> _Column | None:
    is_map = field.type in _MESSAGES and field.message_type.GetOptions().map_entry
    if is_map:
        key, value = (_one(field.message_type.fields_by_name[name], outer) for name in _ENTRY)
        return None if key is None or value is None else _map(key, value)
    column = _one(field, outer)
    if column is None or not field.is_repeated:
        return column
    array = {"type": "array", "elementType": column.spark_type, "containsNull": True}
    return _Column(array, lambda values: [column.read(each) for each in values])


_ENTRY = ("key", "value")


def _map(key: _Column, value: _Column) -> _Column:
    kinds = {"keyType": key.spark_type, "valueType": value.spark_type}

    # The library has maps in no order of their own.
    def read(values: Any) -> list[tuple[Any, Any]]:
        pairs = [(key.read(each), value.read(found)) for each, found in values.items()]
        return sorted(pairs, key=itemgetter(0))

    return _Column({"type": "map", **kinds, "valueContainsNull": True}, read)


def _one(field: Any, outer: tuple[str, ...]) -> _Column | None:
    """Return the column of one value of a field."""
    if field.type in _MESSAGES:
        names = [each.name for each in field.message_type.fields]
        if names == ["seconds", "nanos"] and field.message_type.name in ("Timestamp", "Duration"):
            is_time = field.message_type.name == "Timestamp"
            check = _field_check(field.message_type)
            return _Column("timestamp" if is_time else _DURATION, _micros(check))
        return _struct(field.message_type, outer)
    if field.type == _ENUM:
        return _Column("string", _enum_names(field.enum_type))
    bits = _WRAPPED.get(field.type)
    same = _text if field.type == _TEXT else _same
    return _Column(_TYPES[field.type], same if bits is None else _wrapping(bits))


def _absent(field: Any, read: Read) -> Any:
    """Return the value of a field that a message does not have."""
    if field.is_repeated:
        return []
    return read(field.default_value) if field.has_default_value else None


def _micros(check: Callable[[Any], None]) -> Read:
    def micros(value: Any) -> int:
        check(value)
        return int(value.seconds * 1_000_000 + int(value.nanos / 1000))

    return micros


def _enum_names(enum: Any) -> Read:
    # Of several names for a number the first that the file has.
    names = {value.number: value.name for value in reversed(enum.values)}
    return lambda number: names.get(number) or f"UNKNOWN_ENUM_VALUE_{enum.name}_{number}"


def _text(value: Any) -> Any:
    # The library has bytes where a file of proto2 allows any.
    if isinstance(value, bytes):
        raise NotProtobufError("a text is not UTF-8")
    return value


def _same(value: Any) -> Any:
    return value


def _wrapping(bits: int) -> Read:
    half = 1 << (bits - 1)
    return lambda number: (number + half) % (2 * half) - half


def _part(name: str, spark_type: Any) -> dict[str, Any]:
    return {"name": name, "type": spark_type, "nullable": True, "metadata": {}}


def _full_name(message: str, files: Iterable[Any]) -> str:
    """Return the full name of a message that is given without its package, as Spark takes it."""
    found = (
        f"{file.package}.{message}"
        for file in files
        if file.package and any(each.name == message for each in file.message_type)
    )
    return next(found, message)


def _message_names(files: Iterable[Any]) -> Iterable[str]:
    """Yield the full names of all messages of files."""
    for file in files:
        left = [(file.package, each) for each in file.message_type]
        while left:
            scope, message = left.pop()
            name = f"{scope}.{message.name}" if scope else message.name
            yield name
            left += [(name, each) for each in message.nested_type]
