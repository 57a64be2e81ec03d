"""The definitions of messages inside Kafka's jars, and ours, in one form that can be compared."""

import json
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kafkalog.messages.catalog import families
from kafkalog.messages.schema import Message, SchemaField, Versions, parse_versions
from tests.support.broker.class_paths import class_path

Definition = dict[str, Any]

# Strings are kept whole, comments go.
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
# Where modules keep definitions; requests and responses are never on disk.
_RESOURCE = re.compile(r"(?:common/)?(?:message|metadata)/\w+\.json")
_ON_THE_WIRE = ("request", "response", "header")
_KEY_AND_VALUE = ("coordinator-key", "coordinator-value")


def kafka_definitions(
    jars: str = "broker", *, on_the_wire: bool = False, kafka_version: str | None = None
) -> dict[str, Definition]:
    """Return the definitions in a class path's jars: those of requests, responses and their
    headers, or all others."""
    found: dict[str, Definition] = {}
    for jar in map(Path, class_path(jars, kafka_version).split(os.pathsep)):
        if jar.name.startswith("kafka"):
            of_jar = (
                data for data in _in_jar(jar) if (data["type"] in _ON_THE_WIRE) == on_the_wire
            )
            found.update((data["name"], data) for data in of_jar)
    return found


def _in_jar(jar: Path) -> Iterator[Definition]:
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if _RESOURCE.fullmatch(name):
                text = archive.read(name).decode("utf-8")
                yield json.loads(_STRING_OR_COMMENT.sub(lambda match: match[1] or "", text))


def kafkas_form(data: Definition) -> Definition:
    """What decides how Kafka's message is written."""
    valid = parse_versions(data["validVersions"])
    shared = {struct["name"]: struct["fields"] for struct in data.get("commonStructs", ())}
    return {
        "versions": _within(valid, valid),
        "flexible": _optional(data.get("flexibleVersions"), valid),
        "fields": [_kafkas_field(field, valid, shared) for field in data["fields"]],
    }


def _kafkas_field(field: Definition, valid: Versions, shared: Definition) -> Definition:
    base = field["type"].removeprefix("[]")
    children = field.get("fields") or shared.get(base)
    tagged = field.get("taggedVersions")
    there = _within(parse_versions(field.get("versions") or field["taggedVersions"]), valid)
    return {
        "name": field["name"][0].lower() + field["name"][1:],
        "type": field["type"],
        "versions": there,
        "nullable": sorted({*_optional(field.get("nullableVersions"), valid)} & {*there}),
        "tag": field.get("tag"),
        "tagged": _optional(tagged, valid),
        "default": _kafkas_default(field),
        "fields": [_kafkas_field(child, valid, shared) for child in children or ()],
    }


def _kafkas_default(field: Definition) -> Any:
    """As a value of the field's type; JSON's null is not a default, the text "null" is one."""
    given = field.get("default")
    if given is None:
        return _default_of(field["type"])
    text = str(given).lower()
    if text == "null":
        return None
    if field["type"] == "bool":
        return text == "true"
    return given if field["type"] == "string" else int(text, 0)


def _default_of(field_type: str) -> Any:
    if field_type.startswith("[]"):
        return "an empty array"
    if field_type in ("string", "bytes"):
        return ""
    if field_type == "bool":
        return False
    return 0 if re.fullmatch(r"u?int\d+|float64", field_type) else "all defaults"


def our_form(message: Message) -> Definition:
    """Return the comparable form of one of our messages."""
    return {
        "versions": _within(message.versions, message.versions),
        "flexible": _within(message.flexible, message.versions),
        "fields": [_our_field(field, message.versions) for field in message.fields],
    }


def _our_field(field: SchemaField, valid: Versions) -> Definition:
    there = _within(field.versions, valid)
    field_type = f"[]{field.type}" if field.is_array else field.type
    return {
        "name": field.name,
        "type": field_type,
        "versions": there,
        "nullable": sorted({*_within(field.nullable, valid)} & {*there}),
        "tag": field.tag,
        "tagged": [] if field.tag is None else there,
        "default": field.given_default if field.has_given_default else _default_of(field_type),
        "fields": [_our_field(child, valid) for child in field.struct or ()],
    }


def our_messages() -> dict[str, Message]:
    """All our messages by name."""
    return {name: message for family in families() for name, message in family.messages.items()}


def our_record_types() -> set[tuple[int, str]]:
    """Number and name in Kafka of every message of a record in an internal topic."""
    return {
        (number, message.name)
        for family in families()
        if family.topic is not None
        for number, kind in family.record_types.items()
        for message in (kind.key, kind.value)
        if message is not None
    }


def kafkas_record_types(definitions: Sequence[Definition]) -> set[tuple[int, str]]:
    """The same by Kafka's definitions."""
    kinds = (*_KEY_AND_VALUE, "metadata")
    return {(data["apiKey"], data["name"]) for data in definitions if data["type"] in kinds}


def _optional(text: str | None, valid: Versions) -> list[int]:
    return [] if text in (None, "none") else _within(parse_versions(str(text)), valid)


def _within(versions: Versions, valid: Versions) -> list[int]:
    return [version for version in range(valid.first, valid.last + 1) if version in versions]
