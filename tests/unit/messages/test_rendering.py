"""Records as JSON text: what is shown, what is left out, what is hidden. Rules: F192 to F194."""

import json
import math
from typing import Any

import pytest

from kafkalog.format.secret_configs import HIDDEN
from kafkalog.messages.catalog import topic_families
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.messages.rendering import key_json, value_json
from kafkalog.messages.schema import Values, parse_message

OFFSETS, METADATA = "__consumer_offsets", "__cluster_metadata"
CONFIG, SCRAM, QUOTA = 4, 11, 14
SUBSCRIPTION = b"\0\x01" + b"\0\0\0\x01\0\x01t" + b"\xff\xff\xff\xff" + b"\0\0\0\0"
ASSIGNMENT = b"\0\x01" + b"\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\x05" + b"\xff\xff\xff\xff"


def read(topic: str, record_type: int, version: int, values: Values) -> InternalRecord:
    key = None if topic == METADATA else write_record_key(topic, record_type, {})
    return read_internal_record(topic, key, write_record_value(topic, record_type, version, values))


def shown(record: InternalRecord, **options: bool) -> Any:
    text = value_json(record, **options)
    return None if text is None else json.loads(text)


def group(protocol_type: str, subscription: bytes, assignment: bytes) -> InternalRecord:
    member = {"memberId": "m", "subscription": subscription, "assignment": assignment}
    return read(OFFSETS, 2, 3, {"protocolType": protocol_type, "members": [member]})


def test_members_of_consumers_show_what_they_agreed_on() -> None:
    # F192
    (member,) = shown(group("consumer", SUBSCRIPTION, ASSIGNMENT))["members"]
    assert member["subscription"] == {"topics": ["t"], "userData": None, "ownedPartitions": []}
    partitions = [{"topic": "t", "partitions": [5]}]
    assert member["assignment"] == {"assignedPartitions": partitions, "userData": None}


def test_a_later_subscription_is_read_as_far_as_it_is_known() -> None:
    # F192: version 9 as version 3, with fields behind.
    later = b"\0\x09" + SUBSCRIPTION[2:] + b"\0\0\0\x07" + b"\0\x01r" + b"more"
    (member,) = shown(group("consumer", later, ASSIGNMENT))["members"]
    assert (member["subscription"]["generationId"], member["subscription"]["rackId"]) == (7, "r")


@pytest.mark.parametrize(
    ("protocol_type", "subscription"),
    [("connect", SUBSCRIPTION), ("consumer", b"\0"), ("consumer", b"\xff\xff\0\0\0\0")],
)
def test_other_members_bytes_stay_bytes(protocol_type: str, subscription: bytes) -> None:
    (member,) = shown(group(protocol_type, subscription, b""))["members"]
    assert isinstance(member["subscription"], str)
    assert member["assignment"] == ""


def test_names_keep_their_order_and_text_its_characters() -> None:
    # F193
    record = read(OFFSETS, 1, 3, {"offset": 5, "metadata": '✓ "', "commitTimestamp": 7})
    assert value_json(record) == (
        '{"offset":5,"leaderEpoch":-1,"metadata":"✓ \\"","commitTimestamp":7}'
    )
    assert key_json(record) == '{"group":"","topic":"","partition":0}'


def test_tagged_fields_are_shown_where_they_differ_from_their_default() -> None:
    # F193: in ConsumerGroupMemberMetadataValue null is not the default.
    absent = {"sessionTimeoutMs": 0, "supportedProtocols": []}
    for classic, has_name in ((None, True), (absent, False)):
        record = read(OFFSETS, 5, 0, {"classicMemberMetadata": classic})
        assert ("classicMemberMetadata" in shown(record)) is has_name


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e10, 1e10), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")],
)
def test_numbers_that_are_not_finite_are_text(value: float, text: object) -> None:
    assert shown(read(METADATA, QUOTA, 0, {"value": value}))["value"] == text


CREDENTIAL = {"name": "alice", "salt": b"salt", "storedKey": b"stored", "serverKey": b"server"}


def test_credentials_are_hidden_unless_they_are_requested() -> None:
    # F194
    record = read(METADATA, SCRAM, 0, CREDENTIAL)
    assert shown(record) == {
        "name": "alice",
        "mechanism": 0,
        "salt": HIDDEN,
        "storedKey": HIDDEN,
        "serverKey": HIDDEN,
        "iterations": 0,
    }
    assert shown(record, show_secrets=True)["salt"] == "c2FsdA=="
    assert record.may_hold_secrets


@pytest.mark.parametrize(
    ("name", "is_hidden"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.external.ssl.key.password", True),
        ("ssl.keystore.key", True),
        ("ssl.keystore.certificate.chain", True),
        ("ssl.truststore.certificates", True),
        ("sasl.jaas.config", True),
        ("listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config", True),
        ("delegation.token.secret.key", True),
        ("sasl.oauthbearer.assertion.private.key.passphrase", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("my.plugin.API_KEY", True),
        ("connection.string", True),
        ("azure.connectionString", True),
        ("basic.auth.user.info", True),
        ("db.passwd", True),
        ("storage.sas", True),
        ("client.assertion", True),
        ("plugin.apiKey", True),
        ("ssl.client.auth", False),
        ("connections.max.idle.ms", False),
        ("max.connections", False),
        ("log.message.timestamp.type", False),
        ("sasl.enabled.mechanisms", False),
        ("ssl.keystore.location", False),
        ("cleanup.policy", False),
        ("compression.type", False),
        ("max.message.bytes", False),
        ("min.insync.replicas", False),
        ("leader.replication.throttled.replicas", False),
    ],
)
def test_a_configs_value_is_hidden_by_its_name(name: str, is_hidden: bool) -> None:
    # F194
    record = read(METADATA, CONFIG, 0, {"name": name, "value": "v"})
    assert shown(record)["value"] == (HIDDEN if is_hidden else "v")
    assert shown(record, show_secrets=True)["value"] == "v"
    assert shown(read(METADATA, CONFIG, 0, {"name": name, "value": None}))["value"] is None


def test_records_with_secrets_are_these() -> None:
    hiding = {
        kind.name
        for family in topic_families().values()
        for kind in family.record_types.values()
        if kind.value.has_secrets
    }
    assert hiding == {"ConfigRecord", "UserScramCredentialRecord"}


@pytest.mark.parametrize("value", [b"\x01\x63\x00", b"\x02\x04\x00", b"\x01\x04\x63", b"", b"\xff"])
def test_what_a_controller_wrote_can_hold_secrets_while_it_is_unknown(value: bytes) -> None:
    # F194: an unknown type, an unknown frame, an unknown version of ConfigRecord.
    assert read_internal_record(METADATA, None, value).may_hold_secrets
    assert not read_internal_record(OFFSETS, b"\0\x63", value).may_hold_secrets


@pytest.mark.parametrize(
    "value",
    [
        "jdbc:postgresql://app:geheim@db/shop",
        "Endpoint=sb://x;SharedAccessKeyName=n;SharedAccessKey=abc=;secret=y",
        "https://x.blob/c?sv=1&sig=abc",
    ],
)
def test_a_configs_value_is_hidden_where_it_has_a_secret_in_it(value: str) -> None:
    record = read(METADATA, CONFIG, 0, {"name": "sink.url", "value": value})
    assert shown(record)["value"] == HIDDEN


def test_a_secret_inside_a_struct_is_one_of_the_message() -> None:
    secret = {"name": "s", "type": "bytes", "secret": True}
    outer = {"name": "f", "type": "[]S"}
    made = parse_message(
        {"name": "Made", "versions": "0", "fields": [outer], "structs": {"S": [secret]}}
    )
    assert made.has_secrets


def test_what_cannot_be_read_has_no_text() -> None:
    record = read_internal_record(OFFSETS, b"\0\x63", b"")
    assert (key_json(record), value_json(record)) == (None, None)
    tombstone = read_internal_record(OFFSETS, b"\0\x02\0\x01g", None)
    assert (key_json(tombstone), value_json(tombstone)) == ('{"group":"g"}', None)
