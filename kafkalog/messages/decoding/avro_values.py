"""Values in Avro's binary encoding, decoded by the schema they were written with.

Rule: docs/erasure.md F1262. Tables of Spark are decoded by Spark; this is for a few values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kafkalog.errors import SchemaError
from kafkalog.messages.avro_schemas import read_avro_schema
from kafkalog.wire.varints import VarintError, read_varlong

# Items without bytes, such as nulls, can be announced in any number.
_MOST_ITEMS = 1_000_000
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_Read = Callable[["_Source"], Any]


class _Source:
    """Bytes, and how far they are read. Every read raises ValueError where there are too few."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self.position = data, position
        self._items = 0

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self._data):
            raise ValueError("not Avro: it ends inside a value")
        found = self._data[self.position : end]
        self.position = end
        return found

    def number(self) -> int:
        """Read a zigzag varint."""
        try:
            found, size = read_varlong(self._data, self.position, len(self._data))
        except VarintError as error:
            raise ValueError(f"not Avro: {error}") from error
        self.position += size
        return found

    def block(self) -> int:
        """Read how many items follow; 0 after the last."""
        count = self.number()
        if count < 0:
            self.number()
            count = -count
        self._items += count
        if self._items > _MOST_ITEMS:
            raise ValueError(f"more than {_MOST_ITEMS} items")
        return count

    @property
    def is_at_end(self) -> bool:
        return self.position == len(self._data)


class AvroValues:
    """Decodes values that were written with one schema, which names all of its types.

    Raises SchemaError for a text that is not such a schema.
    """

    def __init__(self, schema: str) -> None:
        self._named: dict[str, _Read] = {}
        parsed = read_avro_schema(schema)
        try:
            self._read = self._reader(parsed, "")
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise SchemaError(f"not an Avro schema: {error}: {schema[:80]}") from error

    def decoded(self, data: bytes, position: int = 0) -> Any:
        """Return the value from a position to the end. Raises ValueError for other bytes."""
        source = _Source(data, position)
        found = self._read(source)
        if not source.is_at_end:
            raise ValueError("not Avro: bytes after the value")
        return found

    def _reader(self, schema: Any, space: str) -> _Read:
        if isinstance(schema, list):
            return _union([self._reader(branch, space) for branch in schema])
        if isinstance(schema, str):
            return _PRIMITIVES.get(schema) or self._by_name(schema, space)
        kind = schema["type"]
        if kind == "array":
            return _array(self._reader(schema["items"], space))
        if kind == "map":
            return _map(self._reader(schema["values"], space))
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(schema, kind, space)
        return self._reader(kind, space)

    def _definition(self, schema: dict[str, Any], kind: str, space: str) -> _Read:
        space, _, name = _full_name(schema, space).rpartition(".")
        full = f"{space}.{name}" if space else name
        if kind == "enum":
            self._named[full] = _enum(list(schema["symbols"]))
        elif kind == "fixed":
            size = int(schema["size"])
            self._named[full] = lambda source: source.take(size)
        else:
            fields: list[tuple[str, _Read]] = []
            # A record can be in itself.
            self._named[full] = _record(fields)
            fields += [
                (str(field["name"]), self._reader(field["type"], space))
                for field in schema["fields"]
            ]
        return self._named[full]

    def _by_name(self, name: str, space: str) -> _Read:
        for full in (name if "." in name or not space else f"{space}.{name}", name):
            if full in self._named:
                return self._named[full]
        raise SchemaError(f"the Avro schema uses type {name}, which is defined nowhere")


def _full_name(schema: dict[str, Any], space: str) -> str:
    name = str(schema["name"])
    own = schema.get("namespace", space)
    return name if "." in name or not own else f"{own}.{name}"


def _text(source: _Source) -> str:
    return source.take(source.number()).decode()


def _union(branches: list[_Read]) -> _Read:
    def read(source: _Source) -> Any:
        number = source.number()
        if not 0 <= number < len(branches):
            raise ValueError("not Avro: a branch that the schema does not have")
        return branches[number](source)

    return read


def _enum(symbols: list[str]) -> _Read:
    def read(source: _Source) -> str:
        number = source.number()
        if not 0 <= number < len(symbols):
            raise ValueError("not Avro: a symbol that the schema does not have")
        return symbols[number]

    return read


def _array(item: _Read) -> _Read:
    def read(source: _Source) -> list[Any]:
        found: list[Any] = []
        while count := source.block():
            found += [item(source) for _ in range(count)]
        return found

    return read


def _map(value: _Read) -> _Read:
    def read(source: _Source) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while count := source.block():
            for _ in range(count):
                name = _text(source)
                found[name] = value(source)
        return found

    return read


def _record(fields: list[tuple[str, _Read]]) -> _Read:
    return lambda source: {name: field(source) for name, field in fields}


_PRIMITIVES: dict[str, _Read] = {
    "null": lambda source: None,
    "boolean": lambda source: source.take(1) != b"\0",
    "int": _Source.number,
    "long": _Source.number,
    "float": lambda source: _FLOAT.unpack(source.take(4))[0],
    "double": lambda source: _DOUBLE.unpack(source.take(8))[0],
    "bytes": lambda source: source.take(source.number()),
    "string": _text,
}
