"""Offset commits as columns are what the interpreter of messages and a plain replay make of each
record, whatever its bytes are."""

import struct
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.inspection.groups.commit_columns import LastCommits
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.inspection.groups.group_metadata import group_rows
from kafkalog.inspection.groups.latest_commits import LatestCommits
from kafkalog.inspection.groups.offset_commits import CommitRows
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.messages.schema import ZERO_UUID
from kafkalog.schemas import table_fields

COLUMNS = tuple(field["name"] for field in table_fields("offset_commits"))
CONSTANTS = {"cluster_id": None, "input_path": "/logs", "internal_partition": 3}
RECORDS = record_schema(
    (
        "key",
        "value",
        "isControl",
        "offset",
        "timestampMs",
        "producerId",
        "isTransactional",
        "file",
        "brokerId",
    )
)


class Given(NamedTuple):
    """A record but for its offset."""

    key: bytes | None
    value: bytes | None
    producer: int | None = None
    is_control: bool = False
    timestamp_ms: int = 1_700_000_000_000


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    encoded = value.encode("utf-8", "surrogatepass")
    return struct.pack(">h", len(encoded)) + encoded


def compact(value: str | None) -> bytes:
    if value is None:
        return b"\x00"
    encoded = value.encode("utf-8", "surrogatepass")
    size = len(encoded) + 1
    length = bytes((size,)) if size < 0x80 else bytes((0x80 | size & 0x7F, size >> 7))
    return length + encoded


names = st.sampled_from(["", "a", "group", "größe", "x" * 126, "x" * 127, "x" * 200, None])
long_numbers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, 1_700_000_000_000])
numbers = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-1, 0, 5])
few_keys = st.sampled_from([("g", "t", 0), ("g", "t", 1), ("größe", "t", 0)])


@st.composite
def keys(draw: st.DrawFn) -> bytes:
    record_type = draw(st.sampled_from([1, 1, 1, 1, 0, 2, 17, -1]))
    group, topic, partition = draw(few_keys | st.tuples(names, names, numbers))
    return struct.pack(">h", record_type) + text(group) + text(topic) + struct.pack(">i", partition)


@st.composite
def values(draw: st.DrawFn) -> bytes:
    version = draw(st.sampled_from([0, 1, 2, 3, 3, 4, 4, 5, -1]))
    data = struct.pack(">hq", version, draw(long_numbers))
    if version >= 3:
        data += struct.pack(">i", draw(numbers))
    metadata = draw(names)
    data += compact(metadata) if version >= 4 else text(metadata)
    data += struct.pack(">q", draw(long_numbers))
    if version == 1:
        data += struct.pack(">q", draw(long_numbers))
    if version >= 4:
        topic_id = draw(st.binary(min_size=16, max_size=16) | st.just(bytes(16)))
        other = b"\x05\x02ab"
        tagged = [
            b"\x00",
            b"\x01\x00\x10" + topic_id,
            b"\x01\x05\x10" + topic_id,
            b"\x01\x00\x0f" + topic_id,
            b"\x01" + other,
        ]
        data += draw(st.sampled_from([*tagged, b"\x02\x00\x10" + topic_id + other, b""]))
    return data + draw(st.sampled_from([b"", b"", b"\x00rest"]))


@st.composite
def changed(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    """Cut, or with a byte that is another."""
    data = bytearray(draw(source))
    if not data or draw(st.booleans()):
        return bytes(data[: draw(st.integers(0, len(data)))])
    data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


producers = st.sampled_from([7, 8])
any_keys = keys() | keys() | changed(keys()) | st.none() | st.binary(max_size=8)
any_values = values() | values() | changed(values()) | st.none() | st.binary(max_size=8)
plain = st.tuples(any_keys, any_values).map(lambda pair: Given(*pair))
transactional = st.tuples(any_keys, any_values, producers).map(lambda three: Given(*three))
without_time = plain.map(lambda record: record._replace(timestamp_ms=-1))
markers = st.tuples(producers, st.sampled_from([ABORT, COMMIT])).map(
    lambda pair: Given(struct.pack(">hh", 0, pair[1]), struct.pack(">hi", 0, 0), pair[0], True)
)
records = st.one_of(plain, plain, without_time, transactional, markers)
timed = st.tuples(records, st.sampled_from([-1, 0, 1, 2])).map(
    lambda pair: pair[0]._replace(timestamp_ms=pair[1])
)


def arrow(given_records: list[Given], first_offset: int) -> pa.RecordBatch:
    rows = [
        {
            "key": record.key,
            "value": record.value,
            "isControl": record.is_control,
            "offset": first_offset + number,
            "timestampMs": record.timestamp_ms,
            "producerId": record.producer,
            "isTransactional": record.producer is not None,
            "file": "file",
            "brokerId": None,
        }
        for number, record in enumerate(given_records)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS)


class Read(NamedTuple):
    """A record of a commit or tombstone, as the interpreter reads it."""

    offset: int
    given: Given
    row: dict[str, Any]
    key: tuple[Any, ...] | None  # None where the record cannot be read


def read(offset: int, record: Given, high_watermark: int | None) -> Read | None:
    message = read_internal_record("__consumer_offsets", record.key, record.value)
    if message.record_type not in (0, 1):
        return None
    key, value = message.key or {}, message.value or {}
    row = {
        "group_id": key.get("group"),
        "topic": key.get("topic"),
        "partition": key.get("partition"),
        "is_tombstone": message.is_tombstone,
        "committed_offset": value.get("offset"),
        "leader_epoch": none_if(-1, value.get("leaderEpoch")),
        "metadata": value.get("metadata"),
        "commit_timestamp_ms": value.get("commitTimestamp"),
        "expire_timestamp_ms": none_if(-1, value.get("expireTimestamp")),
        "topic_id": none_if(ZERO_UUID, value.get("topicId")),
        "version": message.value_version,
        "is_transactional": record.producer is not None,
        "producer_id": record.producer,
        "is_confirmed": None if high_watermark is None else offset < high_watermark,
        "reason": message.reason,
        "detail": message.detail,
        "record_offset": offset,
        "record_timestamp_ms": none_if(-1, record.timestamp_ms),
        "file": "file",
        "broker_id": None,
        **CONSTANTS,
    }
    is_readable = message.key is not None and (message.is_tombstone or message.value is not None)
    return Read(offset, record, row, tuple(key.values()) if is_readable else None)


def none_if(sentinel: object, value: object) -> object:
    return None if value == sentinel else value


Effect = tuple[str | None, int | None]


def effect(place: int, everything: list[Given], found: dict[int, Read]) -> Effect:
    """F300 to F302, each commit by itself: what came first of all that could decide it."""
    one = found[place]
    if one.key is None:
        return None, None
    if one.given.producer is None or one.row["is_tombstone"]:
        return "applied", place
    for later in range(place + 1, len(everything)):
        record, other = everything[later], found.get(later)
        if record.is_control and record.producer == one.given.producer:
            if record.key == struct.pack(">hh", 0, ABORT):
                return "aborted", None
            between = (found[x] for x in range(place + 1, later) if x in found)
            same = [each.offset for each in between if each.key == one.key]
            took = (effect(x, everything, found) for x in same)
            is_older = any(name == "applied" and (at or 0) < later for name, at in took)
            return ("older", None) if is_older else ("applied", later)
        if other is not None and other.key == one.key:
            if other.row["is_tombstone"]:
                return "deleted", None
            if record.producer == one.given.producer:
                return "replaced", None
    return "open", None


@given(
    st.lists(records, max_size=12), st.integers(0, 12), st.integers(0, 3), st.none() | st.just(4)
)
def test_columns_are_what_the_interpreter_and_a_plain_replay_say(
    everything: list[Given], cut: int, before: int, high_watermark: int | None
) -> None:
    # F188, F300 to F303
    found = {
        offset: one
        for offset, record in enumerate(everything)
        if not record.is_control and (one := read(offset, record, high_watermark)) is not None
    }
    expected = []
    for offset, one in found.items():
        name, at = effect(offset, everything, found)
        at_ms = None if at is None else none_if(-1, everything[at].timestamp_ms)
        decided = {"effect": name, "effective_offset": at, "effective_timestamp_ms": at_ms}
        expected.append({**one.row, **decided})
    # The second batch is part of a larger one, as Arrow has it after sorting or slicing.
    cut = min(cut, len(everything))
    whole = arrow([*[Given(b"key", b"value")] * before, *everything[cut:]], cut - before)
    batches = [arrow(everything[:cut], 0), whole.slice(before)]
    rows = CommitRows(high_watermark, CONSTANTS, COLUMNS)
    got = [
        row for batch in (*rows.batches(batches), *rows.last_batches()) for row in to_rows(batch)
    ]
    assert sorted(got, key=lambda row: row["record_offset"]) == expected


def to_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    batch.validate(full=True)
    return batch.to_pylist()


@given(st.lists(records, max_size=6), st.sets(st.sampled_from(COLUMNS)))
def test_columns_are_the_same_asked_for_alone(everything: list[Given], asked: set[str]) -> None:
    some = tuple(name for name in COLUMNS if name in asked)
    alone, all_of_them = (
        [
            {name: row[name] for name in some}
            for batch in CommitRows(4, CONSTANTS, columns).batches([arrow(everything, 0)])
            for row in (batch.to_pylist() if columns else [{}] * batch.num_rows)
        ]
        for columns in (some, COLUMNS)
    )
    assert alone == all_of_them


KEY = struct.pack(">h", 1) + text("group") + text("topic") + struct.pack(">i", 3)
OLD_KEY = struct.pack(">h", 0) + KEY[2:]
TOPIC_ID = bytes(range(200, 216))
VALUES = [
    struct.pack(">hq", 0, 7) + text("some") + struct.pack(">q", 1_700_000_000_000),
    struct.pack(">hq", 1, 7) + text("") + struct.pack(">qq", 1_700_000_000_000, 5),
    struct.pack(">hq", 2, 7) + text("") + struct.pack(">q", 1_700_000_000_000),
    struct.pack(">hqi", 3, 7, 2) + text("m") + struct.pack(">q", 1_700_000_000_000),
    struct.pack(">hqi", 4, 7, 2) + compact("x" * 130) + struct.pack(">q", 9) + b"\x00",
    struct.pack(">hqi", 4, 7, 2) + compact("") + struct.pack(">q", 9) + b"\x01\x00\x10" + TOPIC_ID,
]


def neighbours(data: bytes) -> list[bytes]:
    """It, all its beginnings, and it with any one byte being some other."""
    cut = [data[:size] for size in range(len(data))]
    set_to = (0x00, 0x01, 0x02, 0x04, 0x0F, 0x7F, 0x80, 0x81, 0xC3, 0xFF)
    other = [
        data[:at] + bytes((byte,)) + data[at + 1 :] for at in range(len(data)) for byte in set_to
    ]
    return [data, data + b"\x00", *cut, *other]


def test_so_is_every_commit_with_one_byte_changed_or_its_end_missing() -> None:
    # F185 to F188
    everything = [
        *(
            Given(key, value)
            for key in (KEY, OLD_KEY)
            for each in VALUES
            for value in neighbours(each)
        ),
        *(Given(key, VALUES[0]) for each in (KEY, OLD_KEY) for key in neighbours(each)),
        *(Given(key, None) for key in neighbours(KEY)),
    ]
    found = (read(offset, record, None) for offset, record in enumerate(everything))
    expected = [
        {
            **one.row,
            "effect": None if one.key is None else "applied",
            "effective_offset": None if one.key is None else one.offset,
            "effective_timestamp_ms": None if one.key is None else one.given.timestamp_ms,
        }
        for one in found
        if one is not None
    ]
    rows = CommitRows(None, CONSTANTS, COLUMNS)
    got = [row for batch in rows.batches([arrow(everything, 0)]) for row in to_rows(batch)]
    assert sorted(got, key=lambda row: row["record_offset"]) == expected
    assert {row["reason"] for row in got} == {None, "truncated", "malformed", "unknown_version"}


@given(st.lists(timed, max_size=16), st.integers(0, 16), st.none() | st.sampled_from([0, 1, 2]))
def test_the_commits_that_count_need_no_others(
    everything: list[Given], cut: int, at_ms: int | None
) -> None:
    # F300 to F303, F324, F1435: those that others of their batch replace are left out.
    cut = min(cut, len(everything))
    batches = [arrow(everything[:cut], 0), arrow(everything[cut:], cut)]
    counting = (
        LatestCommits(None, CONSTANTS, COMMIT_COLUMNS)
        if at_ms is None
        else CommitRows(None, CONSTANTS, COMMIT_COLUMNS, LastCommits(at_ms))
    )
    some, of_all = (
        in_effect(rows, batches, at_ms)
        for rows in (counting, CommitRows(None, CONSTANTS, COMMIT_COLUMNS))
    )
    assert some == of_all


def in_effect(
    rows: CommitRows | LatestCommits, batches: list[pa.RecordBatch], at_ms: int | None
) -> list[dict[str, Any]]:
    found = CommitsInEffect(at_ms)
    for batch in (*rows.batches(batches), *rows.last_batches()):
        found.add(batch)
    kept = found.rows()
    counted = [] if kept is None else kept.to_pylist()
    return sorted(counted, key=str)


@given(st.lists(records, max_size=12), st.integers(0, 3))
def test_group_rows_are_those_of_all_other_types(everything: list[Given], before: int) -> None:
    # F188: view group_metadata does not look at commits.
    whole = arrow([*[Given(b"\x00\x02", None)] * before, *everything], -before)
    types = {
        offset: read_internal_record("__consumer_offsets", record.key, record.value).record_type
        for offset, record in enumerate(everything)
        if not record.is_control
    }
    found = {row["record_offset"]: row["record_type"] for row in group_rows(whole.slice(before))}
    assert found == {
        offset: number for offset, number in types.items() if number is not None and number >= 2
    }
