"""Records as JSON text, in the form of kafka-dump-log's decoders.

Rules: docs/format.md F193 and F194.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from kafkalog.errors import CorruptDataError
from kafkalog.format.secret_configs import HIDDEN
from kafkalog.messages.catalog import message
from kafkalog.messages.clients.streams_commits import read_streams_commit
from kafkalog.messages.consumer_protocol import (
    ASSIGNMENT,
    CONSUMER_PROTOCOL,
    SUBSCRIPTION,
    read_assignment,
    read_subscription,
)
from kafkalog.messages.internal_records import InternalRecord
from kafkalog.messages.schema import SchemaField, Value, Values

_GROUP_METADATA, _OFFSET_COMMIT = "GroupMetadataValue", "OffsetCommitValue"
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_NOT_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
_MEMBER_PROTOCOLS: dict[str, tuple[str, Callable[[bytes], Values]]] = {
    "subscription": (SUBSCRIPTION, read_subscription),
    "assignment": (ASSIGNMENT, read_assignment),
}


def key_json(record: InternalRecord) -> str | None:
    """Return the key of a record, None if it is missing or cannot be read."""
    if record.key is None or record.definition is None or record.definition.key is None:
        return None
    rendered = _rendered(record.definition.key.fields, record.key, 0, show_secrets=True)
    return _JSON.encode(rendered)


def value_json(record: InternalRecord, *, show_secrets: bool = False) -> str | None:
    """Return the value of a record, None if it is missing or cannot be read. Without
    `show_secrets`, HIDDEN replaces what the schemas call secret."""
    if record.value is None or record.value_version is None or record.definition is None:
        return None
    schema = record.definition.value
    version = min(record.value_version, schema.versions.last)
    rendered = _rendered(schema.fields, record.value, version, show_secrets=show_secrets)
    if schema.name == _GROUP_METADATA and record.value["protocolType"] == CONSUMER_PROTOCOL:
        for shown, member in zip(rendered["members"], record.value["members"], strict=True):
            shown.update(_member_protocols(member))
    if schema.name == _OFFSET_COMMIT:
        of_streams = read_streams_commit(str(record.value.get("metadata")))
        if of_streams is not None:
            rendered["streams"] = {
                "streamTime": of_streams.stream_time_ms,
                "processorTimes": of_streams.processor_times,
            }
    return _JSON.encode(rendered)


def _member_protocols(member: Values) -> dict[str, Any]:
    """Return what can be read of a member's subscription and assignment."""
    read: dict[str, Any] = {}
    for name, (schema, read_protocol) in _MEMBER_PROTOCOLS.items():
        try:
            values = read_protocol(member[name])
        except CorruptDataError:
            continue  # it stays as bytes; an assignment is empty until the group has a leader
        read[name] = _rendered(message(schema).fields, values, 0, show_secrets=True)
    return read


def _rendered(
    fields: Sequence[SchemaField], values: Values, version: int, *, show_secrets: bool
) -> dict[str, Any]:
    """Return the fields in the order of the schema, tagged ones if they differ from their
    default."""
    shown: dict[str, Any] = {}
    for field in fields:
        if field.name not in values:
            continue
        value = values[field.name]
        if field.tag is not None and value == field.default(version):
            continue
        if (
            field.secret
            and value is not None
            and not show_secrets
            and field.secret.hides(values, value)
        ):
            shown[field.name] = HIDDEN
        elif field.is_array and value is not None:
            shown[field.name] = [_value(field, part, version, show_secrets) for part in value]
        else:
            shown[field.name] = _value(field, value, version, show_secrets)
    return shown


def _value(field: SchemaField, value: Value, version: int, show_secrets: bool) -> Any:
    if field.struct is not None and value is not None:
        return _rendered(field.struct, value, version, show_secrets=show_secrets)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE.get(value, "NaN")
    return value
