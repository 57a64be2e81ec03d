"""Headers of large batches that are kept give later walks what the file has. Rule:
docs/report.md F1440."""

import os
from pathlib import Path

import pytest

from kafkalog.columns.batches.kept_headers import headers_kept
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.read_counts import read_counts

SMALL = b"v"
LARGE = 9000 * b"v"


def batches(values: list[bytes], first: int = 0) -> bytes:
    """Batches of one record each, with these values."""
    return b"".join(
        write_batch([Record(offset, 1000 + offset, 0, None, value)])
        for offset, value in enumerate(values, start=first)
    )


def walked(path: Path, base_offset: int = 0) -> tuple[list[list[int]], int]:
    """The rows of all headers of a file, and the bytes that were read for them."""
    before = read_counts.copy().bytes_read
    with InputFile(str(path)) as file:
        chunks = SegmentHeaders(FileWindow(file), SegmentOptions(base_offset)).chunks()
        rows = [row for chunk in chunks for row in chunk.table.tolist()]
    return rows, read_counts.bytes_read - before


@pytest.mark.parametrize(
    "values",
    [[LARGE] * 20, [LARGE] * 3 + [SMALL] * 5 + [LARGE] * 3, [LARGE] * 5000],
    ids=["large", "mixed", "more than a table has"],
)
def test_a_second_walk_has_the_same_rows_and_reads_less(
    tmp_path: Path, values: list[bytes]
) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batches(values))
    rows, size = walked(path)
    assert len(rows) == len(values)
    with headers_kept():
        assert walked(path) == (rows, size)
        again, less = walked(path)
    assert again == rows
    assert less < size
    assert walked(path) == (rows, size)


def test_offsets_are_judged_by_each_walk(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batches([LARGE] * 3))
    judged = walked(path, 2)
    with headers_kept():
        walked(path)
        assert walked(path, 2)[0] == judged[0]


@pytest.mark.parametrize("size", [3, 4])
def test_a_file_that_has_changed_is_read_again(tmp_path: Path, size: int) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batches([LARGE] * 3))
    with headers_kept():
        walked(path)
        path.write_bytes(batches([LARGE] * size, first=7))
        os.utime(path, ns=(1, 1))
        rows, _ = walked(path)
    assert rows == walked(path)[0]
    assert len(rows) == size
