"""Remote files are read in ranges: as much as is needed, in few requests."""

import threading
import time
from pathlib import Path

import pytest

from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.storage.files.file_access import FileAccess, use_file_access
from kafkalog.storage.files.files import InputFile
from tests.remote.stores import Store, needs_store

pytestmark = needs_store
MIB = 1024 * 1024
NAME = "00000000000000000000.log"


def write_batches(folder: Path, batch_bytes: int, count: int) -> Path:
    """A segment of batches with one record each."""
    path = folder / "t-0" / NAME
    path.parent.mkdir()
    with path.open("wb") as file:
        for offset in range(count):
            record = Record(offset, 1000, 0, None, bytes(batch_bytes))
            file.write(write_batch([record], BatchFields(leader_epoch=0)))
    return path


def walked(walk_class: type[SegmentBatches] | type[SegmentHeaders], uri: str) -> int:
    """How many batches a walk over a file finds."""
    with InputFile(uri) as file:
        batches = walk_class(FileWindow(file), SegmentOptions(base_offset=0))
        return sum(len(chunk.table) for chunk in batches.chunks())


@pytest.mark.parametrize(("walk_class", "most"), [(SegmentBatches, 8), (SegmentHeaders, 16)])
def test_small_batches_take_no_request_each(
    store: Store, walk_class: type[SegmentBatches] | type[SegmentHeaders], most: int
) -> None:
    """F542: 640 of them, read whole or by their headers alone."""
    uri, folder = store.bucket()
    path = write_batches(folder, 64 * 1024, 640)
    assert walked(walk_class, f"{uri}/t-0/{NAME}") == 640
    reads = store.proxy.reads(".log")
    assert len(reads) <= most
    assert sum(request.size for request in reads) <= 1.01 * path.stat().st_size


def test_headers_of_large_batches_take_a_small_share_of_the_bytes(store: Store) -> None:
    """F542."""
    uri, folder = store.bucket()
    path = write_batches(folder, MIB, 60)
    assert walked(SegmentHeaders, f"{uri}/t-0/{NAME}") == 60
    reads = store.proxy.reads(".log")
    assert len(reads) <= 61
    assert sum(request.size for request in reads) <= 0.07 * path.stat().st_size


def test_the_next_request_is_under_way_while_bytes_are_worked_on(store: Store) -> None:
    """F542."""
    uri, folder = store.bucket()
    write_batches(folder, MIB, 40)
    answering: list[str] = []
    overlaps = threading.Event()

    def before_answer(method: str, path: str) -> None:
        answering.append(path)

    store.proxy.before_answer = before_answer
    with InputFile(f"{uri}/t-0/{NAME}") as file:
        window = FileWindow(file)
        for position in range(0, 24 * MIB, 4 * MIB):
            window.load(position, 4 * MIB)
            asked = len(answering)
        time.sleep(0.5)  # without a reader
        if len(answering) > asked or len(store.proxy.reads(".log")) * 8 * MIB > 24 * MIB:
            overlaps.set()
    assert overlaps.is_set()


def test_reading_goes_no_faster_than_asked(store: Store) -> None:
    """F550: twice a mebibyte waits for the first one, once."""
    uri, folder = store.bucket()
    (folder / "file").write_bytes(bytes(2 * MIB))
    use_file_access(FileAccess(max_bytes_per_second=4 * MIB))
    started = time.monotonic()
    with InputFile(f"{uri}/file") as file:
        file.read(0, MIB)
        file.read(MIB, MIB)
    assert time.monotonic() - started >= 0.25


@pytest.mark.parametrize("size", [0, 1, 65536, 65537])
def test_any_range_of_a_file_is_what_is_in_it(store: Store, size: int) -> None:
    uri, folder = store.bucket()
    data = bytes(number % 251 for number in range(size))
    (folder / "file").write_bytes(data)
    with InputFile(f"{uri}/file") as file:
        assert file.size == size
        for position, wanted in ((0, size), (size, 5), (size // 2, size), (0, 1), (size - 1, 9)):
            if position >= 0:
                assert file.read(position, wanted) == data[position : position + wanted]
