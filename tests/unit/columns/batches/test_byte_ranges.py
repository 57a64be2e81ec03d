"""The account of a segment's bytes, as view `byte_ranges` and the checksum job give it."""

import struct
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.table_rows import table_batch
from kafkalog.format.message_set import write_message_set, write_old_message
from kafkalog.format.record_batch import BatchFields, with_checksum, write_batch
from kafkalog.format.records import Record
from kafkalog.storage.reading.log_bounds import RecordedEnd
from kafkalog.wire.compression import CompressionType
from tests.support.golden.fixture_sets import CONSUMERS, unique_segments
from tests.support.logs.samples import batch, consecutive, joined, segments
from tests.support.logs.segment_tables import byte_ranges
from tests.support.repository import Unpack

SIZE = len(batch(0))


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Position, length, verdict, batches, records, kind and severity."""
    names = ("position", "length", "verdict", "batches", "records", "kind", "severity")
    return [tuple(row.get(name) for name in names) for row in rows]


def assert_partition(rows: list[dict[str, Any]], size: int) -> None:
    position = 0
    for row in rows:
        assert row["position"] == position
        position += row["length"]
    assert position == size


@given(segments(), st.binary(max_size=150), st.data())
def test_rows_partition_the_file_whatever_is_in_it(
    segment: tuple[list[bytes], object], nonsense: bytes, data: st.DataObject
) -> None:
    # F62
    sound = joined(segment[0])
    start = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(start, len(sound)))
    damaged = sound[:start] + nonsense + sound[end:]
    assert_partition(byte_ranges(damaged, base_offset=0), len(damaged))


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_sound_file_of_a_real_broker_is_one_row(name: str, unpacked: Unpack) -> None:
    # F62, F73: what compaction and deletion leave does not count as damage either.
    for segment in unique_segments(unpacked(f"{name}.logs")):
        data = segment.path.read_bytes()
        rows = byte_ranges(data, base_offset=segment.base_offset)
        assert [(row["position"], row["length"], row["verdict"]) for row in rows] == [
            (0, len(data), "valid")
        ]


def test_sound_batches_in_a_row_are_one_row() -> None:
    (row,) = byte_ranges(joined(consecutive(3)), base_offset=0)
    assert row == {
        "position": 0,
        "length": 3 * SIZE,
        "verdict": "valid",
        "batches": 3,
        "records": 9,
        "base_offset": 0,
        "last_offset": 8,
        "expected_offset": 0,
        "least_timestamp_ms": 1000,
        "max_timestamp_ms": 1008,
    }


def test_records_of_compressed_messages_are_counted_too() -> None:
    # F43: their number stands in no header.
    inner = [Record(offset, 1, 0, None, b"value") for offset in range(4)]
    data = write_message_set(inner, 1, CompressionType.GZIP) + write_old_message(4, 1, None, b"")
    assert brief(byte_ranges(data, base_offset=0)) == [(0, len(data), "valid", 2, 5, None, None)]


def test_an_empty_file_is_one_empty_row() -> None:
    assert brief(byte_ranges(b"", base_offset=0)) == [(0, 0, "valid", 0, 0, None, None)]


def test_damage_between_sound_batches_is_faulty_and_after_them_trailing() -> None:
    # F62, F68, F69
    data = joined([batch(0), b"\x99" * 70, batch(3), b"\x99" * 80])
    assert brief(byte_ranges(data, base_offset=0)) == [
        (0, SIZE, "valid", 1, 3, None, None),
        (SIZE, 70, "faulty", 0, 0, "garbage", "error"),
        (SIZE + 70, SIZE, "valid", 1, 3, None, None),
        (2 * SIZE + 70, 80, "trailing", 0, 0, "garbage", "error"),
    ]


@pytest.mark.parametrize(
    ("tail", "kind"), [(b"\0" * 100, "zeros"), (batch(3)[:40], "truncated"), (b"\0" * 5, "zeros")]
)
@pytest.mark.parametrize(("following", "severity"), [(None, "information"), (6, "error")])
def test_a_short_tail_is_normal_in_the_last_segment_only(
    tail: bytes, kind: str, following: int | None, severity: str
) -> None:
    # F69, T3
    rows = byte_ranges(batch(0) + tail, base_offset=0, next_base_offset=following)
    assert brief(rows)[1] == (SIZE, len(tail), "trailing", 0, 0, kind, severity)


def test_a_damaged_batch_at_the_end_is_faulty_and_not_trailing() -> None:
    # F69: trailing bytes hold no batch.
    data = batch(0) + batch(3)[:-1] + b"!"
    assert brief(byte_ranges(data, base_offset=0))[1] == (
        SIZE,
        SIZE,
        "faulty",
        1,
        0,
        "checksum",
        "error",
    )


def with_attributes(encoded: bytes, attributes: int) -> bytes:
    """A batch v2 with other attributes under a right checksum."""
    return with_checksum(encoded[:21] + struct.pack(">H", attributes) + encoded[23:])


@pytest.mark.parametrize("bit", [7, 8, 9, 10, 11, 12, 13, 14, 15])
def test_a_batch_with_reserved_attribute_bits_is_sound_and_has_a_row_that_says_so(bit: int) -> None:
    # F12, F74, T12
    odd = with_attributes(batch(3), 1 << bit)
    rows = byte_ranges(joined([batch(0), odd, batch(6)]), base_offset=0)
    assert brief(rows) == [
        (0, SIZE, "valid", 1, 3, None, None),
        (SIZE, SIZE, "valid", 1, 3, "reserved_attributes", "information"),
        (2 * SIZE, SIZE, "valid", 1, 3, None, None),
    ]
    assert f"{1 << bit:#06x}" in rows[1]["detail"]


@pytest.mark.parametrize("bit", [3, 4, 6])
def test_attribute_bits_with_a_meaning_are_not_remarked(bit: int) -> None:
    # F12, F74
    data = with_attributes(batch(0), 1 << bit)
    assert brief(byte_ranges(data, base_offset=0)) == [(0, SIZE, "valid", 1, 3, None, None)]


@pytest.mark.parametrize(
    ("magic", "attributes", "is_odd"),
    [
        (0, 0, False),
        (0, 0b1000, True),
        (1, 0b1000, False),
        (0, 0b10000, True),
        (1, 0b10000, True),
        (0, 0x80, True),
        (1, 0x80, True),
    ],
)
def test_what_is_reserved_goes_by_the_format(magic: int, attributes: int, is_odd: bool) -> None:
    # F41, F74: bit 3 is the timestamp type from format 1 on.
    data = write_old_message(0, magic, None, b"value", attributes=attributes)
    (row,) = byte_ranges(data, base_offset=0)
    assert row.get("kind") == ("reserved_attributes" if is_odd else None)
    assert (row["verdict"], row["records"]) == ("valid", 1)


def test_a_leader_epoch_out_of_order_is_a_warning_and_its_records_stand() -> None:
    # F72
    parts = [batch(3 * i, epoch=epoch) for i, epoch in enumerate((5, 5, 9, 5, 5))]
    assert brief(byte_ranges(joined(parts), base_offset=0))[1] == (
        2 * SIZE,
        SIZE,
        "valid",
        1,
        3,
        "leader_epoch",
        "warning",
    )


@pytest.mark.parametrize(("is_compacted", "severity"), [(False, "warning"), (True, "information")])
def test_a_hole_up_to_the_next_segment_is_a_row_without_bytes(
    is_compacted: bool, severity: str
) -> None:
    # F73
    data = joined(consecutive(2))
    rows = byte_ranges(data, is_compacted=is_compacted, base_offset=0, next_base_offset=10)
    assert brief(rows)[1:] == [(2 * SIZE, 0, "valid", 0, 0, "segment_hole", severity)]
    assert (rows[1]["base_offset"], rows[1]["last_offset"]) == (6, 9)


@pytest.mark.parametrize("following", [6, None])
def test_no_hole_where_the_next_segment_follows_or_there_is_none(following: int | None) -> None:
    # F73, T33: offsets that begin above the file's name are none either.
    data = joined(consecutive(2))
    assert len(byte_ranges(data, base_offset=0, next_base_offset=following)) == 1
    assert len(byte_ranges(batch(3), base_offset=0, next_base_offset=6)) == 1


@pytest.mark.parametrize(("is_clean", "severity"), [(True, "error"), (False, "warning")])
def test_what_checkpoints_tell_beyond_the_last_batch_is_missing(
    is_clean: bool, severity: str
) -> None:
    # F76: cut between two batches, nothing of the file itself is damaged.
    told = RecordedEnd(9, is_clean)
    rows = byte_ranges(joined(consecutive(2)), recorded_end=told, base_offset=0)
    assert brief(rows)[1:] == [(2 * SIZE, 0, "valid", 0, 0, "missing_end", severity)]
    assert (rows[1]["base_offset"], rows[1]["last_offset"]) == (6, 8)
    assert len(byte_ranges(joined(consecutive(3)), recorded_end=told, base_offset=0)) == 1
    empty = byte_ranges(b"", recorded_end=told, base_offset=7)
    assert [(row.get("kind"), row.get("base_offset")) for row in empty] == [
        (None, None),
        ("missing_end", 7),
    ]


def test_a_few_bytes_that_nothing_says_are_a_log_are_not_an_unfinished_log() -> None:
    # F69
    (row,) = byte_ranges(b"hello\n")
    assert (row["kind"], row["severity"]) == ("truncated", "error")
    (row,) = byte_ranges(b"hello\n", base_offset=0)
    assert (row["kind"], row["severity"]) == ("truncated", "information")


def test_an_empty_segment_before_another_is_a_hole_from_its_name_on() -> None:
    # F73
    rows = byte_ranges(b"", base_offset=5, next_base_offset=8)
    assert [(row.get("kind"), row.get("base_offset"), row.get("last_offset")) for row in rows] == [
        (None, None, None),
        ("segment_hole", 5, 7),
    ]


def test_rows_become_columns_with_the_segments_own_values_on_each() -> None:
    data = joined([batch(0), b"\x99" * 70, batch(3)])
    columns = ("topic", "broker_id", "position", "kind", "stored_crc", "file_size")
    constants = {"topic": "orders", "broker_id": None, "file_size": len(data)}
    batch_of_rows = table_batch("byte_ranges", byte_ranges(data, base_offset=0), constants, columns)
    batch_of_rows.validate(full=True)
    assert [tuple(row.values()) for row in batch_of_rows.to_pylist()] == [
        ("orders", None, 0, None, None, len(data)),
        ("orders", None, SIZE, "garbage", None, len(data)),
        ("orders", None, SIZE + 70, None, None, len(data)),
    ]


def test_a_wrong_checksum_is_reported_with_both_numbers() -> None:
    # F11
    damaged = batch(3)[:-1] + b"!"
    row = byte_ranges(joined([batch(0), damaged, batch(6)]), base_offset=0)[1]
    stored = int.from_bytes(damaged[17:21], "big")
    assert (row["stored_crc"], row["computed_crc"]) == (stored, crc32c(damaged[21:]))


def test_a_batch_without_records_counts_as_a_batch() -> None:
    # F31, T5
    empty = write_batch([], BatchFields(base_offset=3, last_offset=5))
    rows = byte_ranges(batch(0) + empty + batch(6), base_offset=0)
    assert brief(rows) == [(0, 2 * SIZE + 61, "valid", 3, 6, None, None)]
