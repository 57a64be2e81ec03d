"""Values to the bytes of a record of an internal topic. Rules: docs/format.md F188 and F189."""

from __future__ import annotations

from kafkalog.errors import SchemaError
from kafkalog.messages.catalog import Framing, RecordType, topic_family
from kafkalog.messages.internal_records import FRAME_VERSION
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.schema import Message, Values
from kafkalog.messages.value_types import FIXED_WIDTH
from kafkalog.wire.varints import write_unsigned_varint


def write_record_key(topic: str, record_type: int, values: Values) -> bytes | None:
    """Return the key of a record of a coordinator's topic; None for KRaft's and tiered storage's
    records, which have no key. Raises SchemaError for a type or values that the topic cannot
    hold."""
    definition = _definition(topic, record_type)
    if definition.key is None:
        return None
    return _after_number(record_type, definition.key, 0, values)


def write_record_value(topic: str, record_type: int, version: int, values: Values) -> bytes:
    """Return the value of a record. Raises SchemaError as `write_record_key` does."""
    definition = _definition(topic, record_type)
    if topic_family(topic).framing is Framing.COORDINATOR:
        return _after_number(version, definition.value, version, values)
    frame = map(write_unsigned_varint, (FRAME_VERSION, record_type, version))
    return b"".join(frame) + write_message(definition.value, version, values)


def _definition(topic: str, record_type: int) -> RecordType:
    definition = topic_family(topic).record_types.get(record_type)
    if definition is None:
        raise SchemaError(f"no record of type {record_type} is known in {topic}")
    return definition


def _after_number(number: int, message: Message, version: int, values: Values) -> bytes:
    return FIXED_WIDTH["int16"].pack(number) + write_message(message, version, values)
