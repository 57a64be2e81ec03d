"""Kafka's protocol: requests and responses by their keys, and the headers in front of them.

Loaded once from schemas/protocol, whose form docs/messages.md describes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from struct import Struct

from kafkalog.errors import CorruptDataError
from kafkalog.messages.message_reader import MESSAGE_MALFORMED, MESSAGE_TRUNCATED, read_uvarint
from kafkalog.messages.message_writer import Part, message_parts
from kafkalog.messages.schema import Message, Values, parse_message
from kafkalog.resources import resource
from kafkalog.wire.java_text import decoded

_FOLDER = ("schemas", "protocol")
_HEAD = Struct(">hhih")
_CORRELATION_ID = Struct(">i")
_NO_TAGGED_FIELDS = b"\x00"
# Its response has the oldest header in every version: a client that does not yet know what the
# server speaks must be able to read it.
API_VERSIONS = 18


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """A pair of messages, and the number by which a request names it."""

    key: int
    name: str
    request: Message
    response: Message


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What stands in front of a request's message, which begins at `end`."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    end: int


@cache
def apis() -> Mapping[int, Api]:
    """Return all pairs of messages, by their keys."""
    files = sorted(resource(*_FOLDER).iterdir(), key=lambda file: file.name)
    texts = [file.read_text(encoding="utf-8") for file in files if file.name.endswith(".json")]
    found = [entry for text in texts for entry in json.loads(text)]
    return {
        entry["key"]: Api(
            entry["key"],
            entry["name"],
            parse_message(entry["request"]),
            parse_message(entry["response"]),
        )
        for entry in sorted(found, key=lambda entry: int(entry["key"]))
    }


def read_request_head(data: bytes) -> RequestHead:
    """Return the header of a request, of version 1 or 2. Raises CorruptDataError.

    `end` is where the message begins if the key and the version are known.
    """
    if len(data) < _HEAD.size:
        detail = f"{len(data)} bytes, a request's header has {_HEAD.size} at least"
        raise CorruptDataError(MESSAGE_TRUNCATED, detail, position=0)
    key, version, correlation_id, length = _HEAD.unpack_from(data)
    position = _HEAD.size
    client_id = None
    if length >= 0:
        if length > len(data) - position:
            detail = f"a client id of {length} bytes, {len(data) - position} are left"
            raise CorruptDataError(MESSAGE_TRUNCATED, detail, position=position)
        client_id = decoded(data[position : position + length])
        position += length
    elif length < -1:
        detail = f"a client id of {length} bytes"
        raise CorruptDataError(MESSAGE_MALFORMED, detail, position=position)
    api = apis().get(key)
    if api is not None and version in api.request.versions and version in api.request.flexible:
        position = _after_tagged_fields(data, position)
    return RequestHead(key, version, correlation_id, client_id, position)


def _after_tagged_fields(data: bytes, position: int) -> int:
    """Return the position after the tagged fields of a header; none has a meaning."""
    count, position = read_uvarint(data, position)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise CorruptDataError(MESSAGE_TRUNCATED, "a tagged field", position=position)
    return position


def response_parts(api: Api, version: int, correlation_id: int, values: Values) -> list[Part]:
    """Return a response with its header, without the size in front, in pieces: bytes, and what
    stands for bytes of files. Fields that the version lacks are left out. Raises SchemaError."""
    head = _CORRELATION_ID.pack(correlation_id)
    if api.key != API_VERSIONS and version in api.response.flexible:
        head += _NO_TAGGED_FIELDS
    return [head, *message_parts(api.response, version, values)]
