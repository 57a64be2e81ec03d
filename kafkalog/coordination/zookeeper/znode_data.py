"""What the data of a znode can be: JSON, decimal digits, text. Any bytes give a value or a
CorruptDataError, whose position is that in the data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from kafkalog.errors import CorruptDataError

MALFORMED = "malformed"
_LONG = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_LARGEST_INT = 2**31 - 1
_SHOWN = 100

JsonObject = Mapping[str, Any]


def malformed(detail: str, position: int = 0) -> NoReturn:
    """Raise the error for data that says nothing."""
    raise CorruptDataError(MALFORMED, detail, position=position)


def znode_text(data: bytes | None) -> str:
    """UTF-8 text; no data is a fault."""
    if data is None:
        malformed("no data")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        malformed("not UTF-8", error.start)


def read_json(data: bytes | None) -> Any:
    """JSON of any kind."""
    text = znode_text(data)
    try:
        value = json.loads(text)
        if "\\u" in text:  # half of such a pair is not a character
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        position = error.pos if isinstance(error, json.JSONDecodeError) else 0
        malformed(f"not JSON: {text[:_SHOWN]!r}", position)
    return value


def read_object(data: bytes | None) -> JsonObject:
    """Return a JSON object."""
    value = read_json(data)
    return value if isinstance(value, dict) else malformed(f"no JSON object: {_shown(value)}")


def read_long(data: bytes | None) -> int:
    """Decimal digits, with a sign or without, as Java's `Long.parseLong` takes them."""
    text = znode_text(data)
    value = int(text) if _LONG.fullmatch(text) else None
    if value is None or not -(2**63) <= value < 2**63:
        malformed(f"no decimal number of 64 bits: {text[:_SHOWN]!r}")
    return value


def read_int(data: bytes | None) -> int:
    """Return the value of a 32-bit integer field."""
    return _int(read_long(data), "data")


def name_number(name: str) -> int | None:
    """Return the number that a name is, without leading zeros and of at most 31 bits; None if it is
    none."""
    if _NUMBER.fullmatch(name) is None or int(name) > _LARGEST_INT:
        return None
    return int(name)


def int_field(values: JsonObject, name: str) -> int:
    """Return a field that has to be a number of 32 bits."""
    value = optional_int(values, name)
    return malformed(f"no field {name}") if value is None else value


def optional_int(values: JsonObject, name: str) -> int | None:
    """Return a field that may be missing."""
    value = values.get(name)
    return None if value is None else _int(value, name)


def optional_text(values: JsonObject, name: str) -> str | None:
    """Return a text that may be missing."""
    value = values.get(name)
    if value is None or isinstance(value, str):
        return value
    malformed(f"field {name} is not a text: {_shown(value)}")


def text_list(values: JsonObject, name: str) -> tuple[str, ...] | None:
    """Return a list of texts that may be missing."""
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        malformed(f"field {name} is not a list of texts: {_shown(value)}")
    return tuple(value)


def text_map(values: JsonObject, name: str) -> dict[str, str] | None:
    """Return a map of texts to texts that may be missing."""
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        malformed(f"field {name} is not a map of texts: {_shown(value)}")
    return value


def object_field(values: JsonObject, name: str) -> JsonObject:
    """Return a field that is an object; missing is empty."""
    value = values.get(name, {})
    if not isinstance(value, dict):
        malformed(f"field {name} is not an object: {_shown(value)}")
    return value


def object_list(values: JsonObject, name: str) -> list[JsonObject]:
    """Return a field that is a list of objects; missing is empty."""
    value = values.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        malformed(f"field {name} is not a list of objects: {_shown(value)}")
    return value


def broker_ids(value: object, name: str) -> tuple[int, ...]:
    """Return a list of broker ids."""
    if not isinstance(value, list):
        malformed(f"field {name} is not a list: {_shown(value)}")
    return tuple(_int(each, name) for each in value)


def timestamp_field(values: JsonObject, name: str = "timestamp") -> int | None:
    """Return a field in milliseconds: a decimal text, or a number; None where there is none and for
    -1."""
    value = values.get(name)
    if isinstance(value, str) and _LONG.fullmatch(value):
        value = int(value)
    if value is None or value == -1:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        malformed(f"field {name} is not a time: {_shown(value)}")
    return value


def _int(value: object, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_INT:
        return value
    return malformed(f"field {name} is not a number of 32 bits: {_shown(value)}")


def _shown(value: object) -> str:
    return repr(value)[:_SHOWN]
