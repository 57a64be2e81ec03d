"""Kafka's own decoders read every type and version of message that kafkalog writes."""

import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.catalog import control_family, message, topic_family
from kafkalog.messages.consumer_protocol import ASSIGNMENT, SUBSCRIPTION
from kafkalog.messages.internal_records import (
    InternalRecord,
    read_control_record,
    read_internal_record,
)
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.messages.schema import SchemaField, Values
from kafkalog.messages.value_types import uuid_text
from tests.support.broker.java_tools import run_dump
from tests.support.messages.printed_messages import LINE, as_printed

DECODERS = {
    "__consumer_offsets": "offsets",
    "__transaction_state": "transaction-log",
    "__share_group_state": "share-group-state",
    "__cluster_metadata": "cluster-metadata",
    "__remote_log_metadata": "remote-log-metadata",
}
# The tools at hand are of release 4.3.1; these are new in 4.4.
NEW_TYPES = {"UnregisterControllerRecord"}
NEW_FIELDS = {"storedDescriptionTopologyEpoch", "failedDescriptionTopologyEpoch"}
SAMPLES = 4
TEXTS = ["", "a", "é€😀", 'with "quotes"', string.ascii_letters]
INTEGERS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}


@pytest.mark.parametrize("topic", DECODERS)
def test_kafka_reads_what_kafkalog_writes_as_kafkalog_does(topic: str, tmp_path: Path) -> None:
    # F185 to F189, F192, F193; T36, T39.
    written = list(samples(topic))
    batches = [
        write_batch([Record(offset, 1000, 0, key, value)])
        for offset, (key, value) in enumerate(written)
    ]
    read = [read_internal_record(topic, key, value) for key, value in written]
    assert printed(tmp_path / f"{topic}-0", batches, DECODERS[topic]) == expected(read)


def test_kafka_reads_control_records_as_kafkalog_does(tmp_path: Path) -> None:
    # F190, T19
    chance = random.Random(1)
    written = []
    for number, kind in control_family().record_types.items():
        values = message_values(kind.value.fields, 0, chance)
        data = write_message(kind.value, 0, values | {"version": 0} if number > 1 else values)
        written.append((bytes((0, 0, 0, number)), b"\0\0" * (number < 2) + data))
    batches = [
        write_batch([Record(offset, 1000, 0, key, value)], BatchFields(is_control=True))
        for offset, (key, value) in enumerate(written)
    ]
    read = [read_control_record(key, value) for key, value in written]
    place = tmp_path / "__cluster_metadata-0"
    assert printed(place, batches, DECODERS["__cluster_metadata"]) == expected(read)


def printed(directory: Path, batches: list[bytes], decoder: str) -> list[tuple[str, ...]]:
    directory.mkdir()
    log = directory / f"{0:020d}.log"
    log.write_bytes(b"".join(batches))
    output = run_dump([log], decoder=decoder).stdout.decode()
    return [line.groups() for line in map(LINE.fullmatch, output.splitlines()) if line]


def expected(records: list[InternalRecord]) -> list[tuple[str, ...]]:
    return [(str(offset), as_printed(record)) for offset, record in enumerate(records)]


def samples(topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Records of every type and version, the first of each with defaults only."""
    chance = random.Random(0)
    for number, kind in topic_family(topic).record_types.items():
        if kind.name in NEW_TYPES:
            continue
        for version in range(kind.value.versions.first, kind.value.versions.last + 1):
            for sample in range(SAMPLES):
                key: Values = {}
                value: Values = {}
                if sample:
                    value = message_values(kind.value.fields, version, chance)
                    key = message_values(kind.key.fields, 0, chance) if kind.key else {}
                if topic == "__remote_log_metadata":
                    value = that_kafkas_classes_take(value, kind.value.fields, sample)
                if kind.name == "GroupMetadata":
                    value = with_member_protocols(value, chance)
                yield (
                    write_record_key(topic, number, key),
                    write_record_value(topic, number, version, value),
                )


def with_member_protocols(value: Values, chance: random.Random) -> Values:
    """A group of consumers: only of those does the tool show what members agreed on."""
    for member in value.get("members", ()):
        for field, name in (("subscription", SUBSCRIPTION), ("assignment", ASSIGNMENT)):
            version = chance.randrange(4)
            values = message_values(message(name).fields, version, chance)
            data = write_message(message(name), version, values)
            member[field] = version.to_bytes(2, "big") + data
    return value | {"protocolType": "consumer"}


def that_kafkas_classes_take(value: Values, fields: tuple[SchemaField, ...], sample: int) -> Values:
    """For tiered storage the tool prints Kafka's classes, which check what they are given: offsets
    that rise, leader epochs that there are, and known states."""
    allowed: Values = {
        "startOffset": sample,
        "endOffset": sample + 7,
        "brokerId": sample,
        "segmentSizeInBytes": sample,
        "segmentLeaderEpochs": [{"leaderEpoch": epoch, "offset": epoch} for epoch in (3, 5)],
        "remoteLogSegmentState": sample % 4,
        "remotePartitionDeleteState": sample % 3,
    }
    known = {field.name for field in fields}
    return value | {name: given for name, given in allowed.items() if name in known}


def message_values(fields: tuple[SchemaField, ...], version: int, chance: random.Random) -> Values:
    return {
        field.name: field_value(field, version, chance)
        for field in fields
        if version in field.versions and field.name not in NEW_FIELDS
    }


def field_value(field: SchemaField, version: int, chance: random.Random) -> Any:
    if version in field.nullable and chance.random() < 0.3:
        return None
    if field.tag is not None and chance.random() < 0.3:
        return field.default(version)
    if field.is_array:
        return [field_value(field.element(), version, chance) for _ in range(chance.randrange(4))]
    if field.struct is not None:
        return message_values(field.struct, version, chance)
    if field.type in INTEGERS:
        bits = INTEGERS[field.type]
        return chance.choice((0, 1, 2**bits - 1, -1 if bits % 2 else 5, chance.getrandbits(bits)))
    if field.type == "uuid":
        return uuid_text(chance.randbytes(16))
    if field.type == "bytes":
        return chance.randbytes(chance.randrange(9))
    choices = {"bool": (False, True), "float64": (0.0, 1.5, -2.25), "string": TEXTS}
    return chance.choice(choices[field.type])
