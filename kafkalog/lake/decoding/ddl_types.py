"""Spark's DDL of columns, such as `id BIGINT, lines ARRAY<STRUCT<price: DECIMAL(9,2)>>`, as a type,
without Spark. Rule: docs/decoding.md F1272."""

from __future__ import annotations

import re
from typing import Any

from kafkalog.errors import SchemaError

_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+)|('(?:[^'\\]|\\.)*')|([<>(),:]))")
_SIMPLE = {
    "boolean": "boolean",
    "tinyint": "byte",
    "byte": "byte",
    "smallint": "short",
    "short": "short",
    "int": "integer",
    "integer": "integer",
    "bigint": "long",
    "long": "long",
    "float": "float",
    "real": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
}
_DECIMALS = ("decimal", "dec", "numeric")


def ddl_type(text: str) -> Any:
    """Return a type, or columns as a struct, in the JSON form of Spark's types. Raises SchemaError
    for a text that is neither."""
    try:
        return _Parser(text).whole()
    except (IndexError, KeyError) as error:
        known = "a Spark DDL (such as 'id BIGINT'), a JSON Schema or a file of one"
        raise SchemaError(f"{text[:80]!r} is not {known}") from error


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._place = 0

    def whole(self) -> Any:
        # A type alone, or columns.
        if len(self._tokens) == 1 or self._tokens[1] in ("<", "("):
            found = self._type()
        else:
            found = self._struct(None)
        if self._place != len(self._tokens):
            raise IndexError
        return found

    def _next(self) -> str:
        self._place += 1
        return self._tokens[self._place - 1]

    def _has(self, token: str) -> bool:
        """Take a token if it comes next."""
        found = self._tokens[self._place : self._place + 1]
        is_next = bool(found) and found[0].lower() == token
        self._place += is_next
        return is_next

    def _need(self, token: str) -> None:
        if not self._has(token):
            raise IndexError

    def _type(self) -> Any:
        name = self._next().lower()
        if name == "array":
            self._need("<")
            element = self._type()
            self._need(">")
            return {"type": "array", "elementType": element, "containsNull": True}
        if name == "map":
            self._need("<")
            key = self._type()
            self._need(",")
            value = self._type()
            self._need(">")
            of_map = {"type": "map", "keyType": key, "valueType": value}
            return {**of_map, "valueContainsNull": True}
        if name == "struct":
            self._need("<")
            return self._struct(">")
        return self._decimal() if name in _DECIMALS else _SIMPLE[name]

    def _decimal(self) -> str:
        if not self._has("("):
            return "decimal(10,0)"
        precision = self._next()
        scale = self._next() if self._has(",") else "0"
        self._need(")")
        if not (precision.isdecimal() and scale.isdecimal() and int(precision) <= 38):
            raise IndexError
        return f"decimal({precision},{scale})"

    def _struct(self, end: str | None) -> Any:
        fields: list[dict[str, Any]] = []
        while end is None or not self._has(end):
            name = self._next().removeprefix("`")
            self._has(":")
            kind = self._type()
            if self._has("not"):
                self._need("null")
            if self._has("comment"):
                self._next()
            fields.append({"name": name, "type": kind, "nullable": True, "metadata": {}})
            if not self._has(","):
                if end is not None:
                    self._need(end)
                break
        return {"type": "struct", "fields": fields}


def _tokens(text: str) -> list[str]:
    """Return the words and signs of a text; names in backquotes begin with one."""
    found: list[str] = []
    place, text = 0, text.rstrip()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise IndexError
        quoted, word, literal, sign = token.groups()
        found.append("`" + quoted.replace("``", "`") if quoted else word or literal or sign)
        place = token.end()
    return found
