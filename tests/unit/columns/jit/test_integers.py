"""Kernels that read numbers, against the plain functions and Python's own. F10, F20; T11."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.jit.compiled import ByteArray
from kafkalog.columns.jit.integers import (
    signed_16,
    signed_32,
    signed_64,
    unsigned_32,
    varint,
    varlong,
)
from kafkalog.wire.varints import VarintError, read_varint, read_varlong, write_varint

Kernel = Callable[[ByteArray, int, int], tuple[int, int]]
Plain = Callable[[bytes, int, int], tuple[int, int]]
PAIRS = [pytest.param(varint, read_varint, id="32"), pytest.param(varlong, read_varlong, id="64")]

# Random bytes are nearly always short numbers; these go on up to the longest and beyond.
encoded_numbers = st.tuples(
    st.lists(st.integers(0x80, 0xFF), max_size=11), st.integers(0, 0x7F), st.binary(max_size=3)
).map(lambda parts: bytes(parts[0]) + bytes((parts[1],)) + parts[2])


def as_array(data: bytes) -> ByteArray:
    return np.frombuffer(bytearray(data), dtype=np.uint8)


def check(kernel: Kernel, plain: Plain, data: bytes, start: int, end: int) -> None:
    value, after = kernel(as_array(data), start, end)
    try:
        expected, size = plain(data, start, end)
    except VarintError:
        assert after == -1
    else:
        assert (value, after) == (expected, start + size)


@pytest.mark.parametrize(("kernel", "plain"), PAIRS)
@given(data=encoded_numbers | st.binary(max_size=14), places=st.data())
def test_variable_length_numbers_are_what_the_plain_functions_read(
    kernel: Kernel, plain: Plain, data: bytes, places: st.DataObject
) -> None:
    # F20, T11
    end = places.draw(st.integers(0, len(data)))
    check(kernel, plain, data, places.draw(st.integers(0, end)), end)


@pytest.mark.parametrize(("kernel", "plain"), PAIRS)
@pytest.mark.parametrize("longest", [4, 5, 6, 9, 10, 11])
@pytest.mark.parametrize("last", [0, 1, 0x0F, 0x10, 0x7F])
def test_the_last_bytes_of_the_longest_numbers(
    kernel: Kernel, plain: Plain, longest: int, last: int
) -> None:
    # F20, T11: where the width ends and where a byte too many begins.
    for filling in (b"\x80", b"\xff", b"\xaa"):
        data = filling * (longest - 1) + bytes((last,))
        check(kernel, plain, data, 0, len(data))


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_long_that_is_written_is_read(value: int) -> None:
    # F20
    encoded = write_varint(value)
    assert varlong(as_array(b"?" + encoded), 1, 1 + len(encoded)) == (value, 1 + len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_int_that_is_written_is_read(value: int) -> None:
    # F20
    encoded = write_varint(value)
    assert varint(as_array(b"?" + encoded), 1, 1 + len(encoded)) == (value, 1 + len(encoded))


edges = st.sampled_from([b"\0" * 9, b"\xff" * 9, b"?\x80" + b"\0" * 7, b"?\x7f" + b"\xff" * 7])


@given(st.binary(min_size=9, max_size=9) | edges)
def test_fixed_numbers_are_big_endian(data: bytes) -> None:
    # F10
    array = as_array(data)
    assert signed_64(array, 1) == int.from_bytes(data[1:9], "big", signed=True)
    assert unsigned_32(array, 1) == int.from_bytes(data[1:5], "big")
    assert signed_32(array, 1) == int.from_bytes(data[1:5], "big", signed=True)
    assert signed_16(array, 1) == int.from_bytes(data[1:3], "big", signed=True)
