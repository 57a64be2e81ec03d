"""Entries of index files, in the bytes that brokers write. F100, F101."""

import pytest

from kafkalog.format.side_files.indexes import (
    OffsetEntry,
    TimeEntry,
    write_offset_index,
    write_time_index,
)

# The first entries of __cluster_metadata-0/00000000000000000218.{index,timeindex} in kafka44, and
# what kafka-dump-log says of them: "offset: 277 position: 4125", "timestamp: 1795246829445
# offset: 277".
OFFSET_ENTRY = bytes.fromhex("0000003b0000101d")
TIME_ENTRY = bytes.fromhex("000001a1fd0caf850000003b")


def test_an_offset_entry_is_the_relative_offset_and_the_position() -> None:
    # F100
    assert write_offset_index([OffsetEntry(277, 4125)], 218) == OFFSET_ENTRY


def test_a_time_entry_is_the_timestamp_and_the_relative_offset() -> None:
    # F101
    assert write_time_index([TimeEntry(1795246829445, 277)], 218) == TIME_ENTRY


def test_entries_follow_each_other_without_anything_between() -> None:
    # F100, F101
    offsets = [OffsetEntry(277, 4125), OffsetEntry(278, 4126)]
    assert write_offset_index(offsets, 218) == OFFSET_ENTRY + bytes.fromhex("0000003c0000101e")
    times = [TimeEntry(1795246829445, 277), TimeEntry(1795246829446, 278)]
    assert write_time_index(times, 218) == TIME_ENTRY + bytes.fromhex("000001a1fd0caf860000003c")


def test_an_index_without_entries_is_empty() -> None:
    # F100, F101
    assert write_offset_index([], 218) == b""
    assert write_time_index([], 218) == b""


@pytest.mark.parametrize("base", [0, 5_000_000_000])
def test_offsets_are_relative_so_that_they_fit_32_bits(base: int) -> None:
    # F70, F100, F101
    entry = write_offset_index([OffsetEntry(base + 2**31 - 1, 0)], base)
    assert entry == bytes.fromhex("7fffffff00000000")
    assert write_time_index([TimeEntry(0, base + 2**31 - 1)], base)[8:] == entry[:4]
