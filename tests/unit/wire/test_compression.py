"""F50 to F55: Kafka's framings of the codecs."""

import contextlib
import gzip
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.wire.compression import (
    CompressionError,
    CompressionType,
    OutputTooSmallError,
    compress,
    decompress_into,
)
from kafkalog.wire.lz4_frame import compress as lz4_compress
from kafkalog.wire.snappy_stream import XERIAL_HEADER

CODECS = [codec for codec in CompressionType if codec]
TEXT = b"to be compressed, " * 20_000  # several blocks of every codec


def decompress(codec: CompressionType, data: bytes, room: int = 1 << 20, magic: int = 2) -> bytes:
    output = memoryview(bytearray(room))
    return bytes(output[: decompress_into(codec, magic, memoryview(data), output)])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1, 2])
@given(data=st.binary(max_size=2000), repeats=st.integers(1, 50))
def test_what_is_compressed_comes_back(
    codec: CompressionType, magic: int, data: bytes, repeats: int
) -> None:
    assert decompress(codec, compress(codec, magic, data * repeats), magic=magic) == data * repeats


@pytest.mark.parametrize("codec", CODECS)
def test_output_that_fits_exactly_is_enough(codec: CompressionType) -> None:
    packed = compress(codec, 2, TEXT)
    assert decompress(codec, packed, room=len(TEXT)) == TEXT


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("room", [0, 1, 1000, len(TEXT) - 1])
def test_output_that_is_too_small_is_told_apart_from_bad_input(
    codec: CompressionType, room: int
) -> None:
    # F51
    with pytest.raises(OutputTooSmallError):
        decompress(codec, compress(codec, 2, TEXT), room=room)


@pytest.mark.parametrize("codec", CODECS)
@given(st.binary(max_size=300))
def test_any_bytes_decompress_or_are_refused(codec: CompressionType, data: bytes) -> None:
    with contextlib.suppress(CompressionError, OutputTooSmallError):
        decompress(codec, data, room=4096)


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_that_ends_early_is_refused(codec: CompressionType) -> None:
    with pytest.raises(CompressionError):
        decompress(codec, compress(codec, 2, TEXT)[:-9])


def test_gzip_members_follow_each_other_and_what_follows_them_is_ignored() -> None:
    # F50, T26
    packed = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two")
    assert decompress(CompressionType.GZIP, packed + b"no member") == b"onetwo"


def test_snappy_comes_raw() -> None:
    # F52, T25
    assert decompress(CompressionType.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_comes_in_xerial_blocks_and_in_several_streams() -> None:
    # F52, T25
    block = bytes(cramjam.snappy.compress_raw(b"block"))
    stream = XERIAL_HEADER + struct.pack(">i", len(block)) + block
    assert stream[:16].hex() == "82534e41505059000000000100000001"
    assert decompress(CompressionType.SNAPPY, stream * 3) == b"block" * 3


def test_snappy_blocks_longer_than_the_stream_are_refused() -> None:
    with pytest.raises(CompressionError, match="a block of 99 bytes, 1 are left"):
        decompress(CompressionType.SNAPPY, XERIAL_HEADER + struct.pack(">i", 99) + b"?")


def test_lz4_of_format_0_has_the_header_checksum_of_its_time() -> None:
    # F53, T24: the bytes are those that Kafka's clients write, KAFKA-3160.
    assert lz4_compress(b"", 0)[:7].hex() == "04224d1860401a"
    assert lz4_compress(b"", 1)[:7].hex() == lz4_compress(b"", 2)[:7].hex() == "04224d18604082"


@pytest.mark.parametrize("magic", [1, 2])
def test_lz4_of_later_formats_must_have_the_right_header_checksum(magic: int) -> None:
    # F53, T24
    with pytest.raises(CompressionError):
        decompress(CompressionType.LZ4, lz4_compress(TEXT, 0), magic=magic)


def test_lz4_of_format_0_may_have_any_header_checksum() -> None:
    # F53, T24
    packed = bytearray(lz4_compress(TEXT, 0))
    for checksum in (0x00, 0x1A, 0x82, 0xFF):
        packed[6] = checksum
        assert decompress(CompressionType.LZ4, bytes(packed), magic=0) == TEXT


def test_zstd_frames_need_not_say_their_size() -> None:
    # F54, T26: the frame header descriptor is 0.
    packed = compress(CompressionType.ZSTD, 2, TEXT)
    assert packed[4] == 0
    assert decompress(CompressionType.ZSTD, packed + packed) == TEXT + TEXT
