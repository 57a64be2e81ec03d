"""Records of the metadata decoded together are those decoded one by one (docs/format.md F189)."""

import random
from collections.abc import Iterator

import pytest

from kafkalog.columns.messages import metadata_columns
from kafkalog.columns.messages.metadata_columns import read_metadata_records
from kafkalog.messages.catalog import topic_family
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.messages.record_writer import write_record_value
from kafkalog.messages.schema import Values

TOPIC = "__cluster_metadata"
TYPES = topic_family(TOPIC).record_types
UUID = "XZ99uCo4SEKdaOaRfsF8IA"


def record(name: str, version: int, **values: object) -> bytes:
    (number,) = [each for each, known in TYPES.items() if known.name == name]
    fields = TYPES[number].value.fields
    defaults: Values = {
        field.name: field.default(version) for field in fields if version in field.versions
    }
    return write_record_value(TOPIC, number, version, {**defaults, **values})


def records() -> Iterator[bytes]:
    for number in range(40):
        yield record("NoOpRecord", 0)
        yield write_record_value(TOPIC, 2, 0, {"name": f"topic-{number}é", "topicId": UUID})
        yield record(
            *("PartitionRecord", 1),
            partitionId=number,
            topicId=UUID,
            replicas=list(range(number % 5)),
            isr=[1],
            leader=1,
            directories=[UUID] * (number % 5),
        )
        yield record(
            *("PartitionChangeRecord", 1 + number % 2),
            partitionId=number,
            topicId=UUID,
            isr=None if number % 2 else [1, 2],
            leader=number,
        )
        yield write_record_value(
            *(TOPIC, 4, 0),
            {
                "resourceType": 2,
                "resourceName": "orders",
                "name": "n" * (100 + 5 * number),
                "value": None if number % 2 else "v",
            },
        )


def one_by_one(values: list[bytes | None]) -> list[object]:
    return [read_internal_record(TOPIC, None, value) for value in values]


def test_all_types_that_are_read_together_are_the_same() -> None:
    values: list[bytes | None] = list(records())
    together = read_metadata_records([(None, value) for value in values])
    assert together == one_by_one(values)
    # Fields are in the same order, in which they are shown.
    assert [list(each.value or ()) for each in together] == [
        list(read_internal_record(TOPIC, None, value).value or ()) for value in values
    ]
    read = dict(metadata_columns._read_together([value or b"" for value in values]))
    assert len(read) > len(values) * 3 // 4


@pytest.mark.parametrize("seed", range(60))
def test_any_bytes_give_the_same(seed: int) -> None:
    chance = random.Random(seed)
    values: list[bytes | None] = [None, b"", b"\1"]
    for value in records():
        changed = bytearray(value)
        for _ in range(chance.choice((0, 1, 1, 3))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        if chance.random() < 0.2:
            changed = changed[: chance.randrange(len(changed))]
        if chance.random() < 0.2:
            changed += chance.randbytes(chance.randrange(9))
        values.append(bytes(changed))
    assert read_metadata_records([(None, value) for value in values]) == one_by_one(values)


def test_a_record_with_a_key_is_not_read() -> None:
    values = [(b"key", value) for value in records()]
    assert {each.reason for each in read_metadata_records(values)} == {"unexpected_key"}
