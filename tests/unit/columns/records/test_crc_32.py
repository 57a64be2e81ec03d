"""The kernel that takes checksums of messages inside a compressed one, against zlib. F40, F48."""

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.records.message_kernels import crc_32, slicing_tables

TABLES = slicing_tables()


def checksum(data: bytes, begin: int, end: int) -> int:
    return int(crc_32(np.frombuffer(bytearray(data), dtype=np.uint8), begin, end, TABLES))


def test_the_check_value_of_the_algorithm() -> None:
    # F40: CRC-32/ISO-HDLC of "123456789", from the catalogue of CRC algorithms.
    assert checksum(b"123456789", 0, 9) == 0xCBF43926


@given(st.binary(max_size=80), st.data())
def test_any_stretch_of_any_bytes_has_zlibs_checksum(data: bytes, places: st.DataObject) -> None:
    # F40
    end = places.draw(st.integers(0, len(data)))
    begin = places.draw(st.integers(0, end))
    assert checksum(data, begin, end) == zlib.crc32(data[begin:end])


@pytest.mark.parametrize("begin", range(9))
@pytest.mark.parametrize("rest", range(9))
def test_bytes_before_and_behind_the_slices_of_eight(begin: int, rest: int) -> None:
    # F40
    data = random.Random(1).randbytes(200)
    assert checksum(data, begin, 176 + rest) == zlib.crc32(data[begin : 176 + rest])
