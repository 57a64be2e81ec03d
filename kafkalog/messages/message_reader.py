"""Bytes to a message's values, by its schema. Rules: docs/format.md F185 to F187.

A schema becomes a reader once for each version: functions `(data, position) -> (value, position)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct, unpack_from
from typing import NamedTuple

from kafkalog.errors import CorruptDataError, SchemaError
from kafkalog.messages.schema import Message, SchemaField, Value, Values
from kafkalog.messages.value_types import (
    ARRAY_LENGTH,
    BYTES_LENGTH,
    FIXED_WIDTH,
    LONGEST_STRING,
    STRING_LENGTH,
    UUID_BYTES,
    uuid_text,
)
from kafkalog.wire.java_text import decoded
from kafkalog.wire.varints import VARINT_BYTES, VarintError, read_unsigned_varint

MESSAGE_TRUNCATED = "truncated"
MESSAGE_MALFORMED = "malformed"

_Reader = Callable[[bytes, int], tuple[Value, int]]
_LengthReader = Callable[[bytes, int], tuple[int, int]]
_NULL_LENGTH = -1


class _Form(NamedTuple):
    """How a version is written. `limit`, if there is one, gets the number of values in an array
    and its position before they are read."""

    version: int
    is_flexible: bool
    limit: Callable[[int, int], None] | None = None


def read_message(
    message: Message,
    version: int,
    data: bytes,
    position: int = 0,
    *,
    most_values: int | None = None,
) -> tuple[Values, int]:
    """Return the values of all fields that the version has, and the position after the message.

    Missing tagged fields have their defaults; unknown ones are skipped. A value takes far more
    memory than the byte that stands for it: `most_values` limits the numbers, texts, structs and
    fields of structs that arrays have in all. Raises CorruptDataError (`truncated` or `malformed`,
    with the position in `data`), SchemaError if the message has no such version.
    """
    if version not in message.versions:
        raise SchemaError(f"{message.name} has versions {message.versions}, not {version}")
    if most_values is None:
        values, position = _message_reader(message, version)(data, position)
        return values, position
    form = _Form(version, version in message.flexible, _counter(most_values))
    values, position = _struct_reader(message.fields, form)(data, position)
    return values, position


def _counter(most_values: int) -> Callable[[int, int], None]:
    """Return a function that counts values, and raises CorruptDataError if there are too many."""
    left = most_values

    def count(values: int, position: int) -> None:
        nonlocal left
        left -= values
        if left < 0:
            raise _malformed(f"more than {most_values} values in arrays", position)

    return count


def _truncated(detail: str, position: int) -> CorruptDataError:
    return CorruptDataError(MESSAGE_TRUNCATED, detail, position=position)


def _malformed(detail: str, position: int) -> CorruptDataError:
    return CorruptDataError(MESSAGE_MALFORMED, detail, position=position)


@cache
def _message_reader(message: Message, version: int) -> _Reader:
    return _struct_reader(message.fields, _Form(version, version in message.flexible))


def _struct_reader(fields: Sequence[SchemaField], form: _Form) -> _Reader:
    version, is_flexible, limit = form
    there = [field for field in fields if version in field.versions]
    plain = tuple((field.name, _field_reader(field, form)) for field in there if field.tag is None)
    tagged = {
        field.tag: (field, _field_reader(field, form)) for field in there if field.tag is not None
    }

    def read(data: bytes, position: int) -> tuple[Values, int]:
        values: Values = {}
        for name, read_field in plain:
            values[name], position = read_field(data, position)
        if is_flexible:
            for field, _ in tagged.values():
                values[field.name] = field.default(version)
            position = _read_tagged(data, position, tagged, values, limit)
        return values, position

    return read


def _read_tagged(
    data: bytes,
    position: int,
    known: dict[int, tuple[SchemaField, _Reader]],
    values: Values,
    limit: Callable[[int, int], None] | None,
) -> int:
    count, position = read_uvarint(data, position)
    # Each has a tag and a size of a byte at least.
    if count > (len(data) - position) // 2:
        raise _truncated(f"{count} tagged fields, {len(data) - position} bytes are left", position)
    if count and limit is not None:
        limit(count, position)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        end = position + size
        if end > len(data):
            raise _truncated(f"tagged field {tag} of {size} bytes", position)
        if tag in known:
            field, read_field = known[tag]
            values[field.name], reached = read_field(data, position)
            if reached != end:
                detail = (
                    f"tagged field {field.name} has {size} bytes, its value {reached - position}"
                )
                raise _malformed(detail, position)
        position = end
    return position


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned variable-length integer and the position after it. Raises
    CorruptDataError."""
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    try:
        value, size = read_unsigned_varint(data, position, len(data))
    except VarintError as error:
        fault = _truncated if len(data) - position < VARINT_BYTES else _malformed
        raise fault(str(error), position) from error
    return value, position + size


def _field_reader(field: SchemaField, form: _Form) -> _Reader:
    is_nullable = form.version in field.nullable
    if field.is_array:
        return _array_reader(field, form)
    if field.struct is not None:
        read = _struct_reader(field.struct, form)
        return _nullable_struct(read, is_tagged=field.tag is not None) if is_nullable else read
    if field.type == "string":
        length = None if form.is_flexible else STRING_LENGTH
        return _sized_reader(field.name, length, decoded, is_nullable, LONGEST_STRING)
    if field.type == "bytes":
        length = None if form.is_flexible else BYTES_LENGTH
        return _sized_reader(field.name, length, bytes, is_nullable, None)
    return _read_uuid if field.type == "uuid" else _fixed_reader(FIXED_WIDTH[field.type])


def _fixed_reader(layout: Struct) -> _Reader:
    size, unpack = layout.size, layout.unpack_from

    def read(data: bytes, position: int) -> tuple[Value, int]:
        if position + size > len(data):
            raise _truncated(f"a number of {size} bytes", position)
        return unpack(data, position)[0], position + size

    return read


def _read_uuid(data: bytes, position: int) -> tuple[Value, int]:
    end = position + UUID_BYTES
    if end > len(data):
        raise _truncated("a uuid", position)
    return uuid_text(data[position:end]), end


def _length_reader(layout: Struct | None) -> _LengthReader:
    """Return a reader of lengths with a layout, of flexible ones without."""
    if layout is not None:
        return _fixed_reader(layout)

    def read(data: bytes, position: int) -> tuple[int, int]:
        length, position = read_uvarint(data, position)
        return length + _NULL_LENGTH, position

    return read


def _sized_reader(
    name: str,
    layout: Struct | None,
    make: Callable[[bytes], Value],
    is_nullable: bool,
    longest: int | None,
) -> _Reader:
    read_length = _length_reader(layout)
    size, unpack = (0, None) if layout is None else (layout.size, layout.unpack_from)

    def read(data: bytes, position: int) -> tuple[Value, int]:
        start = position + size
        if unpack is None or start > len(data):
            length, start = read_length(data, position)
        else:  # Most values are texts and bytes: without another call.
            (length,) = unpack(data, position)
        if length < 0:
            _check_null(name, is_nullable, position)
            return None, start
        end = start + length
        if end > len(data):
            raise _truncated(f"{name} of {length} bytes, {len(data) - start} are left", position)
        if longest is not None and length > longest:
            raise _malformed(f"{name} of {length} bytes, {longest} are allowed", position)
        return make(data[start:end]), end

    return read


def _check_null(name: str, is_nullable: bool, position: int) -> None:
    if not is_nullable:
        raise _malformed(f"{name} is null and must not be", position)


def _array_reader(field: SchemaField, form: _Form) -> _Reader:
    version, is_flexible, limit = form
    name, is_nullable = field.name, version in field.nullable
    read_length = _length_reader(None if is_flexible else ARRAY_LENGTH)
    read_elements = _elements_reader(field, form)
    # A struct is a value itself, and its fields are.
    width = 1 + sum(version in part.versions for part in field.struct or ())
    least = least_element_size(field, version, is_flexible=is_flexible)

    def read(data: bytes, position: int) -> tuple[Value, int]:
        count, start = read_length(data, position)
        if count < 0:
            _check_null(name, is_nullable, position)
            return None, start
        # Nothing is allocated, and nothing looped over, that the bytes cannot hold.
        if count * least > len(data) - start:
            raise _truncated(f"{name} of {count} elements, {len(data) - start} bytes", position)
        if limit is not None:
            limit(count * width, position)
        return read_elements(data, start, count)

    return read


def _elements_reader(
    field: SchemaField, form: _Form
) -> Callable[[bytes, int, int], tuple[list[Value], int]]:
    if field.struct is None and field.type in FIXED_WIDTH:
        layout = FIXED_WIDTH[field.type]

        def read_numbers(data: bytes, position: int, count: int) -> tuple[list[Value], int]:
            numbers = unpack_from(f">{count}{layout.format[-1]}", data, position)
            return list(numbers), position + count * layout.size

        return read_numbers
    read_element = _field_reader(field.element(), form)

    def read(data: bytes, position: int, count: int) -> tuple[list[Value], int]:
        elements: list[Value] = []
        for _ in range(count):
            element, position = read_element(data, position)
            elements.append(element)
        return elements, position

    return read


def least_element_size(field: SchemaField, version: int, *, is_flexible: bool) -> int:
    """Return the minimum size of an element of the array. Raises SchemaError if it is 0: a count
    alone could then cause any amount of work."""
    size = _least_size(field.element(), version, is_flexible)
    if size == 0:
        raise SchemaError(f"elements of {field.name} have no byte in version {version}")
    return size


def _least_size(field: SchemaField, version: int, is_flexible: bool) -> int:
    if field.is_array:
        return 1 if is_flexible else ARRAY_LENGTH.size
    if field.struct is not None:
        if version in field.nullable:
            return 1
        plain = [part for part in field.struct if version in part.versions and part.tag is None]
        return sum(_least_size(part, version, is_flexible) for part in plain) + is_flexible
    if field.type in ("string", "bytes"):
        layout = STRING_LENGTH if field.type == "string" else BYTES_LENGTH
        return 1 if is_flexible else layout.size
    return UUID_BYTES if field.type == "uuid" else FIXED_WIDTH[field.type].size


def _nullable_struct(read_struct: _Reader, *, is_tagged: bool) -> _Reader:
    """Return a reader of a nullable struct: a byte says whether it is there, 0 or 1 for a tagged
    one."""
    read_mark = read_uvarint if is_tagged else _fixed_reader(FIXED_WIDTH["int8"])
    least = 1 if is_tagged else 0

    def read(data: bytes, position: int) -> tuple[Value, int]:
        mark, position = read_mark(data, position)
        return read_struct(data, position) if mark >= least else (None, position)

    return read
