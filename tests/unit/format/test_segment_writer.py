"""Whole segments: the log and its two indexes. F100 to F102; T29."""

import json
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.message_set import write_old_message
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from tests.support.golden.fixture_sets import unique_segments
from tests.support.logs.both_readers import by_kernels
from tests.support.logs.damage_oracle import batch_spans
from tests.support.logs.samples import batch, joined, segments
from tests.support.repository import Unpack

SIZE = len(batch(0))


def entries(index: bytes, form: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(form, index))


def offset_entries(index: bytes) -> list[tuple[int, ...]]:
    """Relative offset and position."""
    return entries(index, ">ii")


def time_entries(index: bytes) -> list[tuple[int, ...]]:
    """Timestamp and relative offset."""
    return entries(index, ">qi")


def timed(first: int, *times: int) -> bytes:
    return write_batch([Record(first + i, time, 0, None, b"") for i, time in enumerate(times)])


def test_files_are_named_by_the_base_offset() -> None:
    # F91, F102
    files = write_segment([batch(42), batch(45)], 40)
    assert files.by_name == {
        "00000000000000000040.log": batch(42) + batch(45),
        "00000000000000000040.index": b"",
        "00000000000000000040.timeindex": struct.pack(">qi", 1047, 7),
    }


def test_an_offset_entry_comes_when_more_than_the_interval_is_written_since_the_last() -> None:
    # F100: two batches are not more than the interval, three are.
    batches = [batch(100 + 3 * i) for i in range(9)]
    files = write_segment(batches, 100, index_interval_bytes=2 * SIZE)
    assert offset_entries(files.index) == [(11, 3 * SIZE), (20, 6 * SIZE)]


@pytest.mark.parametrize(("value_bytes", "expected"), [(4000, [(2, 2)]), (4200, [(1, 1), (2, 2)])])
def test_the_interval_is_4096_bytes_unless_set_otherwise(
    value_bytes: int, expected: list[tuple[int, int]]
) -> None:
    # F100
    batches = [batch(i, 1, value=b"v" * value_bytes) for i in range(3)]
    size = len(batches[0])
    assert offset_entries(write_segment(batches, 0).index) == [
        (offset, place * size) for offset, place in expected
    ]


def test_a_time_entry_has_the_largest_time_so_far_and_the_last_offset_of_its_batch() -> None:
    # F101, T29: offset 3 has time 50, its batch ends with 5; times that go back add nothing.
    batches = [timed(0, 10, 5, 1), timed(3, 50, 7, 8), timed(6, 20), timed(7, 50), timed(8, 9, 60)]
    files = write_segment(batches, 0, index_interval_bytes=1)
    assert time_entries(files.timeindex) == [(50, 5), (60, 9)]


def test_the_time_index_ends_with_the_largest_time_of_the_segment() -> None:
    # F101: also where no offset entry is due.
    batches = [timed(10, 10), timed(11, 99, 98), timed(13, 30)]
    files = write_segment(batches, 10)
    assert (offset_entries(files.index), time_entries(files.timeindex)) == ([], [(99, 2)])


def test_messages_without_times_leave_the_time_index_empty() -> None:
    # F42, F101
    messages = [write_old_message(i, 0, None, b"v" * 100) for i in range(5)]
    files = write_segment(messages, 0, index_interval_bytes=200)
    size = len(messages[0])
    assert (offset_entries(files.index), files.timeindex) == ([(2, 2 * size), (4, 4 * size)], b"")


def test_a_batch_without_records_is_indexed_by_its_header() -> None:
    # F13, F31, F100
    empty = write_batch([], BatchFields(base_offset=3, last_offset=9))
    files = write_segment([batch(0), empty], 0, index_interval_bytes=SIZE - 1)
    assert offset_entries(files.index) == [(9, SIZE)]


def test_a_segment_without_batches_is_three_empty_files() -> None:
    files = write_segment([], 7)
    assert (files.log, files.index, files.timeindex) == (b"", b"", b"")


@given(segments(), st.integers(1, 300))
def test_what_is_written_is_read_and_its_indexes_lead_to_batches(
    segment: tuple[list[bytes], list[Record]], interval: int
) -> None:
    # F100 to F102
    batches, records = segment
    files = write_segment(batches, 0, index_interval_bytes=interval)
    account, rows = by_kernels(files.log, 0)
    assert files.log == joined(batches)
    assert [row[0] for row in rows] == [record.offset for record in records]
    last_offsets = {row[0]: row[7] for row in account}
    found = offset_entries(files.index)
    assert all(last_offsets[position] == offset for offset, position in found)
    # Between two entries there is more than the interval.
    places = [0, *(position for _, position in found)]
    assert all(late - early > interval for early, late in pairwise(places))
    times = time_entries(files.timeindex)
    assert times == sorted(set(times))
    assert {offset for _, offset in times} <= set(last_offsets.values())


# Topics of kafka44 whose batches came one by one to a broker that was not restarted meanwhile, so
# that their indexes show the rule and nothing else.
INDEXED = {
    "shop.codec-lz4",
    "shop.codec-snappy",
    "shop.codec-zstd",
    "shop.tx",
    "shop.retention.bytes",
}


def test_indexes_are_those_that_a_real_broker_has_written(unpacked: Unpack) -> None:
    # F100 to F102
    admin = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())
    settings = admin["topic_configs_not_default"]
    compared = 0
    for segment in unique_segments(unpacked("kafka44.logs")):
        if segment.topic not in INDEXED:
            continue
        data = segment.path.read_bytes()
        interval = int(settings[segment.topic].get("index.interval.bytes", 4096))
        batches = [data[start:end] for start, end in batch_spans(data)]
        files = write_segment(batches, segment.base_offset, index_interval_bytes=interval)
        for name, content in files.by_name.items():
            assert content == segment.path.with_name(name).read_bytes(), segment.path
        compared += len(offset_entries(files.index))
    assert compared > 100
