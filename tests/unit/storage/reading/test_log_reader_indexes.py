"""Indexes save a reader its way, and never change what it reads. F100, F103, F141, F142."""

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from kafkalog.format.message_set import write_old_message
from kafkalog.format.offsets import LARGEST_OFFSET, Bounds
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.indexes import OFFSET_ENTRY, OffsetEntry, write_offset_index
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.index_lookup import checked_start
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.logs.samples import batch
from tests.unit.storage.three_segments import (
    expected_from,
    first_offset,
    index_path,
    three_segments,
    write_log,
)


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return three_segments(tmp_path / "orders-0")


def garbage(log: PartitionLog, number: int) -> bytes:
    return random.Random(number).randbytes(index_path(log, number).stat().st_size)


def shifted(log: PartitionLog, number: int) -> bytes:
    entries = OFFSET_ENTRY.iter_unpack(index_path(log, number).read_bytes())
    return b"".join(OFFSET_ENTRY.pack(offset, position + 1) for offset, position in entries)


def too_high(log: PartitionLog, number: int) -> bytes:
    """Every entry has the position of the next one's batch."""
    entries = list(OFFSET_ENTRY.iter_unpack(index_path(log, number).read_bytes()))
    return b"".join(
        OFFSET_ENTRY.pack(low, position) for (low, _), (_, position) in pairwise(entries)
    )


def reversed_entries(log: PartitionLog, number: int) -> bytes:
    entries = list(OFFSET_ENTRY.iter_unpack(index_path(log, number).read_bytes()))
    return b"".join(OFFSET_ENTRY.pack(*entry) for entry in entries[::-1])


def of_another(log: PartitionLog, number: int) -> bytes:
    return index_path(log, (number + 1) % 3).read_bytes()


@pytest.mark.parametrize(
    "made",
    [
        None,
        lambda log, number: b"",
        lambda log, number: b"\0" * 10_240,
        lambda log, number: index_path(log, number).read_bytes() + b"\0" * 10_240,
        lambda log, number: index_path(log, number).read_bytes()[:-3],
        lambda log, number: b"\xff" * 800,
        lambda log, number: b"\x7f" * 800,
        garbage,
        shifted,
        too_high,
        reversed_entries,
        of_another,
    ],
    ids=[
        "missing", "empty", "zeros", "preallocated", "cut", "minus one", "large", "garbage",
        "positions one too high", "offsets too low", "reversed", "another segment's",
    ],
)  # fmt: skip
def test_an_index_never_changes_what_is_read(
    made: Callable[[PartitionLog, int], bytes] | None, log: PartitionLog
) -> None:
    # F103, F142, T28
    contents = [made(log, number) if made else None for number in range(3)]
    for number, content in enumerate(contents):
        if content is None:
            index_path(log, number).unlink()
        else:
            index_path(log, number).write_bytes(content)
    reader = LogReader(log)
    assert reader.end_offset() == 60
    for offset in range(60):
        assert reader.read(offset, 1000).data == expected_from(offset, 1000), offset


class CountingFile:
    """A file that notes how much of it is read, and where first."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self.size = file.size
        self.positions: list[int] = []

    def read(self, position: int, size: int) -> bytes:
        self.positions.append(position)
        return self._file.read(position, size)


def lookup(log: PartitionLog, offset: int) -> tuple[int, list[int]]:
    """Where the index lets a search in the first segment begin, and what was read to know it."""
    with InputFile(log.segments[0].path) as file:
        counting = CountingFile(file)
        found = checked_start(counting, file.path, Bounds(0, LARGEST_OFFSET), offset)
        return found, counting.positions


def test_a_sound_index_saves_walking_through_the_segment(tmp_path: Path) -> None:
    # F100, F141: entries every 4,096 bytes, a search reads about as much around one of them.
    batches = [batch(i * 3, value=b"x" * 50) for i in range(2000)]
    log = write_log(tmp_path / "a-0", (0, batches), interval=4096)
    size = len(b"".join(batches))
    for offset in (1000, 3000, 5999):
        found, read = lookup(log, offset)
        assert found > 0
        assert min(read) > found - 9000
        assert len(read) < 40
        chunk = LogReader(log).read(offset, 1)
        assert first_offset(chunk.data) <= offset < chunk.next_offset
        assert chunk.position - found < 4096 + len(batches[-1]) < size


def test_an_entry_of_an_append_of_several_batches_is_believed(tmp_path: Path) -> None:
    # T28: brokers up to 3.9.0 wrote the last offset of them all beside the first one's position.
    batches = [batch(offset) for offset in range(0, 30, 3)]
    log = write_log(tmp_path / "a-0", (0, batches))
    position = len(batches[0]) * 3
    entries = [OffsetEntry(17, position)]
    index_path(log, 0).write_bytes(write_offset_index(entries, 0))
    assert lookup(log, 20)[0] == position
    assert first_offset(LogReader(log).read(20, 1).data) == 18
    # Below 17 it says nothing, and the search begins at the file's start.
    assert lookup(log, 16)[0] == 0
    assert first_offset(LogReader(log).read(10, 1).data) == 9


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_an_index_that_points_to_a_batch_inside_a_value_is_not_believed(
    magic: int, tmp_path: Path
) -> None:
    # F66, F142: what lies in a value looks like the very batch that is looked for.
    inside = batch(30)
    if magic == 2:
        outer = write_batch([Record(1, 1, 0, None, inside)], BatchFields(base_offset=1))
    else:
        outer = write_old_message(1, magic, None, inside)
    batches = [batch(0, 1), outer, batch(2), batch(30, value=b"the real one")]
    log = write_log(tmp_path / "a-0", (0, batches))
    position = len(batches[0]) + outer.index(inside)
    index_path(log, 0).write_bytes(write_offset_index([OffsetEntry(32, position)], 0))
    assert LogReader(log).read(32, 1).data == batches[-1]
    assert lookup(log, 40)[0] == 0
