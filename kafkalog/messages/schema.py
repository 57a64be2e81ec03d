"""Messages as data: the fields of each, in which versions they are there and how they are written.

The form of the JSON that this is made from: docs/messages.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog.errors import SchemaError
from kafkalog.format.secret_configs import HIDDEN, shown_config

# The type of a value in a message: a number, text (uuids as Kafka prints them), bytes, None, a list
# of these, or a struct's fields by their names.
Value = Any
Values = dict[str, Value]

ZERO_UUID = "A" * 22
_DEFAULTS: Mapping[str, Value] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": ZERO_UUID,
}
_VERSIONS = re.compile(r"(\d+)(?:(\+)|-(\d+))?")
_LAST_VERSION = 2**15 - 1
_FIELD_KEYS = {"name", "type", "versions", "nullable", "tag", "default", "secret"}


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions from `first` to `last`, both included."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


ALL_VERSIONS = Versions(0, _LAST_VERSION)
NO_VERSION = Versions(0, -1)


@dataclass(frozen=True, slots=True)
class Secret:
    """A field that is hidden; with `config`, only if the config named by that field is secret."""

    config: str | None = None

    def hides(self, values: Values, value: Value) -> bool:
        if self.config is None:
            return True
        return shown_config(str(values.get(self.config, "")), str(value)) == HIDDEN


@dataclass(frozen=True, slots=True, eq=False)
class SchemaField:
    """A field of a message or struct.

    `type` is one of Kafka's types or the struct's name, `struct` its fields; with `is_array` the
    field is an array of these. A field with a `tag` is a tagged field in all its versions.
    """

    name: str
    type: str
    is_array: bool
    struct: tuple[SchemaField, ...] | None
    versions: Versions
    nullable: Versions
    tag: int | None
    has_given_default: bool
    given_default: Value
    secret: Secret | None

    def default(self, version: int) -> Value:
        """Return the default of the field, as a new value on each call."""
        if self.has_given_default:
            return self.given_default
        if self.is_array:
            return []
        if self.struct is not None:
            return {
                field.name: field.default(version)
                for field in self.struct
                if version in field.versions
            }
        return _DEFAULTS[self.type]

    def element(self) -> SchemaField:
        """Return an element of the array as a separate field: elements are neither null nor
        tagged."""
        return replace(self, is_array=False, nullable=NO_VERSION, tag=None)


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message: its name in Kafka, its versions, which of them are flexible, and its fields; it
    `has_secrets` if any field is secret, those of its structs included."""

    name: str
    versions: Versions
    flexible: Versions
    fields: tuple[SchemaField, ...]
    has_secrets: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_secrets", _has_secrets(self.fields))


def _has_secrets(fields: tuple[SchemaField, ...]) -> bool:
    return any(each.secret or _has_secrets(each.struct or ()) for each in fields)


def parse_versions(text: str) -> Versions:
    """`0`, `0-4` or `3+`. Raises SchemaError."""
    match = _VERSIONS.fullmatch(text)
    if match is None:
        raise SchemaError(f"not a range of versions: {text!r}; write 0, 0-4 or 3+")
    first = int(match[1])
    return Versions(first, _LAST_VERSION if match[2] else int(match[3] or first))


def parse_message(data: Mapping[str, Any]) -> Message:
    """Return a message from its JSON. Raises SchemaError if a type is unknown."""
    structs: Mapping[str, Any] = data.get("structs", {})
    return Message(
        data["name"],
        parse_versions(data["versions"]),
        _optional_versions(data, "flexible", NO_VERSION),
        _parse_fields(data["fields"], structs, ()),
    )


def _parse_fields(
    listed: list[Mapping[str, Any]], structs: Mapping[str, Any], within: tuple[str, ...]
) -> tuple[SchemaField, ...]:
    return tuple(_parse_field(field, structs, within) for field in listed)


def _parse_field(
    data: Mapping[str, Any], structs: Mapping[str, Any], within: tuple[str, ...]
) -> SchemaField:
    base = data["type"].removeprefix("[]")
    unknown = sorted(set(data) - _FIELD_KEYS)
    is_struct = base in structs
    if unknown or base in within or not (is_struct or base in _DEFAULTS):
        raise SchemaError(f"field {data['name']}: type {data['type']}, unknown keys {unknown}")
    return SchemaField(
        name=data["name"],
        type=base,
        is_array=base != data["type"],
        struct=_parse_fields(structs[base], structs, (*within, base)) if is_struct else None,
        versions=_optional_versions(data, "versions", ALL_VERSIONS),
        nullable=_optional_versions(data, "nullable", NO_VERSION),
        tag=data.get("tag"),
        has_given_default="default" in data,
        given_default=data.get("default"),
        secret=_parse_secret(data.get("secret")),
    )


def _optional_versions(data: Mapping[str, Any], key: str, default: Versions) -> Versions:
    return parse_versions(data[key]) if key in data else default


def _parse_secret(data: Any) -> Secret | None:
    if isinstance(data, Mapping):
        return Secret(data["config"])
    return Secret() if data else None


def needed_version(message: Message, version: int, values: Values) -> int:
    """Return the newest version that a reader of Kafka must know to read these values of a message
    of a version.

    Its readers do not check the version as such: fields that they do not know are garbage at the
    end unless they are tagged, and a struct of a version that they do not know is an error. Rule:
    docs/format.md F1015.
    """
    if _has_structs(message.fields, values):
        return version
    needed = version
    while needed > message.versions.first and not _adds_plain(message.fields, needed):
        needed -= 1
    return needed


def _has_structs(fields: Iterable[SchemaField], values: Values) -> bool:
    return any(field.struct is not None and bool(values.get(field.name)) for field in fields)


def _adds_plain(fields: Iterable[SchemaField], version: int) -> bool:
    """Return whether a version adds a field that is not tagged."""
    return any(field.tag is None and field.versions.first == version for field in fields)
