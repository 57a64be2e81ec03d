"""The messages there are: loaded once from schemas/messages, one file for each family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from kafkalog.errors import SchemaError
from kafkalog.messages.schema import Message, parse_message
from kafkalog.resources import resource

_FOLDER = ("schemas", "messages")


class Framing(Enum):
    """How the type and the version of a message are encoded (docs/format.md F188 to F190)."""

    COORDINATOR = "coordinator"
    METADATA = "metadata"
    CONTROL = "control"
    CONSUMER_PROTOCOL = "consumer_protocol"


@dataclass(frozen=True, slots=True, eq=False)
class RecordType:
    """A type of record: its number, its name, and the messages in key and value.

    With `has_version_in_front` the version of a control record's value precedes the message;
    otherwise it is the message's first field.
    """

    number: int
    name: str
    key: Message | None
    value: Message
    has_version_in_front: bool


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """The record types of one internal topic, or of control records, by their numbers. With
    `has_opaque_keys` records may have keys whose form is not known, and delete what has their key.
    """

    topic: str | None
    framing: Framing
    has_opaque_keys: bool
    record_types: Mapping[int, RecordType]
    messages: Mapping[str, Message]


@cache
def families() -> tuple[Family, ...]:
    """Return all message families."""
    files = sorted(resource(*_FOLDER).iterdir(), key=lambda file: file.name)
    texts = [file.read_text(encoding="utf-8") for file in files if file.name.endswith(".json")]
    return tuple(_family(json.loads(text)) for text in texts)


@cache
def topic_families() -> Mapping[str, Family]:
    """Return the families of internal topics, by topic."""
    return {family.topic: family for family in families() if family.topic is not None}


def topic_family(topic: str) -> Family:
    """Return the family of one topic. Raises SchemaError if its messages are not known."""
    family = topic_families().get(topic)
    if family is None:
        known = ", ".join(topic_families())
        raise SchemaError(
            f"the messages of topic {topic} are not known; known are those of {known}"
        )
    return family


@cache
def control_family() -> Family:
    """Return the record types of control records."""
    return next(family for family in families() if family.framing is Framing.CONTROL)


@cache
def message(name: str) -> Message:
    """Return the message with this name in Kafka. Raises SchemaError if there is none."""
    for family in families():
        if name in family.messages:
            return family.messages[name]
    known = ", ".join(sorted(known for family in families() for known in family.messages))
    raise SchemaError(f"no message has the name {name}; known are {known}")


def _family(data: Mapping[str, Any]) -> Family:
    shared_key = parse_message(data["key"]) if "key" in data else None
    types = {entry["type"]: _record_type(entry, shared_key) for entry in data.get("records", ())}
    alone = [parse_message(entry) for entry in data.get("messages", ())]
    held = [part for kind in types.values() for part in (kind.key, kind.value) if part is not None]
    return Family(
        topic=data.get("topic"),
        framing=Framing(data["framing"]),
        has_opaque_keys=data.get("opaque_keys", False),
        record_types=types,
        messages={part.name: part for part in (*held, *alone)},
    )


def _record_type(entry: Mapping[str, Any], shared_key: Message | None) -> RecordType:
    key = parse_message(entry["key"]) if "key" in entry else shared_key
    value = parse_message(entry["value"])
    # Of KRaft's control records the version is the first field of the message.
    has_version_in_front = all(field.name != "version" for field in value.fields[:1])
    return RecordType(entry["type"], entry["name"], key, value, has_version_in_front)
