"""Which bytes of a remote file are requested, and when."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.storage.files.read_ahead import GAP_BYTES, LEAST_BYTES, MOST_BYTES, ReadAhead

MIB = 1024 * 1024


_NOISE = random.Random(1).randbytes(MIB + 13)


class Asked:
    """A file of some size, and what was read of it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ranges: list[tuple[int, int]] = []
        self.reader = ReadAhead(self.fetch, size)

    def fetch(self, position: int, size: int) -> bytes:
        assert size > 0
        assert position + size <= self.size
        self.ranges.append((position, size))
        return pattern(position, size)

    def read(self, position: int, size: int) -> bytes:
        data = bytearray(size)
        self.reader.read_into(position, memoryview(data))
        return bytes(data)


def pattern(position: int, size: int) -> bytes:
    """Bytes by their places, such that no two pages are equal."""
    start = position % len(_NOISE)
    return (_NOISE * (2 + size // len(_NOISE)))[start : start + size]


def test_a_single_read_asks_for_little() -> None:
    """F542."""
    asked = Asked(100 * MIB)
    asked.read(50 * MIB, 61)
    asked.reader.close()
    assert asked.ranges == [(50 * MIB, LEAST_BYTES)]


def test_jumps_ask_for_little_each() -> None:
    """F542."""
    asked = Asked(100 * MIB)
    for number in range(50):
        asked.read(2 * MIB * number, 61)
    asked.reader.close()
    assert asked.ranges == [(2 * MIB * number, LEAST_BYTES) for number in range(50)]


def test_who_reads_on_gets_more_with_each_request() -> None:
    """F542."""
    asked = Asked(64 * MIB)
    for position in range(0, 64 * MIB, LEAST_BYTES // 2):
        asked.read(position, 61)
    asked.reader.close()
    sizes = [size for _, size in asked.ranges]
    assert max(sizes) == MOST_BYTES
    assert len(sizes) < 20
    assert sum(sizes) == 64 * MIB


def test_nothing_is_requested_ahead_of_a_reader_that_jumps_back() -> None:
    asked = Asked(10 * MIB)
    asked.read(5 * MIB, 10)
    asked.read(0, 10)
    asked.read(5 * MIB, 10)
    asked.reader.close()
    assert asked.ranges == [(at, LEAST_BYTES) for at in (5 * MIB, 0, 5 * MIB)]


def test_an_error_ahead_comes_up_when_its_bytes_are_read() -> None:
    asked = Asked(4 * LEAST_BYTES)

    def fetch(position: int, size: int) -> bytes:
        if position >= 3 * LEAST_BYTES:
            raise OSError("gone")
        return pattern(position, size)

    reader = ReadAhead(fetch, asked.size)
    reader.read_into(0, memoryview(bytearray(LEAST_BYTES)))
    reader.read_into(LEAST_BYTES, memoryview(bytearray(2 * LEAST_BYTES)))
    with pytest.raises(OSError, match="gone"):
        reader.read_into(3 * LEAST_BYTES, memoryview(bytearray(9)))
    reader.close()


_SIZE = 3 * MIB


@given(st.lists(st.tuples(st.integers(0, _SIZE), st.integers(0, 2 * GAP_BYTES)), max_size=12))
def test_any_reads_get_the_bytes_of_their_places(reads: list[tuple[int, int]]) -> None:
    """F542."""
    asked = Asked(_SIZE)
    for position, wanted in reads:
        size = min(wanted, _SIZE - position)
        assert asked.read(position, size) == pattern(position, size)
    asked.reader.close()
