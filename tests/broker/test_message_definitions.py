"""Our message schemas are what Kafka's jars define, field by field, and none is missing."""

import json

import pytest

from kafkalog.messages.protocol import Api, apis
from tests.support.broker.releases.message_definitions import (
    Definition,
    kafka_definitions,
    kafkas_form,
    kafkas_record_types,
    our_form,
    our_messages,
    our_record_types,
)

# Definitions that are not requests and not records of a log either.
NO_RECORDS = {
    "AbortedTxn",  # .txnindex (F104)
    "ProducerSnapshot",  # .snapshot (F105)
    "QuorumStateData",  # the file quorum-state
    "DefaultPrincipalData",  # inside requests that a broker forwards
}


@pytest.fixture(scope="module")
def definitions() -> dict[str, Definition]:
    return kafka_definitions()


def test_kafka_has_no_message_in_its_logs_that_we_lack(definitions: dict[str, Definition]) -> None:
    assert set(definitions) - NO_RECORDS == set(our_messages())


def test_record_types_have_kafkas_numbers(definitions: dict[str, Definition]) -> None:
    # F191: also that a type which Kafka no longer has is not ours.
    assert our_record_types() == kafkas_record_types(list(definitions.values()))


@pytest.mark.parametrize("name", sorted(our_messages()))
def test_a_message_is_defined_as_in_kafka(name: str, definitions: dict[str, Definition]) -> None:
    # F185 to F187: names, types, versions, nullability, tags, defaults, flexible versions.
    assert our_form(our_messages()[name]) == kafkas_form(definitions[name])


@pytest.fixture(scope="module")
def on_the_wire() -> dict[str, Definition]:
    # Raw batches are bytes with a length.
    text = json.dumps(kafka_definitions(on_the_wire=True))
    found: dict[str, Definition] = json.loads(text.replace('"type": "records"', '"type": "bytes"'))
    return found


@pytest.mark.parametrize("api", apis().values(), ids=lambda api: api.name)
def test_a_request_and_its_response_are_defined_as_in_kafka(
    api: Api, on_the_wire: dict[str, Definition]
) -> None:
    for message in (api.request, api.response):
        definition = on_the_wire[message.name]
        assert definition["apiKey"] == api.key
        assert not definition.get("latestVersionUnstable", False)
        assert our_form(message) == kafkas_form(definition)


def test_every_difference_would_be_seen(definitions: dict[str, Definition]) -> None:
    data = definitions["OffsetCommitValue"]
    ours = our_form(our_messages()["OffsetCommitValue"])
    for key, value in [
        ("name", "Other"),
        ("type", "int16"),
        ("versions", "2+"),
        ("nullableVersions", "0+"),
        ("taggedVersions", "4+"),
        ("tag", 5),
        ("default", "7"),
    ]:
        fields = [{**data["fields"][0], key: value}, *data["fields"][1:]]
        assert kafkas_form({**data, "fields": fields}) != ours, key
    assert kafkas_form({**data, "validVersions": "0-5"}) != ours
    assert kafkas_form({**data, "flexibleVersions": "3+"}) != ours
    assert kafkas_form({**data, "fields": [*data["fields"], data["fields"][0]]}) != ours
