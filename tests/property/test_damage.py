"""Generated damage is reported, and what is sound is read, says an independent oracle."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.logs.both_readers import by_kernels, by_reference
from tests.support.logs.damage_oracle import batch_spans, expectation, is_covered, overlaps
from tests.support.logs.seeded_segments import BATCHES, sound_segment


def check(sound: bytes, damaged: bytes) -> None:
    expected = expectation(sound, damaged)
    account, rows = by_reference(damaged, 0)
    assert by_kernels(damaged, 0) == (account, rows)
    reported = [(row[0], row[0] + row[1]) for row in account if row[2] != "none" or row[3]]
    assert is_covered(expected.damaged, reported)
    for span in expected.intact:
        assert not any(overlaps(span, other) for other in reported), span
    assert {start for start, _ in expected.intact} == {row[-1] for row in rows}


seeds = st.integers(0, 2**32)


@given(seeds, st.data())
def test_a_range_of_zeros_or_nonsense(seed: int, data: st.DataObject) -> None:
    # F62 to F68, F75, T3, T4
    sound = sound_segment(seed)
    start = data.draw(st.integers(0, len(sound) - 30))
    end = data.draw(st.integers(start + 30, min(len(sound), start + 700)))
    # Not just the first bytes of a header: what no checksum covers has a test of its own.
    end += max(
        (30 - (end - first) for first, _ in batch_spans(sound) if 0 <= end - first < 30), default=0
    )
    size = end - start
    filling = data.draw(st.sampled_from([bytes(size), random.Random(seed).randbytes(size)]))
    check(sound, sound[:start] + filling + sound[end:])


@given(seeds, st.data())
def test_a_block_that_was_inserted(seed: int, data: st.DataObject) -> None:
    # F65: also in the middle of a batch.
    sound = sound_segment(seed)
    position = data.draw(st.integers(0, len(sound)))
    block = random.Random(seed).randbytes(data.draw(st.integers(20, 300)))
    check(sound, sound[:position] + block + sound[position:])


@given(seeds, st.data())
def test_a_cut_end(seed: int, data: st.DataObject) -> None:
    # F61, T3
    sound = sound_segment(seed)
    check(sound, sound[: data.draw(st.integers(0, len(sound) - 1))])


@given(seeds, st.data())
def test_a_flipped_bit_under_a_checksum(seed: int, data: st.DataObject) -> None:
    # F11, F64: any bit from the checksum on.
    sound = bytearray(sound_segment(seed))
    start, end = data.draw(st.sampled_from(batch_spans(bytes(sound))))
    bit = data.draw(st.integers(8 * (start + 17), 8 * end - 1))
    damaged = bytearray(sound)
    damaged[bit // 8] ^= 1 << bit % 8
    check(bytes(sound), bytes(damaged))


@given(seeds, st.integers(1, BATCHES - 2), st.sampled_from([*range(17)]), st.integers(0, 7))
def test_a_flipped_bit_where_no_checksum_looks(seed: int, index: int, byte: int, bit: int) -> None:
    # F63, F67, F70 to F72, T1, T2: base offset, length, leader epoch, magic of a middle batch.
    sound = sound_segment(seed)
    damaged = bytearray(sound)
    position = batch_spans(sound)[index][0] + byte
    damaged[position] ^= 1 << bit
    expected = expectation(sound, bytes(damaged))
    account, rows = by_kernels(bytes(damaged), 0)
    reported = [(row[0], row[0] + row[1]) for row in account if row[2] != "none" or row[3]]
    # A leader epoch of -1 and below is none: brokers write it too, and it cannot be recognized.
    if not (byte == 12 and bit == 7):
        assert is_covered(expected.damaged, reported)
    for span in expected.intact:
        assert not any(overlaps(span, other) for other in reported), span
    assert {start for start, _ in expected.intact} <= {row[-1] for row in rows}


@given(seeds, st.data())
def test_two_damaged_places(seed: int, data: st.DataObject) -> None:
    # F75: what lies between and after them is read.
    sound = sound_segment(seed)
    spans = batch_spans(sound)
    first, second = sorted(data.draw(st.sets(st.integers(0, BATCHES - 1), min_size=2, max_size=2)))
    damaged = bytearray(sound)
    for index in (first, second):
        start, end = spans[index]
        position = data.draw(st.integers(start, end - 1))
        filled = min(end, position + 40)
        damaged[position:filled] = random.Random(seed + index).randbytes(filled - position)
    account, rows = by_reference(bytes(damaged), 0)
    assert by_kernels(bytes(damaged), 0) == (account, rows)
    untouched = {spans[i][0] for i in range(BATCHES) if i not in (first, second)}
    assert {row[-1] for row in rows} == untouched


@pytest.mark.parametrize("kind", ["zeros", "nonsense"])
def test_a_whole_file_of_nothing_is_read_in_bounded_time(kind: str) -> None:
    # F62: a preallocated file, and one of noise.
    size = 4 * 1024 * 1024
    data = bytes(size) if kind == "zeros" else random.Random(1).randbytes(size)
    account, rows = by_kernels(data, 0, in_pieces=True)
    assert (sum(row[1] for row in account), rows) == (size, [])
