"""Any values of any message are read as they were written; any bytes are values or one error.

Rules: docs/format.md F185 to F193.
"""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.errors import CorruptDataError
from kafkalog.messages.catalog import families, topic_families
from kafkalog.messages.internal_records import read_control_record, read_internal_record
from kafkalog.messages.message_reader import read_message
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.messages.rendering import key_json, value_json
from kafkalog.messages.schema import Message, SchemaField
from kafkalog.messages.value_types import uuid_text

VERSIONS = [
    (message, version)
    for family in families()
    for message in family.messages.values()
    for version in range(message.versions.first, message.versions.last + 1)
]
each_version = pytest.mark.parametrize(
    ("message", "version"), VERSIONS, ids=lambda part: getattr(part, "name", part)
)
# There are many messages: of each a tenth of the examples that a property has otherwise.
fewer = settings(max_examples=settings().max_examples // 10)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "string": st.text(max_size=300),
    "bytes": st.binary(max_size=300),
    "uuid": st.binary(min_size=16, max_size=16).map(uuid_text),
}


def values_of(fields: tuple[SchemaField, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    there = [field for field in fields if version in field.versions]
    return st.fixed_dictionaries({field.name: value_of(field, version) for field in there})


def value_of(field: SchemaField, version: int) -> st.SearchStrategy[Any]:
    values = values_of(field.struct, version) if field.struct else SCALARS[field.type]
    if field.is_array:
        values = st.lists(values, max_size=3)
    if field.tag is not None:
        values = st.just(field.default(version)) | values
    return st.none() | values if version in field.nullable else values


@each_version
def test_what_is_written_is_read_again(message: Message, version: int) -> None:
    @fewer
    @given(values_of(message.fields, version))
    def check(values: dict[str, Any]) -> None:
        data = write_message(message, version, values)
        assert read_message(message, version, data) == (values, len(data))
        assert read_message(message, version, b"ab" + data + b"cd", 2) == (values, len(data) + 2)

    check()


@each_version
def test_bytes_cut_short_or_changed_are_values_or_one_error(message: Message, version: int) -> None:
    @fewer
    @given(values_of(message.fields, version), st.randoms(use_true_random=False))
    def check(values: dict[str, Any], chance: random.Random) -> None:
        data = bytearray(write_message(message, version, values))
        for length in (0, len(data) // 2, len(data) - 1):
            if 0 <= length < len(data):
                with pytest.raises(CorruptDataError):
                    read_message(message, version, bytes(data[:length]))
        for _ in range(min(4, len(data))):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        read_or_error(message, version, bytes(data))

    check()


@given(st.sampled_from(VERSIONS), st.binary(max_size=200))
def test_any_bytes_are_values_or_one_error(chosen: tuple[Message, int], data: bytes) -> None:
    read_or_error(*chosen, data)


def read_or_error(message: Message, version: int, data: bytes) -> None:
    try:
        values, end = read_message(message, version, data)
    except CorruptDataError as error:
        assert error.fault in ("truncated", "malformed")
        assert 0 <= error.position <= len(data)
    else:
        assert 0 <= end <= len(data)
        assert values.keys() == {f.name for f in message.fields if version in f.versions}


numbers = st.integers(0, 30).map(lambda number: number.to_bytes(2, "big"))
keys = (
    st.none() | st.binary(max_size=60) | st.builds(bytes.__add__, numbers, st.binary(max_size=60))
)
frames = st.tuples(st.integers(0, 30), st.integers(0, 5)).map(lambda pair: bytes((1, *pair)))
values = keys | st.builds(bytes.__add__, frames, st.binary(max_size=120))


@given(st.sampled_from([*topic_families(), None]), keys, values)
def test_any_record_is_reported_in_whole_or_with_a_reason(
    topic: str | None, key: bytes | None, value: bytes | None
) -> None:
    if topic is None:
        record = read_control_record(key, value)
    else:
        record = read_internal_record(topic, key, value)
    is_whole = record.reason is None
    assert is_whole == (record.detail is None)
    if is_whole:
        # The keys of this topic do not say which record they are of (F189).
        is_unnamed = record.is_tombstone and topic == "__remote_log_metadata"
        assert (record.name is None) == is_unnamed
        assert (record.value is None) == record.is_tombstone
    for text in (key_json(record), value_json(record), value_json(record, show_secrets=True)):
        assert text is None or isinstance(json.loads(text), dict)


RECORDS = [
    (topic, number, version)
    for topic, family in topic_families().items()
    for number, kind in family.record_types.items()
    for version in range(kind.value.versions.first, kind.value.versions.last + 1)
]


@given(st.sampled_from(RECORDS), st.data())
def test_a_record_is_read_as_it_was_written(
    written: tuple[str, int, int], drawn: st.DataObject
) -> None:
    topic, number, version = written
    kind = topic_families()[topic].record_types[number]
    key = drawn.draw(values_of(kind.key.fields, 0)) if kind.key else {}
    value = drawn.draw(values_of(kind.value.fields, version))
    record = read_internal_record(
        topic,
        write_record_key(topic, number, key),
        write_record_value(topic, number, version, value),
    )
    assert (record.record_type, record.value_version) == (number, version)
    assert (record.key or {}, record.value) == (key, value)
    assert record.reason is None
