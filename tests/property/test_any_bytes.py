"""Any bytes at all give rows or faults, the same by both readers, and never anything else."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record_batch import BatchFields, with_checksum, write_batch
from kafkalog.wire.compression import CompressionType
from tests.support.logs.both_readers import by_kernels
from tests.support.logs.reader_agreement import LIMIT, assert_readers_agree
from tests.support.logs.samples import consecutive, joined, record, segments


@given(st.binary(max_size=400), st.none() | st.integers(0, 2**62))
def test_random_bytes(data: bytes, base: int | None) -> None:
    assert_readers_agree(data, base)


@given(segments(), st.data())
def test_one_flipped_bit(segment: tuple[list[bytes], object], data: st.DataObject) -> None:
    damaged = bytearray(joined(segment[0]))
    if damaged:
        bit = data.draw(st.integers(0, 8 * len(damaged) - 1))
        damaged[bit // 8] ^= 1 << bit % 8
    assert_readers_agree(bytes(damaged))


@given(segments(), st.data())
def test_one_flipped_bit_under_a_right_checksum(
    segment: tuple[list[bytes], object], data: st.DataObject
) -> None:
    # F25 to F27, T13: nothing but the records themselves can tell.
    batches = list(segment[0])
    places = [i for i, part in enumerate(batches) if part[16] == 2]
    if places:
        index = data.draw(st.sampled_from(places))
        damaged = bytearray(batches[index])
        bit = data.draw(st.integers(8 * 21, 8 * len(damaged) - 1))
        damaged[bit // 8] ^= 1 << bit % 8
        batches[index] = with_checksum(bytes(damaged))
    assert_readers_agree(joined(batches))


@given(segments(), st.data())
def test_a_stretch_that_was_replaced(
    segment: tuple[list[bytes], object], data: st.DataObject
) -> None:
    sound = joined(segment[0])
    start = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(start, len(sound)))
    assert_readers_agree(sound[:start] + data.draw(st.binary(max_size=200)) + sound[end:])


@given(segments(), st.data())
def test_batches_in_the_wrong_place(
    segment: tuple[list[bytes], object], data: st.DataObject
) -> None:
    assert_readers_agree(joined(data.draw(st.permutations(segment[0] * 2))))


def test_a_file_cut_at_every_byte() -> None:
    # T3
    sound = joined(consecutive(3)) + write_batch(
        [record(9), record(10)], BatchFields(compression=CompressionType.LZ4)
    )
    for length in range(len(sound) + 1):
        assert_readers_agree(sound[:length])


@pytest.mark.parametrize("position", [8, 17, 23, 57])
@pytest.mark.parametrize("number", [-(2**31), -1, 0, 1, 13, 14, 48, 49, 2**24, 2**31 - 1])
def test_forged_lengths_checksums_and_counts(position: int, number: int) -> None:
    # F61, T27: lengths are checked before anything is allocated by them.
    parts = consecutive(3)
    forged = bytearray(parts[1])
    forged[position : position + 4] = struct.pack(">i", number)
    assert_readers_agree(joined([parts[0], bytes(forged), parts[2]]))
    assert_readers_agree(joined([parts[0], with_checksum(bytes(forged)), parts[2]]))


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_a_batch_that_inflates_beyond_the_limit_is_reported(codec: CompressionType) -> None:
    # F51, T27
    bomb = write_batch([record(3, b"\0" * (20 * LIMIT))], BatchFields(compression=codec))
    assert len(bomb) < LIMIT
    data = joined([consecutive(1)[0], bomb, consecutive(1, start=4)[0]])
    assert_readers_agree(data)
    account, rows = by_kernels(data, 0, max_batch_bytes=LIMIT)
    assert [row[2] for row in account] == ["none", "too_large", "none"]
    assert len(rows) == 6
