"""A payload that is larger than what is turned into columns at once: the same rows and the same
faults. F57"""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.batches import segment_walk
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records import record_columns
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import MOST_HEADERS
from kafkalog.storage.files.files import InputFile
from kafkalog.wire.compression import CompressionType
from tests.support.logs.both_readers import by_kernels, by_reference
from tests.support.logs.forged_payloads import forged_wrappers
from tests.support.logs.hostile_files import batch, compressed, record
from tests.support.logs.reader_agreement import assert_readers_agree
from tests.support.logs.samples import batch as sound_batch
from tests.support.logs.samples import joined, segments
from tests.support.logs.samples import record as sample


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    """What is large begins with some bytes."""
    with patch.multiple(record_columns, OUTPUT_BYTES=40, _PIECE_BYTES=30, _MOST_ROWS=3):
        yield


@given(segments())
def test_segments_of_all_formats_and_codecs(segment: tuple[list[bytes], object]) -> None:
    assert_readers_agree(joined(segment[0]))


@given(segments(), st.data())
def test_one_flipped_bit(segment: tuple[list[bytes], object], data: st.DataObject) -> None:
    damaged = bytearray(joined(segment[0]))
    if damaged:
        bit = data.draw(st.integers(0, 8 * len(damaged) - 1))
        damaged[bit // 8] ^= 1 << bit % 8
    assert_readers_agree(bytes(damaged))


@given(forged_wrappers())
def test_messages_inside_a_compressed_one(wrapper: bytes) -> None:
    assert_readers_agree(wrapper + sound_batch(21))


@pytest.mark.parametrize(
    ("headers", "fault"), [(MOST_HEADERS, "none"), (MOST_HEADERS + 1, "too_large")]
)
def test_a_record_with_more_headers_than_a_message_of_1_mib_has_is_refused(
    headers: int, fault: str
) -> None:
    data = batch(compressed(record(0, headers=headers)), 1)
    assert len(data) < 300
    expected = by_reference(data)
    assert by_kernels(data) == expected
    assert [row[2] for row in expected[0]] == [fault]


def test_more_headers_than_there_are_bytes_are_malformed() -> None:
    # A count says nothing of memory where the record cannot have so many.
    parts = b"".join(record(0, headers=3)).replace(b"\x06\0\0", b"\xfe\xff\x7f\0\0")
    data = batch(compressed([parts]), 1)
    assert by_kernels(data) == by_reference(data)
    assert [row[2] for row in by_kernels(data)[0]] == ["records"]


@pytest.mark.parametrize("chunk_bytes", [100, 10_000])
def test_large_records_stay_what_they_are_while_the_file_is_read_on(
    chunk_bytes: int, tmp_path: Path
) -> None:
    # Their values are the bytes that were read, not copies, where nothing else needs the memory.
    values = [bytes([number]) * 200 for number in range(8)]
    codecs = (CompressionType.NONE, CompressionType.ZSTD) * 2
    batches = [
        write_batch(
            [sample(n, values[n]), sample(n + 1, values[n + 1])], BatchFields(compression=codec)
        )
        for n, codec in zip(range(0, 8, 2), codecs, strict=True)
    ]
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    faults: list[FaultyRange] = []
    with patch.object(segment_walk, "CHUNK_BYTES", chunk_bytes), InputFile(str(path)) as file:
        options = SegmentOptions()
        read = SegmentRecords(FileWindow(file), options, ("value",), {}, faults.append)
        rows = list(read.rows())
        SegmentRecords(FileWindow(file), options, (), {}, faults.append).check()
    assert [row["value"] for batch in rows for row in batch.to_pylist()] == values
    assert faults == []
