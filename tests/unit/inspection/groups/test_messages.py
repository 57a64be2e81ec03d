"""The rows of view `messages`, from record batches with control records in them."""

from typing import Any

import pytest

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.groups import messages as message_columns
from kafkalog.inspection.groups.messages import MessageColumns
from kafkalog.messages.record_writer import write_record_key, write_record_value
from tests.support.logs.both_readers import memory_window

TOPIC = "__consumer_offsets"
COLUMNS = tuple(arrow_schema("messages").names)
CONSTANTS: dict[str, str | int | None] = {
    "cluster_id": "c",
    "input_path": "/data",
    "topic": TOPIC,
    "partition": 3,
}


def commit(offset: int) -> Record:
    key = write_record_key(TOPIC, 1, {"group": "g", "topic": "t", "partition": 0})
    value = None if offset % 3 == 0 else write_record_value(TOPIC, 1, 3, {"offset": offset})
    return Record(offset, -1 if offset % 2 else 1000 + offset, 0, key, value)


def segment() -> bytes:
    marker = BatchFields(producer_id=7, is_control=True, is_transactional=True)
    return (
        write_batch([commit(offset) for offset in range(10)])
        + write_batch([Record(10, 5, 0, b"\0\0\0\x01", b"\0\0\0\0\0\x09")], marker)
        + write_batch([commit(offset) for offset in range(11, 20)])
    )


def _fail(fault: FaultyRange) -> None:
    pytest.fail(str(fault))


def read(columns: tuple[str, ...] = COLUMNS) -> list[list[dict[str, Any]]]:
    """The rows of each batch that comes out."""
    messages = MessageColumns(TOPIC, columns, CONSTANTS, show_secrets=False)
    records = SegmentRecords(
        memory_window(segment()),
        SegmentOptions(0, None),
        messages.record_columns,
        {"file": "f.log", "brokerId": 1},
        _fail,
        with_control_records=True,
    ).rows()
    made = [batch for record_batch in records for batch in messages.batches(record_batch)]
    for batch in made:
        batch.validate(full=True)
    return [batch.to_pylist() for batch in made]


def test_every_record_and_control_record_is_a_row() -> None:
    rows = [row for batch in read() for row in batch]
    assert [row["offset"] for row in rows] == list(range(20))
    assert [row["offset"] for row in rows if row["is_control"]] == [10]
    assert [row["offset"] for row in rows if row["is_tombstone"]] == [0, 3, 6, 9, 12, 15, 18]
    assert [row["version"] for row in rows if row["is_tombstone"]] == [None] * 7
    assert [row["timestamp_ms"] for row in rows[:3]] == [1000, None, 1002]
    assert {(row["topic"], row["partition"], row["file"], row["broker_id"]) for row in rows} == {
        (TOPIC, 3, "f.log", 1)
    }


@pytest.mark.parametrize(("limit", "value"), [("_MOST_ROWS", 4), ("_MOST_CHARACTERS", 300)])
def test_a_long_batch_comes_in_pieces_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    whole = [row for batch in read() for row in batch]
    monkeypatch.setattr(message_columns, limit, value)
    pieces = read()
    assert len(pieces) > 5
    assert [row for batch in pieces for row in batch] == whole


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_alone_is_what_it_is_among_all(column: str) -> None:
    whole = [row[column] for batch in read() for row in batch]
    assert [row for batch in read((column,)) for row in batch] == [{column: v} for v in whole]


def test_no_column_at_all_is_rows_all_the_same() -> None:
    assert sum(len(batch) for batch in read(())) == 20


def test_a_key_of_no_known_form_is_there_as_bytes() -> None:
    # F189
    columns = ("key", "raw_key", "is_tombstone", "reason")
    messages = MessageColumns("__remote_log_metadata", columns, CONSTANTS, show_secrets=False)
    data = write_batch([Record(0, 5, 0, b"id:t:3", None)])
    records = SegmentRecords(
        memory_window(data), SegmentOptions(0, None), messages.record_columns, {}, _fail
    ).rows()
    rows = [
        row for each in records for batch in messages.batches(each) for row in batch.to_pylist()
    ]
    assert rows == [{"key": None, "raw_key": b"id:t:3", "is_tombstone": True, "reason": None}]
