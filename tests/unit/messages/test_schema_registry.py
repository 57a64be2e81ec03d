"""The state of Confluent's registry from the records of `_schemas`. Rules: F287 to F290."""

from collections.abc import Sequence

import pytest

from kafkalog.errors import SchemaError
from kafkalog.messages.schema_registry import (
    RegisteredSchema,
    SchemaReference,
    SchemaRegistry,
    SchemaState,
    read_schema_registry,
)
from tests.support.messages.registry_records import (
    RegistryRecord,
    compatibility,
    noop,
    reference,
    registered,
    removed,
    subject_cleared,
    subject_deleted,
)


def registry(*records: RegistryRecord) -> SchemaRegistry:
    return read_schema_registry((offset, *pair) for offset, pair in enumerate(records))


def states(*records: RegistryRecord) -> dict[int, SchemaState]:
    return {number: schema.state for number, schema in registry(*records).by_id.items()}


def test_a_schema_is_found_by_its_id() -> None:
    found = registry(compatibility(), registered(1, '"string"'), noop())
    assert found.by_id == {1: RegisteredSchema("orders-value", 1, 1, "AVRO", '"string"')}
    assert found.unreadable == ()


def test_other_types_say_so() -> None:
    found = registry(
        registered(1, "{}", schemaType="JSON"),
        registered(2, "message M {}", "m", schemaType="PROTOBUF"),
    )
    assert [found.by_id[number].schema_type for number in (1, 2)] == ["JSON", "PROTOBUF"]


def test_deleted_schemas_keep_their_ids() -> None:
    first, second = registered(1, '"int"'), registered(2, '"long"', version=2)
    assert states(first, second, registered(1, '"int"', deleted=True)) == {
        1: SchemaState.DELETED,
        2: SchemaState.REGISTERED,
    }
    assert states(first, second, subject_deleted(version=1)) == {
        1: SchemaState.DELETED,
        2: SchemaState.REGISTERED,
    }
    assert states(first, removed()) == {1: SchemaState.REMOVED}
    assert states(first, second, subject_deleted(version=1), subject_cleared()) == {
        1: SchemaState.REMOVED,
        2: SchemaState.REGISTERED,
    }


def test_one_id_in_two_subjects_is_one_schema() -> None:
    found = registry(registered(1, '"int"'), registered(1, '"int"', "other-value"))
    assert set(found.by_version) == {("orders-value", 1), ("other-value", 1)}
    assert found.by_id[1].text == '"int"'


def test_an_id_keeps_its_first_schema_until_that_is_removed() -> None:
    again = registered(1, '"long"', "other-value")
    assert registry(registered(1, '"int"'), again).by_id[1].text == '"int"'
    assert registry(registered(1, '"int"'), removed(), again).by_id[1].text == '"long"'


def test_ids_of_other_contexts_are_others() -> None:
    found = registry(registered(1, '"int"'), registered(1, '"long"', ":.staging:orders-value"))
    assert found.by_id[1].text == '"int"'
    assert found.by_version[":.staging:orders-value", 1].text == '"long"'


def test_encrypted_schemas_are_reported() -> None:
    encrypted = registered(1, "c2VjcmV0", metadata={"properties": {"__enc__": "true"}})
    assert registry(encrypted).by_id[1].is_encrypted


@pytest.mark.parametrize(
    "damaged",
    [
        (b"", None),
        (b"no JSON", b"{}"),
        (b"[]", b"{}"),
        (b"{}", b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s"}', None),
        (b'{"keytype":"SCHEMA"}', b'{"subject":"s","version":1,"id":"1","schema":"x"}'),
        (b'{"keytype":"SCHEMA"}', b'{"subject":"s","version":1,"id":1}'),
        (b'{"keytype":"SCHEMA"}', b"\xff"),
        (b'{"keytype":"DELETE_SUBJECT"}', b'{"subject":"s"}'),
        (b"[" * 100_000, None),
    ],
)
def test_records_that_are_none_of_the_registrys_are_counted(damaged: RegistryRecord) -> None:
    found = registry(registered(1, '"int"'), damaged, registered(2, '"long"', version=2))
    assert set(found.by_id) == {1, 2}
    assert found.unreadable == (1,)


def test_references_come_behind_those_that_they_use() -> None:
    money = registered(1, "M", "money")
    line = registered(2, "L", "line", references=[reference("Money", "money")])
    both = [reference("Line", "line"), reference("Money", "money")]
    found = registry(money, line, registered(3, "O", references=both))
    assert found.by_id[3].references[0] == SchemaReference("Line", "line", 1)
    resolved = found.references(found.by_id[3])
    assert [(name, schema.text) for name, schema in resolved.items()] == [
        ("Money", "M"),
        ("Line", "L"),
    ]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([registered(1, "O", references=[reference("M", "money")])], "not in the topic"),
        (
            [
                registered(1, "A", "a", references=[reference("B", "b")]),
                registered(2, "B", "b", references=[reference("A", "a")]),
            ],
            "uses itself",
        ),
    ],
)
def test_references_that_lead_nowhere_are_errors(
    records: Sequence[RegistryRecord], said: str
) -> None:
    found = registry(*records)
    with pytest.raises(SchemaError, match=said):
        found.references(found.by_id[1])


def test_references_that_go_too_deep_are_an_error() -> None:
    last = 2000
    chain = registry(
        *(
            registered(
                number, "{}", f"s{number}", references=[reference(f"n{number}", f"s{number + 1}")]
            )
            for number in range(last)
        ),
        registered(last, "{}", f"s{last}"),
    )
    with pytest.raises(SchemaError, match="too deeply"):
        chain.references(chain.by_id[1])
