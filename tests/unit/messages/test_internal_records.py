"""The frames around messages, byte by byte as the specification has them. Rules: F188 to F191."""

import struct
from typing import Any

import pytest

from kafkalog.errors import SchemaError
from kafkalog.messages.catalog import topic_families
from kafkalog.messages.internal_records import read_control_record, read_internal_record
from kafkalog.messages.record_writer import write_record_key, write_record_value

OFFSETS, METADATA = "__consumer_offsets", "__cluster_metadata"
GROUP, TOPIC = b"\0\x01g", b"\0\x01t"
COMMIT_KEY = b"\0\x01" + GROUP + TOPIC + b"\0\0\0\x03"
TIME = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def commit(version: int, *, leader: bytes = b"", metadata: bytes = b"\0\x01m") -> bytes:
    offset, time = struct.pack(">q", 42), struct.pack(">q", TIME)
    return struct.pack(">h", version) + offset + leader + metadata + time


EPOCH = struct.pack(">i", 7)
COMMITS: dict[int, tuple[bytes, dict[str, Any]]] = {
    0: (commit(0), {}),
    1: (commit(1) + struct.pack(">q", TIME + 5), {"expireTimestamp": TIME + 5}),
    2: (commit(2), {}),
    3: (commit(3, leader=EPOCH), {"leaderEpoch": 7}),
    4: (
        commit(4, leader=EPOCH, metadata=b"\x02m") + b"\x01\x00\x10" + TOPIC_ID,
        {"leaderEpoch": 7, "topicId": "AAECAwQFBgcICQoLDA0ODw"},
    ),
}


@pytest.mark.parametrize("version", COMMITS)
def test_an_offset_commit_has_the_fields_of_its_version(version: int) -> None:
    # T36: only version 1 expires, only version 4 is flexible and names the topic's id.
    value, more = COMMITS[version]
    record = read_internal_record(OFFSETS, COMMIT_KEY, value)
    assert (record.record_type, record.name, record.value_version) == (1, "OffsetCommit", version)
    assert record.key == {"group": "g", "topic": "t", "partition": 3}
    assert record.value == {"offset": 42, "metadata": "m", "commitTimestamp": TIME} | more
    assert (record.reason, record.is_tombstone, record.is_control) == (None, False, False)


def test_unknown_tagged_fields_are_passed_over_by_their_size() -> None:
    # T36, F187: tags 0 and 9 in either order.
    start = commit(4, leader=EPOCH, metadata=b"\x02m")
    known, unknown = b"\x00\x10" + TOPIC_ID, b"\x09\x03abc"
    for tagged in (known + unknown, unknown + known):
        record = read_internal_record(OFFSETS, COMMIT_KEY, start + b"\x02" + tagged)
        assert record.reason is None
        assert (record.value or {})["topicId"] == "AAECAwQFBgcICQoLDA0ODw"


def test_a_tagged_field_that_is_not_there_has_its_default() -> None:
    start = commit(4, leader=EPOCH, metadata=b"\x02m")
    record = read_internal_record(OFFSETS, COMMIT_KEY, start + b"\x00")
    assert (record.value or {})["topicId"] == "A" * 22


def test_a_tombstone_has_a_key_and_no_version() -> None:
    record = read_internal_record(OFFSETS, COMMIT_KEY, None)
    assert record.is_tombstone
    assert (record.name, record.value_version, record.value) == ("OffsetCommit", None, None)
    assert record.reason is None


def test_bytes_behind_key_and_value_of_a_coordinator_are_ignored() -> None:
    # F188
    record = read_internal_record(OFFSETS, COMMIT_KEY + b"more", COMMITS[3][0] + b"more")
    assert record.reason is None
    assert (record.value or {})["leaderEpoch"] == 7


@pytest.mark.parametrize("number", [9, 18, 24, 99, -1])
def test_an_unknown_record_type_is_reported_and_no_error(number: int) -> None:
    # T37: 9 and 18 do not exist any more, others may come.
    record = read_internal_record(OFFSETS, struct.pack(">h", number) + GROUP, b"\0\0")
    assert (record.record_type, record.name, record.reason) == (number, None, "unknown_type")
    assert str(number) in str(record.detail)


@pytest.mark.parametrize("version", [5, 99, -1])
def test_an_unknown_version_is_reported_with_the_key_that_could_be_read(version: int) -> None:
    # T37
    value = struct.pack(">h", version) + b"whatever"
    record = read_internal_record(OFFSETS, COMMIT_KEY, value)
    assert (record.reason, record.value_version, record.value) == ("unknown_version", version, None)
    assert record.key == {"group": "g", "topic": "t", "partition": 3}
    assert "OffsetCommitValue" in str(record.detail)
    assert "0-4" in str(record.detail)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"\0\0", "no_key"),
        (b"", b"\0\0", "truncated"),
        (b"\0", b"\0\0", "truncated"),
        (COMMIT_KEY[:-1], COMMITS[3][0], "truncated"),
        (COMMIT_KEY, b"", "truncated"),
        (COMMIT_KEY, b"\0", "truncated"),
        (COMMIT_KEY, COMMITS[3][0][:-1], "truncated"),
        (b"\0\x01\xff\xff" + TOPIC + EPOCH, COMMITS[3][0], "malformed"),  # a null group
    ],
)
def test_what_cannot_be_read_is_reported(key: bytes | None, value: bytes, reason: str) -> None:
    # F191
    assert read_internal_record(OFFSETS, key, value).reason == reason


FENCE = b"\x01\x07\x00" + b"\0\0\0\x05" + b"\0\0\0\0\0\0\0\x09" + b"\x00"


def test_a_record_of_the_metadata_is_framed_by_three_numbers() -> None:
    # F189
    record = read_internal_record(METADATA, None, FENCE)
    assert (record.record_type, record.name, record.value_version) == (7, "FenceBrokerRecord", 0)
    assert (record.key, record.value) == (None, {"id": 5, "epoch": 9})
    assert (record.reason, record.is_tombstone) == (None, False)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, None, "no_value"),
        (b"", FENCE, "unexpected_key"),
        (None, b"\x00" + FENCE[1:], "unknown_version"),
        (None, b"\x02" + FENCE[1:], "unknown_version"),
        (None, b"\x01\x06" + FENCE[2:], "unknown_type"),
        (None, b"\x01\x80\x01" + FENCE[2:], "unknown_type"),
        (None, b"\x01\x07\x01" + FENCE[3:], "unknown_version"),
        (None, b"\x01\x80\x80\x02" + FENCE[2:], "malformed"),
        (None, b"\x01\x07\x80\x80\x02" + FENCE[3:], "malformed"),
        (None, FENCE + b"\0" * 2**23, "too_large"),
        (None, FENCE + b"\0", "trailing_bytes"),
        (None, FENCE[:-1], "truncated"),
        (None, b"", "truncated"),
        (None, b"\x01\xff", "truncated"),
        (None, b"\x01\xff\xff\xff\xff\xff\xff", "malformed"),
    ],
)
def test_metadata_must_be_framed_exactly(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    # T40: frame version 1 and no other; F189: nothing may follow.
    record = read_internal_record(METADATA, key, value)
    assert (record.reason, record.value) == (reason, None)


REMOTE = "__remote_log_metadata"
# Type 2, version 0: the name t, its id, partition 3, broker 5, the time 9, state 2.
PARTITION = b"\x02t" + TOPIC_ID + b"\0\0\0\x03\0"
REMOTE_DELETE = b"\x01\x02\0" + PARTITION + b"\0\0\0\x05" + b"\0" * 7 + b"\x09" + b"\x02\0"


@pytest.mark.parametrize("key", [None, b"", b"id:t:3:77:4", b"\0\x01\xff"])
def test_a_record_of_tiered_storage_may_have_any_key(key: bytes | None) -> None:
    # F189: KIP-1266 compacts the topic, and has had several forms of keys.
    record = read_internal_record(REMOTE, key, REMOTE_DELETE)
    assert (record.reason, record.key, record.is_tombstone) == (None, None, False)
    assert record.value is not None
    assert (record.value["brokerId"], record.value["eventTimestampMs"]) == (5, 9)


def test_a_keyed_record_of_tiered_storage_without_a_value_deletes() -> None:
    # F189
    record = read_internal_record(REMOTE, b"id:t:3:77:4", None)
    assert (record.reason, record.is_tombstone, record.value) == (None, True, None)
    assert read_internal_record(REMOTE, None, None).reason == "no_value"
    assert read_internal_record(REMOTE, b"k", REMOTE_DELETE + b"\0").reason == "trailing_bytes"


def test_a_marker_has_a_version_in_front_of_its_message() -> None:
    # T19
    for number, name in ((0, "ABORT"), (1, "COMMIT")):
        key = struct.pack(">hh", 0, number)
        record = read_control_record(key, b"\0\0" + EPOCH)
        assert (record.is_control, record.name, record.key_version) == (True, name, 0)
        assert (record.value_version, record.value) == (0, {"coordinatorEpoch": 7})


def test_a_later_marker_is_read_as_far_as_it_is_known() -> None:
    # F190: another version of key or value, and longer keys.
    record = read_control_record(b"\0\x05\0\x01more", b"\0\x09" + EPOCH + b"more")
    assert (record.name, record.key_version, record.value_version) == ("COMMIT", 5, 9)
    assert (record.value, record.reason) == ({"coordinatorEpoch": 7}, None)
    assert read_control_record(b"\0\0\0\x01", b"\xff\xff" + EPOCH).reason == "unknown_version"


def test_values_of_krafts_control_records_begin_with_their_version() -> None:
    # T19: there is no other in front.
    voters = b"\x02" + b"\0\0\0\x01" + b"\x00"
    value = b"\0\0" + b"\0\0\0\x01" + voters + voters + b"\x00"
    record = read_control_record(b"\0\0\0\x02", value)
    assert (record.name, record.value_version) == ("LEADER_CHANGE", 0)
    voter = [{"voterId": 1}]
    expected = {"version": 0, "leaderId": 1, "voters": voter, "grantingVoters": voter}
    assert record.value == expected
    record = read_control_record(b"\0\0\0\x05", b"\0\0" + b"\0\x01" + b"\x00")
    assert (record.name, record.value) == ("KRAFT_VERSION", {"version": 0, "kRaftVersion": 1})


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", "no_key"),
        (b"\0\0\0", b"", "truncated"),
        (b"\0\0\0\x07", b"", "unknown_type"),
        (b"\0\0\xff\xff", b"", "unknown_type"),
        (b"\0\0\0\x01", None, "no_value"),
        (b"\0\0\0\x01", b"\0", "truncated"),
        (b"\0\0\0\x04", b"\0\x01\0", "unknown_version"),
    ],
)
def test_control_records_that_cannot_be_read_are_reported(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    assert read_control_record(key, value).reason == reason


def test_other_topics_are_refused_naming_those_that_are_known() -> None:
    with pytest.raises(SchemaError, match=r"orders.*__consumer_offsets"):
        read_internal_record("orders", b"", b"")


def test_what_is_written_is_what_the_specification_says() -> None:
    key = write_record_key(OFFSETS, 1, {"group": "g", "topic": "t", "partition": 3})
    values = {"offset": 42, "metadata": "m", "commitTimestamp": TIME, "leaderEpoch": 7}
    assert key == COMMIT_KEY
    assert write_record_value(OFFSETS, 1, 3, values) == COMMITS[3][0]
    values["topicId"] = "AAECAwQFBgcICQoLDA0ODw"
    assert write_record_value(OFFSETS, 1, 4, values) == COMMITS[4][0]
    assert write_record_key(METADATA, 7, {}) is None
    assert write_record_value(METADATA, 7, 0, {"id": 5, "epoch": 9}) == FENCE


@pytest.mark.parametrize("topic", topic_families())
def test_no_record_of_an_unknown_type_is_written(topic: str) -> None:
    with pytest.raises(SchemaError, match="99"):
        write_record_value(topic, 99, 0, {})
