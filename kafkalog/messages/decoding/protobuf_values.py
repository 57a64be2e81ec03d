"""Messages in Protobuf's binary format, decoded by the text of their .proto file.

What is read is what a search needs: the fields of messages by name, numbers, texts and bytes; an
enumeration is its number. Fields that the file does not have are there by their number. Rule:
docs/erasure.md F1262.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkalog.errors import SchemaError
from kafkalog.messages.proto_files import message_indexes
from kafkalog.wire.varints import VarintError, read_unsigned_varlong

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"""|"(?:[^"\\]++|\\.)*+(?:"|\Z)|'(?:[^'\\]++|\\.)*+(?:'|\Z)"""
    r"|\.?[A-Za-z_][\w.]*|0[xX][0-9a-fA-F]+|[0-9]+|[{}();=<>,\[\]-]",
    re.DOTALL,
)
# Ends the name of the type of a map's entries; no name in a file has it.
_MAP = "<map>"
_LABELS = frozenset(("optional", "required", "repeated"))
_VARINT, _FIXED64, _BYTES, _GROUP_START, _GROUP_END, _FIXED32 = range(6)
_MOST_DEPTH = 100


class _Field(NamedTuple):
    """Its name, and its type as the file has it."""

    name: str
    type_name: str
    is_repeated: bool = False


@dataclass(slots=True)
class _Message:
    """Fields by number. The entries of a map are messages with a key and a value."""

    fields: dict[int, _Field] = field(default_factory=dict)


class ProtobufValues:
    """Decodes the messages of a .proto file, with those that it uses of others.

    Raises SchemaError for a text that is not such a file.
    """

    def __init__(self, proto: str, references: Sequence[str] = ()) -> None:
        self._messages: dict[str, _Message] = {}
        for text in (*references, proto):
            self._messages.update(_read_file(text))
        self._places = {place: name for name, place in message_indexes(proto).items()}

    def decoded(self, data: bytes, position: int, place: tuple[int, ...]) -> dict[str, Any]:
        """Return the message at a place of the file (F293), from a position to the end. Raises
        ValueError for other bytes."""
        if place not in self._places:
            raise ValueError("not Protobuf: a message that the file does not have")
        return self._message(memoryview(data)[position:], self._places[place], 0)

    def _message(self, data: memoryview, name: str, depth: int) -> dict[str, Any]:
        if depth > _MOST_DEPTH:
            raise ValueError("not Protobuf: nested too deeply")
        message = self._messages.get(name, _Message())
        found: dict[str, Any] = {}
        for number, kind, raw in _wire_fields(data):
            known = message.fields.get(number, _Field(str(number), "", is_repeated=True))
            values = self._values(known.type_name, name, kind, raw, depth)
            if known.type_name.endswith(_MAP):
                entry = values[0]
                found.setdefault(known.name, {})[str(entry.get("key", ""))] = entry.get("value")
            elif known.is_repeated:
                found.setdefault(known.name, []).extend(values)
            else:
                found[known.name] = values[-1] if values else None
        return found

    def _values(self, type_name: str, outer: str, kind: int, raw: Any, depth: int) -> list[Any]:
        if kind != _BYTES:
            return [_number(type_name, kind, raw)]
        if type_name in ("string", "bytes", ""):
            return [_text_or_bytes(raw)]
        if type_name in _NUMBERS:
            return [*_packed(type_name, raw)]
        inner = self._resolved(type_name, outer)
        if inner in self._messages:
            return [self._message(raw, inner, depth + 1)]
        try:
            # A message of a file that is not here, or several numbers of an enumeration.
            return [self._message(raw, "", depth + 1)]
        except ValueError:
            return [_text_or_bytes(raw)]

    def _resolved(self, type_name: str, outer: str) -> str:
        """Return the full name of a type, looked for from the innermost message outwards."""
        if type_name.startswith("."):
            return type_name[1:]
        scope = outer
        while scope:
            if f"{scope}.{type_name}" in self._messages:
                return f"{scope}.{type_name}"
            scope = scope.rpartition(".")[0]
        return type_name


def _text_or_bytes(raw: memoryview) -> str | bytes:
    data = bytes(raw)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _wire_fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field; groups, which are of the past, are read
    over."""
    position, groups = 0, 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        value: Any = None
        if kind == _VARINT:
            value, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32, _BYTES):
            size = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                size, position = _varint(data, position)
            if position + size > len(data):
                raise ValueError("not Protobuf: it ends inside a field")
            value, position = data[position : position + size], position + size
        elif kind in (_GROUP_START, _GROUP_END):
            groups += 1 if kind == _GROUP_START else -1
            continue
        else:
            raise ValueError(f"not Protobuf: wire type {kind}")
        if number == 0:
            raise ValueError("not Protobuf: field 0")
        if not groups:
            yield number, kind, value


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    try:
        found, size = read_unsigned_varlong(data, position, len(data))
    except VarintError as error:
        raise ValueError(f"not Protobuf: {error}") from error
    return found, position + size


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _unsigned(number: int) -> int:
    return number


def _bool(number: int) -> bool:
    return number != 0


# How a varint, or the format of fixed bytes, becomes a number.
_NUMBERS: Mapping[str, Callable[[int], Any] | str] = {
    **dict.fromkeys(("int32", "int64"), _signed),
    **dict.fromkeys(("uint32", "uint64"), _unsigned),
    **dict.fromkeys(("sint32", "sint64"), _zigzag),
    "bool": _bool,
    "fixed32": "<I",
    "sfixed32": "<i",
    "float": "<f",
    "fixed64": "<Q",
    "sfixed64": "<q",
    "double": "<d",
}


def _number(type_name: str, kind: int, raw: Any) -> Any:
    how = _NUMBERS.get(type_name)
    if kind == _VARINT:
        return how(raw) if callable(how) else _signed(raw)
    size = 8 if kind == _FIXED64 else 4
    layout = how if isinstance(how, str) and struct.calcsize(how) == size else None
    return struct.unpack(layout or ("<q" if size == 8 else "<i"), raw)[0]


def _packed(type_name: str, raw: memoryview) -> Iterator[Any]:
    how = _NUMBERS[type_name]
    if isinstance(how, str):
        if len(raw) % struct.calcsize(how):
            raise ValueError("not Protobuf: numbers that do not fill their field")
        yield from (value for (value,) in struct.iter_unpack(how, raw))
        return
    position = 0
    while position < len(raw):
        number, position = _varint(raw, position)
        yield how(number)


def _read_file(text: str) -> dict[str, _Message]:
    """Return the messages of a .proto file by their full names."""
    tokens = [each for each in _TOKEN.findall(text) if not each.startswith(("//", "/*"))]
    package = ""
    for number, token in enumerate(tokens[:-1]):
        if token == "package" and (number == 0 or tokens[number - 1] in (";", "}")):
            package = tokens[number + 1]
    try:
        return _File(tokens).messages(package)
    except IndexError:
        raise SchemaError("not a .proto file: it ends inside a definition") from None


class _File:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._position = tokens, 0
        self._found: dict[str, _Message] = {}

    def messages(self, package: str) -> dict[str, _Message]:
        while self._position < len(self._tokens):
            self._statement(package, None)
        return self._found

    def _next(self) -> str:
        self._position += 1
        return self._tokens[self._position - 1]

    def _statement(self, scope: str, message: _Message | None) -> None:
        token = self._next()
        if token == "message" and self._tokens[self._position + 1] == "{":
            name = self._next()
            full = f"{scope}.{name}" if scope else name
            self._next()
            inner = self._found.setdefault(full, _Message())
            while self._tokens[self._position] != "}":
                self._statement(full, inner)
            self._next()
        elif token == "oneof" and message is not None:
            self._next()
            self._next()
            while self._tokens[self._position] != "}":
                self._statement(scope, message)
            self._next()
        elif message is not None and self._is_field(token):
            self._field(token, scope, message)
        else:
            self._skip(token)

    def _is_field(self, token: str) -> bool:
        rest = self._tokens[self._position : self._position + 8]
        if token in _LABELS:
            rest = rest[1:]
        if token == "map" and rest[:1] == ["<"]:
            return True
        return len(rest) > 2 and rest[1] == "=" and rest[2].isalnum() and rest[2][0].isdigit()

    def _field(self, token: str, scope: str, message: _Message) -> None:
        type_name = self._next() if token in _LABELS else token
        if type_name == "map" and self._tokens[self._position] == "<":
            self._next()
            key, _, value, _ = (self._next() for _ in range(4))
            name = self._next()
            type_name = f"{scope}.{name}{_MAP}"
            entry = {1: _Field("key", key), 2: _Field("value", value)}
            self._found[type_name] = _Message(entry)
            type_name = f".{type_name}"
        else:
            name = self._next()
        self._next()
        is_repeated = token == "repeated"
        message.fields[int(self._next(), 0)] = _Field(name, type_name, is_repeated)
        self._skip("")

    def _skip(self, token: str) -> None:
        """Go to the end of a statement, or of the block that it has."""
        depth = 0
        while True:
            depth += (token == "{") - (token == "}")
            if depth == 0 and token in (";", "}"):
                return
            if self._position >= len(self._tokens):
                return
            token = self._next()
