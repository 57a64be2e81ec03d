"""Reading from an offset to another: the rows of a full read between them, and faults likewise."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.format.records import Record
from tests.support.golden.fixture_sets import unique_segments
from tests.support.logs.both_readers import memory_window
from tests.support.logs.samples import batch, consecutive, joined, segments
from tests.support.logs.segment_tables import records_table
from tests.support.repository import Unpack

COLUMNS = ("offset", "timestampMs", "key", "value", "headers", "sequence", "position")


@given(segments(), st.integers(0, 50), st.integers(0, 50))
def test_records_between_two_offsets_are_those_that_were_written_there(
    segment: tuple[list[bytes], list[Record]], first: int, end: int
) -> None:
    # F95: a bound inside a batch hides its first records.
    epochs = [part[12:16] for part in segment[0] if part[16] == 2]
    assume(epochs == sorted(epochs))  # the test below has those that fall
    table = records_table(joined(segment[0]), COLUMNS, first_offset=first, end_offset=end)
    read = [
        (row["offset"], row["timestampMs"], row["key"], row["value"]) for row in table.to_pylist()
    ]
    assert read == [
        (record.offset, record.timestamp_ms, record.key, record.value)
        for record in segment[1]
        if first <= record.offset < end
    ]


def test_the_last_batch_is_read_though_the_next_one_contradicts_its_leader_epoch() -> None:
    # F72: its records stand, whichever epoch is right.
    data = joined([batch(0, epoch=0), batch(3, epoch=1), batch(6, epoch=0)])
    table = records_table(data, ("offset",), base_offset=0, end_offset=6)
    assert table.column("offset").to_pylist() == list(range(6))


@pytest.mark.parametrize("name", ["kafka39zk", "kafka010", "tiered43"])
def test_bounds_cut_real_files_where_filtering_would(name: str, unpacked: Unpack) -> None:
    cut = 0
    for segment in unique_segments(unpacked(f"{name}.logs")):
        data = segment.path.read_bytes()
        base = segment.base_offset
        rows = records_table(data, COLUMNS, base_offset=base).to_pylist()
        offsets = [row["offset"] for row in rows] or [base]
        first, end = offsets[len(offsets) // 3] + 1, offsets[2 * len(offsets) // 3] + 1
        bounds = {"base_offset": base, "first_offset": first, "end_offset": end}
        expected = [row for row in rows if first <= row["offset"] < end]
        assert records_table(data, COLUMNS, **bounds).to_pylist() == expected, segment.path
        cut += len(expected)
    assert cut > 100


def told(data: bytes, first: int, end: int) -> list[tuple[str, int]]:
    """The damaged ranges that a read from one offset to another reports."""
    faults: list[FaultyRange] = []
    records_table(
        data, ("offset",), faults=faults, base_offset=0, first_offset=first, end_offset=end
    )
    return [(fault.fault.label, fault.position) for fault in faults]


PARTS = consecutive(6)  # offsets 0 to 17
SIZE = len(PARTS[0])
DAMAGED_BATCH = joined([*PARTS[:2], PARTS[2][:-1] + b"!", *PARTS[3:]])
NO_BATCH = joined([*PARTS[:2], b"\x99" * SIZE, *PARTS[3:]])


@pytest.mark.parametrize(
    ("first", "end", "is_told"),
    [(0, 18, True), (6, 9, True), (8, 9, True), (0, 7, True), (9, 18, False), (0, 6, False)],
)
@pytest.mark.parametrize(("data", "kind"), [(DAMAGED_BATCH, "checksum"), (NO_BATCH, "garbage")])
def test_damage_is_reported_if_asked_offsets_may_have_been_in_it(
    data: bytes, kind: str, first: int, end: int, is_told: bool
) -> None:
    # The batches around bytes without a batch show which offsets are lost there: 6 to 8.
    assert told(data, first, end) == ([(kind, 2 * SIZE)] if is_told else [])


@pytest.mark.parametrize("first", [0, 6, 1000])
def test_what_damage_at_the_end_has_held_is_unknown(first: int) -> None:
    assert told(joined(PARTS[:2]) + b"\x99" * 70, first, 2000) == [("garbage", 2 * SIZE)]


def test_damage_wholly_below_the_asked_offsets_is_not_told() -> None:
    assert told(DAMAGED_BATCH, 9, 18) == []


def offsets_read(data: bytes, faults: list[FaultyRange], **bounds: Any) -> list[int]:
    table = records_table(data, ("offset",), base_offset=0, faults=faults, **bounds)
    return [int(offset) for offset in table.column("offset").to_pylist()]


def test_a_wrong_length_below_the_asked_offsets_swallows_none_of_them() -> None:
    # F64: six batches of a record; the second claims to reach to where the fourth begins.
    batches = [batch(offset, 1, value=bytes(59)) for offset in range(6)]
    length = int.from_bytes(batches[1][8:12], "big") + len(batches[2])
    batches[1] = batches[1][:8] + length.to_bytes(4, "big") + batches[1][12:]
    assert offsets_read(joined(batches), [], first_offset=2) == [2, 3, 4, 5]


@pytest.mark.parametrize(("position", "bit"), [(1, 6), (7, 1), (0, 7), (23, 7), (26, 1)])
def test_damage_is_reported_whatever_its_header_says(position: int, bit: int) -> None:
    # F65, F70, F71: offsets of a batch that is not believed do not say what it held.
    batches = [batch(offset) for offset in (0, 3, 6, 9)]
    damaged = bytearray(batches[2])
    damaged[position] ^= 1 << bit
    batches[2] = bytes(damaged)
    faults: list[FaultyRange] = []
    assert offsets_read(joined(batches), faults, first_offset=5, end_offset=8) == [5]
    assert [fault.position for fault in faults] == [len(batches[0]) + len(batches[1])]


def test_reading_stops_soon_behind_the_asked_offsets() -> None:
    # The last batch always waits for what comes next; the read does not continue for it.
    batches = [batch(100 * number, 100, value=bytes(10_000)) for number in range(20)]
    read = SegmentBatches(memory_window(joined(batches)), SegmentOptions(0, end_offset=1))
    assert sum(len(chunk.table) for chunk in read.chunks()) < 10


@pytest.mark.parametrize(("end", "read"), [(0, 0), (1, 1), (3, 3), (4, 4), (18, 18), (2**60, 18)])
def test_reading_ends_before_the_end_offset(end: int, read: int) -> None:
    table = records_table(joined(PARTS), ("offset",), base_offset=0, end_offset=end)
    assert table.column("offset").to_pylist() == list(range(read))


def test_the_log_ends_after_the_last_sound_batch() -> None:
    # F13, F96: damage after it does not count.
    data = joined([batch(0), batch(3), b"\x99" * 70])
    records = SegmentRecords(
        memory_window(data), SegmentOptions(0), ("offset",), {}, lambda fault: None
    )
    assert sum(batch.num_rows for batch in records.rows()) == 6
    assert records.log_end == 6
