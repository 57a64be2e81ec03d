"""The part of a file that is in memory: what it holds, where, and how much at most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.segment_walk import CHUNK_BYTES
from kafkalog.columns.batches.window import SEARCH_BYTES, FileWindow, MemoryWindow, WindowBytes
from kafkalog.columns.records.segment_reader import SegmentBatchRows
from tests.support.logs.both_readers import BytesSource, memory_window
from tests.support.logs.samples import batch, consecutive, joined


class CountingSource(BytesSource):
    """Notes which bytes are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.places: list[tuple[int, int]] = []

    def read_into(self, position: int, target: memoryview) -> None:
        self.places.append((position, position + len(target)))
        super().read_into(position, target)


loads = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 120)), max_size=8)


@given(st.binary(min_size=300, max_size=300), loads)
def test_a_file_window_holds_the_bytes_that_were_requested(
    data: bytes, loads: list[tuple[int, int]]
) -> None:
    window = FileWindow(BytesSource(data))
    for start, size in loads:
        window.load(start, size)
        assert (window.position, window.filled) == (start, min(size, 300 - start))
        assert window.data[: window.filled].tobytes() == data[start : start + size]


@given(loads)
def test_a_file_window_is_no_larger_than_the_largest_piece_asked_for(
    loads: list[tuple[int, int]],
) -> None:
    window = FileWindow(BytesSource(bytes(300)))
    for start, size in loads:
        window.load(start, size)
    assert len(window.data) <= max((size for _, size in loads), default=0)


def test_bytes_that_are_there_already_are_not_read_again() -> None:
    source = CountingSource(bytes(100))
    window = FileWindow(source)
    for start, size in ((0, 40), (30, 40), (30, 20), (35, 65), (0, 10)):
        window.load(start, size)
    assert source.places == [(0, 40), (40, 70), (50, 100), (0, 10)]


def test_a_file_window_ends_with_the_file() -> None:
    window = FileWindow(BytesSource(b"0123456789"))
    window.load(7, 100)
    assert (window.size, window.filled, window.data[:3].tobytes()) == (10, 3, b"789")
    window.load(10, 100)
    assert (window.position, window.filled) == (10, 0)
    assert window.read(8, 100) == b"89"


def test_a_memory_window_holds_the_whole_file_from_the_start() -> None:
    window = MemoryWindow(np.frombuffer(bytearray(b"0123456789"), dtype=np.uint8))
    window.load(7, 2)
    assert (window.position, window.size, window.filled) == (0, 10, 10)
    assert (window.read(8, 100), window.read(10, 1)) == (b"89", b"")


def test_a_long_segment_is_read_through_a_small_window() -> None:
    # Undecided batches of one chunk may still be there beside the next chunk.
    parts = consecutive(200, count=1)
    large = [batch(first, 1, value=b"v" * 200_000) for first in range(200, 300)]
    data = joined(parts + large)
    assert len(data) > 4 * CHUNK_BYTES
    window = FileWindow(BytesSource(data))
    position = 0
    for chunk in SegmentBatches(window, SegmentOptions(0)).chunks():
        for row_position, size in chunk.table[:, :2].tolist():
            assert row_position == position
            place = row_position - chunk.data_position
            assert chunk.data[place : place + size].tobytes() == data[position : position + size]
            position += size
    assert position == len(data)
    assert len(window.data) <= 2 * CHUNK_BYTES + len(large[0])


def test_headers_alone_are_read_where_batches_are_large() -> None:
    # F60: payloads are skipped by the length in the header.
    data = joined([batch(first, 1, value=b"v" * 500_000) for first in range(20)])
    source = CountingSource(data)
    rows = [
        row
        for found in SegmentBatchRows(
            FileWindow(source), SegmentOptions(0), ("base_offset", "size"), {}
        ).rows()
        for row in found.to_pylist()
    ]
    assert rows == [{"base_offset": first, "size": len(data) // 20} for first in range(20)]
    assert sum(end - start for start, end in source.places) < len(data) // 50


@pytest.mark.parametrize("shift", [-100, -61, -60, -17, -16, -1, 0, 1, 40])
@pytest.mark.parametrize("window", [memory_window, lambda data: FileWindow(BytesSource(data))])
def test_a_batch_is_found_wherever_the_pieces_of_a_search_meet(
    shift: int, window: type[MemoryWindow]
) -> None:
    # F65: the search goes through the file a piece at a time.
    place = SEARCH_BYTES + shift
    data = b"\xff" * place + batch(5) + b"\xff" * 300
    searched = WindowBytes(window(data))  # type: ignore[arg-type]
    assert searched.next_candidate(0, len(data)) == place
    assert searched.next_candidate(place + 1, len(data)) is None
    assert searched.next_candidate(0, place) is None


def test_a_batch_at_the_very_end_of_the_file_is_found() -> None:
    # F61, F65
    data = b"\xff" * 50 + batch(0)
    assert WindowBytes(memory_window(data)).next_candidate(0, len(data)) == 50


@pytest.mark.parametrize("cut", [1, 16, 17, 30])
def test_what_would_reach_beyond_the_file_is_not_a_candidate(cut: int) -> None:
    # F61
    data = b"\xff" * 50 + batch(0)[:-cut]
    assert WindowBytes(memory_window(data)).next_candidate(0, len(data)) is None


@pytest.mark.parametrize("zeros", [0, 1, SEARCH_BYTES - 1, SEARCH_BYTES, SEARCH_BYTES + 1])
def test_zeros_are_counted_across_the_pieces_of_a_search(zeros: int) -> None:
    # F68
    searched = WindowBytes(memory_window(b"???" + b"\0" * zeros + b"?"))
    assert searched.zero_run(3, searched.size) == zeros
    assert searched.zero_run(3, 3 + zeros // 2) == zeros // 2
