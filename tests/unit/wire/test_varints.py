"""F20: variable-length integers. Vectors from Protocol Buffers' description of zig-zag."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.wire.varints import VarintError, read_varint, read_varlong, write_varint

VECTORS = [
    (0, b"\x00"),
    (-1, b"\x01"),
    (1, b"\x02"),
    (-2, b"\x03"),
    (63, b"\x7e"),
    (-64, b"\x7f"),
    (64, b"\x80\x01"),
    (300, b"\xd8\x04"),
    (2147483647, b"\xfe\xff\xff\xff\x0f"),
    (-2147483648, b"\xff\xff\xff\xff\x0f"),
]


@pytest.mark.parametrize(("value", "encoded"), VECTORS)
def test_known_numbers_read_and_write(value: int, encoded: bytes) -> None:
    assert write_varint(value) == encoded
    assert read_varint(encoded, 0, len(encoded)) == (value, len(encoded))
    assert read_varlong(encoded, 0, len(encoded)) == (value, len(encoded))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_a_long_takes_up_to_ten_bytes(value: int) -> None:
    encoded = write_varint(value)
    assert len(encoded) == 10
    assert read_varlong(encoded, 0, 10) == (value, 10)


def test_a_fifth_byte_that_promises_another_is_an_error() -> None:
    # T11
    with pytest.raises(VarintError):
        read_varint(b"\xff\xff\xff\xff\xff\x01", 0, 6)


def test_an_eleventh_byte_of_a_long_is_an_error() -> None:
    # T11
    with pytest.raises(VarintError):
        read_varlong(b"\xff" * 10 + b"\x01", 0, 11)


def test_bits_beyond_the_width_are_dropped() -> None:
    # T11: the fifth byte has room for four bits only; Java shifts the others out.
    assert read_varint(b"\xff\xff\xff\xff\x7f", 0, 5) == (-2147483648, 5)
    assert read_varlong(b"\xff" * 9 + b"\x7f", 0, 10) == (-(2**63), 10)


def test_data_that_end_inside_a_number_are_an_error() -> None:
    with pytest.raises(VarintError):
        read_varint(b"\x80\x80", 0, 2)


def test_the_end_counts_and_not_the_length_of_the_data() -> None:
    with pytest.raises(VarintError):
        read_varint(b"\x80\x01", 0, 1)


@given(st.integers(-(2**63), 2**63 - 1))
def test_whatever_is_written_is_read(value: int) -> None:
    encoded = write_varint(value)
    assert read_varlong(b"?" + encoded, 1, 1 + len(encoded)) == (value, len(encoded))
