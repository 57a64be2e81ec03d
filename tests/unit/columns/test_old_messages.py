"""Compressed messages of format 0 and 1 by the fast reader, case by case (F43 to F48)."""

import pytest

from kafkalog.format.message_set import write_old_message
from kafkalog.wire.compression import CompressionType, compress
from tests.support.logs.both_readers import by_kernels

GZIP = CompressionType.GZIP


def inner(*offsets: int, magic: int = 1) -> bytes:
    """Messages with the given offsets and the times 100 + offset."""
    return b"".join(
        write_old_message(offset, magic, b"k", b"v", timestamp_ms=100 + offset)
        for offset in offsets
    )


def wrapper(offset: int, payload: bytes, *, magic: int = 1, append: bool = False) -> bytes:
    return write_old_message(
        offset,
        magic,
        None,
        compress(GZIP, magic, payload),
        timestamp_ms=77,
        attributes=GZIP | (8 if append else 0),
    )


def read(data: bytes) -> list[tuple[int, int, int]]:
    """Offset, timestamp and timestamp type of every record of a sound file."""
    account, rows = by_kernels(data, 0)
    assert {row[2] for row in account} == {"none"}
    return [row[:3] for row in rows]


@pytest.mark.parametrize(
    ("data", "records"),
    [
        # F44, T21: absolute offsets, no times.
        (
            wrapper(44, inner(40, 41, 44, magic=0), magic=0),
            [(40, -1, -1), (41, -1, -1), (44, -1, -1)],
        ),
        # F45, T20: the wrapper has the last offset; holes stay.
        (wrapper(44, inner(0, 1, 4)), [(40, 100, 0), (41, 101, 0), (44, 104, 0)]),
        (wrapper(44, inner(2, 3, 6)), [(40, 102, 0), (41, 103, 0), (44, 106, 0)]),
        # F45, T20: of offset 0, from an old client.
        (wrapper(0, inner(0, 1, 2)), [(0, 100, 0), (1, 101, 0), (2, 102, 0)]),
        # F46, T8: the wrapper's timestamp.
        (wrapper(1, inner(0, 1), append=True), [(0, 77, 1), (1, 77, 1)]),
        # F47, T23: messages of format 0 in a wrapper of format 1 have none all the same.
        (wrapper(1, inner(0, magic=0) + inner(1), append=True), [(0, -1, -1), (1, 77, 1)]),
        # F43: an incomplete message at the end is dropped.
        (wrapper(0, inner(0) + inner(1)[:-1]), [(0, 100, 0)]),
        (wrapper(0, inner(0) + inner(1)[:11]), [(0, 100, 0)]),
    ],
)
def test_offsets_and_times_of_inner_messages(
    data: bytes, records: list[tuple[int, int, int]]
) -> None:
    assert read(data) == records


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        # F43: no value, nothing in it, compressed twice.
        (write_old_message(0, 1, None, None, attributes=GZIP), "record_count"),
        (wrapper(0, b""), "record_count"),
        (wrapper(0, wrapper(0, inner(0))), "records"),
        (wrapper(0, inner(0)[:16] + b"\2" + inner(0)[17:]), "records"),
        # F41: zstd came with format 2.
        (write_old_message(0, 1, None, b"", attributes=CompressionType.ZSTD), "codec"),
        (write_old_message(0, 0, None, b"no gzip", attributes=GZIP), "compression"),
        # F44, F45: offsets that the wrapper denies.
        (wrapper(5, inner(0, 6)), "record_offsets"),
        (wrapper(5, inner(3, 4, magic=0), magic=0), "record_offsets"),
        # F48, T22
        (wrapper(0, inner(0)[:-1] + b"!"), "inner_checksum"),
    ],
)
def test_a_wrapper_that_holds_no_message_set_has_a_fault_and_no_records(
    data: bytes, fault: str
) -> None:
    account, rows = by_kernels(data, 0)
    assert ([row[2] for row in account], rows) == ([fault], [])
