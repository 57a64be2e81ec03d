"""The account of a segment's bytes: framing, offsets, epochs, what follows damage (F60 to F75)."""

import struct

import pytest

from kafkalog.columns.batches.offset_plausibility import PATIENCE
from kafkalog.format.batch_header import BatchHeader
from kafkalog.format.faults import Fault
from kafkalog.format.message_set import write_message_set, write_old_message
from kafkalog.format.record_batch import BatchFields, with_checksum, write_batch
from kafkalog.format.records import Record
from kafkalog.format.resync import Finder
from kafkalog.wire.compression import CompressionType
from tests.support.logs.both_readers import by_kernels, by_reference
from tests.support.logs.samples import batch, consecutive, joined, record

Found = list[tuple[str, int, int]]


def account(data: bytes, base: int | None = 0, following: int | None = None) -> Found:
    """Fault, position and size of every range, by both readers."""
    rows, records = by_reference(data, base, following)
    assert by_kernels(data, base, following) == (rows, records)
    assert by_kernels(data, base, following, in_pieces=True) == (rows, records)
    return [(row[2], row[0], row[1]) for row in rows]


def faults(data: bytes, base: int | None = 0, following: int | None = None) -> Found:
    """The damaged ranges alone."""
    return [row for row in account(data, base, following) if row[0] != "none"]


def patched(encoded: bytes, position: int, content: bytes) -> bytes:
    return encoded[:position] + content + encoded[position + len(content) :]


def with_offset(encoded: bytes, offset: int) -> bytes:
    """The batch with another base offset, which no checksum covers."""
    return patched(encoded, 0, struct.pack(">q", offset))


SIZE = len(batch(0))


def test_batches_follow_each_other_to_the_end() -> None:
    # F60, F61: the last one ends exactly with the file.
    assert account(joined(consecutive(3))) == [
        ("none", 0, SIZE),
        ("none", SIZE, SIZE),
        ("none", 2 * SIZE, SIZE),
    ]


def test_a_segment_may_mix_all_formats() -> None:
    # F4, T23
    data = joined(
        [
            write_old_message(0, 0, None, b"v"),
            write_old_message(1, 1, None, b"v"),
            write_message_set([Record(2, 5, 0, None, b"")], 1, CompressionType.GZIP),
            batch(3),
        ]
    )
    assert faults(data) == []


def test_an_empty_file_has_no_ranges() -> None:
    assert account(b"") == []


@pytest.mark.parametrize("length", [1, 7, 8, 11, 12, 16, 17, 40, 61, SIZE - 1])
def test_a_file_that_ends_inside_a_batch_is_truncated(length: int) -> None:
    # F61, F68, T3
    assert faults(batch(0) + batch(3)[:length])[0][0] in ("truncated", "zeros")
    assert [row[1:] for row in faults(batch(0) + batch(3)[:length])] == [(SIZE, length)]


@pytest.mark.parametrize("length", [1, 17, 60, 61, 5000])
def test_zeros_behind_the_last_batch_are_told_apart_from_garbage(length: int) -> None:
    # F68, T3
    assert faults(batch(0) + b"\0" * length) == [("zeros", SIZE, length)]


def test_nonsense_behind_the_last_batch_is_garbage() -> None:
    # F68, T3
    assert faults(batch(0) + b"\x99" * 70) == [("garbage", SIZE, 70)]


def test_a_block_that_was_never_written_and_the_rest_of_its_batch_are_two_ranges() -> None:
    # F68
    data = joined([batch(0), b"\0" * 80 + batch(3, value=b"long" * 50)[80:], batch(6)])
    assert [row[0] for row in account(data)] == ["none", "zeros", "garbage", "none"]


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 13, 48, 2**31 - 1])
def test_a_length_that_is_impossible_leads_nowhere_and_the_next_batch_is_found(length: int) -> None:
    # F61, F64, F65
    damaged = patched(batch(3), 8, struct.pack(">i", length))
    assert faults(joined([batch(0), damaged, batch(6)])) == [("length", SIZE, SIZE)]


@pytest.mark.parametrize("magic", [3, 4, 127, 128, 255])
def test_an_unknown_magic_is_a_fault_and_its_length_is_still_believed(magic: int) -> None:
    # F63, F64, T1
    damaged = patched(batch(3), 16, bytes((magic,)))
    assert faults(joined([batch(0), damaged, batch(6)])) == [("magic", SIZE, SIZE)]


def test_a_flipped_payload_costs_one_batch() -> None:
    # F11, F75, T4: two damaged neighbours are two faults.
    damaged = patched(batch(3), SIZE - 1, b"!")
    assert faults(joined([batch(0), damaged, batch(6)])) == [("checksum", SIZE, SIZE)]
    other = patched(batch(6), SIZE - 1, b"!")
    assert faults(joined([batch(0), damaged, other, batch(9)])) == [
        ("checksum", SIZE, SIZE),
        ("checksum", 2 * SIZE, SIZE),
    ]


def test_a_length_that_swallows_its_neighbour_is_the_fault() -> None:
    # F67: batches of one size, so that a wrong length still leads to a batch.
    swallowing = patched(batch(3), 8, struct.pack(">i", 2 * SIZE - 12))
    assert faults(joined([batch(0), swallowing, batch(6), batch(9)])) == [("length", SIZE, SIZE)]
    assert faults(joined([batch(0), swallowing, batch(6)])) == [("length", SIZE, SIZE)]


# -- batches inside payloads ------------------------------------------------------------------


def outer_with(value: bytes, magic: int = 2) -> bytes:
    """A batch at offset 3 with a record whose value is given."""
    if magic < 2:
        return write_old_message(3, magic, b"key", value, timestamp_ms=1)
    return write_batch([record(3), record(4, value), record(5)])


def without_frame(outer: bytes) -> bytes:
    """The batch with a length that leads nowhere."""
    return patched(outer, 8, struct.pack(">i", -1))


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("nested_offset", [0, 2, 100])
def test_a_nested_batch_outside_the_offsets_that_are_due_is_not_a_batch(
    magic: int, nested_offset: int
) -> None:
    # F65: before the last believed batch, or beyond the next segment.
    outer = outer_with(joined([batch(nested_offset), batch(nested_offset + 3)]), magic)
    data = joined([batch(0), without_frame(outer), batch(6)])
    assert faults(data, 0, 100) == [("length", SIZE, len(outer))]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_nested_batch_with_fitting_offsets_is_known_as_a_value(magic: int, count: int) -> None:
    # F66
    nested = joined([batch(4, 1), *(batch(6 + i, 1) for i in range(count - 1))])
    outer = outer_with(nested, magic)
    data = joined([batch(0), without_frame(outer), batch(20)])
    assert faults(data, 0, 1000) == [("length", SIZE, len(outer))]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_nested_batches_stay_hidden_where_the_frame_is_whole(magic: int) -> None:
    # F64, F67: a flipped bit beside the nested batches.
    outer = outer_with(joined([batch(4), batch(7)]), magic)
    damaged = patched(outer, len(outer) - 1 if magic == 2 else 12, b"\x55")
    data = joined([batch(0), damaged, batch(20)])
    assert faults(data, 0, 1000) == [("checksum", SIZE, len(outer))]


NESTED = joined([batch(50), batch(53), batch(56)])


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("cut", [12, SIZE - 5, SIZE + 20])
def test_a_torn_tail_whose_value_holds_batches_is_a_torn_tail(magic: int, cut: int) -> None:
    # F66, F69: the value is cut, so that no length says where it ends in the file.
    outer = outer_with(NESTED, magic)[:-cut]
    assert faults(batch(0) + outer) == [("truncated", SIZE, len(outer))]


@pytest.mark.parametrize("following", [6, 100])
def test_what_follows_a_cut_value_of_batches_is_read(following: int) -> None:
    # F65, F66: bytes are missing in the middle of the file.
    outer = outer_with(NESTED)[: -SIZE // 2]
    data = joined([batch(0), outer, batch(following)])
    assert faults(data, 0, 1000) == [("length", SIZE, len(outer))]


def test_nested_batches_of_a_torn_batch_are_read_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    # F66: behind something else in the value, each was walked from to the last one.
    checked: list[int] = []
    computed_crc = Finder.computed_crc

    def counted(finder: Finder, position: int, header: BatchHeader) -> int:
        checked.append(position)
        return computed_crc(finder, position, header)

    monkeypatch.setattr(Finder, "computed_crc", counted)
    outer = outer_with(b"-" + joined(consecutive(100, 50)) + b"-")
    outer = patched(outer, 8, struct.pack(">i", len(outer)))  # leads into the next batch
    data = joined([batch(0), outer, batch(400)])
    rows, _ = by_reference(data, 0, 1000)
    assert [row[:3] for row in rows][1] == (SIZE, len(outer), "length")
    assert len(checked) < 4 * 100


def test_a_log_of_nested_logs_is_one_log() -> None:
    # F66: a mirrored topic whose every value is a batch of the same topic.
    parts = [write_batch([record(i, batch(i + 1, 1))]) for i in range(0, 40, 2)]
    parts[5] = without_frame(parts[5])
    position = len(joined(parts[:5]))
    assert faults(joined(parts)) == [("length", position, len(parts[5]))]


# -- offsets -----------------------------------------------------------------------------------


def test_gaps_are_normal() -> None:
    # F71, T33
    assert faults(joined([batch(5), batch(100), batch(5000)])) == []


@pytest.mark.parametrize("offset", [0, 2, 3, 4])
def test_a_batch_that_goes_back_or_overlaps_is_the_fault(offset: int) -> None:
    # F71, T2, T33
    data = joined([batch(0), batch(3), with_offset(batch(6), offset), batch(9)])
    assert faults(data) == [("offset_order", 2 * SIZE, SIZE)]


@pytest.mark.parametrize("offset", [10, 1000, 2**30])
def test_a_batch_that_jumps_ahead_is_the_fault_and_not_those_after_it(offset: int) -> None:
    # F71, T2
    data = joined([batch(0), with_offset(batch(3), offset), batch(6), batch(9)])
    assert faults(data) == [("offset_order", SIZE, SIZE)]


@pytest.mark.parametrize("offset", [0, 99, 2**31 + 100, 2**62, -1])
def test_offsets_outside_the_segment_are_a_fault(offset: int) -> None:
    # F70, T2, T31
    data = joined([batch(100), with_offset(batch(103), offset), batch(106)])
    assert faults(data, 100) == [("offset_range", SIZE, SIZE)]


def test_offsets_of_the_next_segment_are_a_fault() -> None:
    # F70
    assert faults(joined([batch(0), batch(3)]), 0, 5) == [("offset_range", SIZE, SIZE)]
    assert faults(joined([batch(0), batch(3)]), 0, 6) == []


def test_the_first_batch_may_begin_above_the_files_name() -> None:
    # F73, F91, T31, T33
    assert faults(batch(70), 50) == []


@pytest.mark.parametrize("bit", range(64))
def test_any_flipped_bit_of_a_base_offset_is_found(bit: int) -> None:
    # F70, F71, T2: by file name and continuity, in the middle of a segment.
    offset = 3 ^ 1 << bit
    middle = with_offset(batch(3), offset - 2**64 if offset >= 2**63 else offset)
    data = joined([batch(0), middle, batch(6), batch(9)])
    assert faults(data, 0, 12) != []
    assert [row[1] for row in faults(data, 0, 12)] == [SIZE]


# -- leader epochs ------------------------------------------------------------------------------


def epoch_faults(epochs: list[int]) -> list[int]:
    """Which of batches with these leader epochs are out of order, by both readers."""
    data = joined([batch(3 * i, epoch=epoch) for i, epoch in enumerate(epochs)])
    rows, records = by_reference(data, 0)
    assert by_kernels(data, 0) == (rows, records)
    assert len(records) == 3 * len(epochs)
    return [i for i, row in enumerate(rows) if row[3]]


@pytest.mark.parametrize(
    ("epochs", "wrong"),
    [
        ([0, 0, 1, 1, 5], []),
        ([3, 9, 3, 3], [1]),
        ([9, 3, 3], [0]),
        ([3, 5, 5, 4, 5], [3]),
        ([3, 5, 1, 5], [2]),
        ([-1, 4, -1, 4], []),
    ],
)
def test_leader_epochs_do_not_fall(epochs: list[int], wrong: list[int]) -> None:
    # F72, T2: the records are read all the same.
    assert epoch_faults(epochs) == wrong


@pytest.mark.parametrize("bit", range(32))
def test_any_flipped_bit_of_a_leader_epoch_in_the_middle_is_found(bit: int) -> None:
    # F72, T2: a negative one is none, which brokers write too; that flip alone stays unseen.
    epoch = 3 ^ 1 << bit
    expected = [] if bit == 31 else [1]
    assert epoch_faults([3, epoch - 2**32 if epoch >= 2**31 else epoch, 3, 3]) == expected


def test_a_batch_waits_for_its_follower_over_many_damaged_ones_but_not_for_ever() -> None:
    # F71: after so many damaged ranges it is believed as it is.
    small = write_batch([record(1)])
    damaged = patched(small, len(small) - 1, b"!")
    jumped = with_offset(batch(0), 1000)
    few = joined([jumped, *[damaged] * (PATIENCE - 1), batch(5)])
    assert faults(few)[0] == ("offset_order", 0, SIZE)
    many = joined([jumped, *[damaged] * (PATIENCE + 1), batch(5)])
    assert faults(many)[0][1] == SIZE  # and what follows is what does not fit


def test_attribute_bits_without_meaning_are_not_a_fault_of_the_batch() -> None:
    # F12, F74
    encoded = bytearray(write_batch([record(0)], BatchFields()))
    assert Fault.RESERVED_ATTRIBUTES.severity.name == "INFORMATION"
    encoded[21] = 0x40
    assert faults(with_checksum(bytes(encoded))) == []
