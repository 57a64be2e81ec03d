"""Headers alone, read from a file by jumping, are the headers of the whole file. F60 to F64."""

import os
import random
from pathlib import Path

import pytest

from kafkalog.columns.batches.batch_table import FAULT, POSITION, SIZE
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow, Window
from kafkalog.format.faults import Fault
from kafkalog.format.message_set import write_old_message
from kafkalog.format.resync import Damage, Finder
from kafkalog.storage.files.files import InputFile
from tests.support.logs.both_readers import memory_window
from tests.support.logs.samples import batch, joined

OPTIONS = SegmentOptions(base_offset=0, check_crcs=False)


def walked(window: Window) -> list[list[int]]:
    return [
        row for chunk in SegmentHeaders(window, OPTIONS).chunks() for row in chunk.table.tolist()
    ]


def mixed_segment(random_: random.Random) -> bytes:
    """Batches of both kinds, larger and smaller than what is read at once."""
    parts = []
    for number in range(60):
        size = random_.choice((10, 1_000, 4_000, 4_100, 30_000))
        if random_.random() < 0.3:
            parts.append(write_old_message(number, random_.choice((0, 1)), b"k", bytes(size)))
        else:
            parts.append(batch(number, 1, value=bytes(size)))
    return joined(parts)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("flips", [0, 3])
def test_jumping_finds_what_a_walk_through_memory_finds(
    seed: int, flips: int, tmp_path: Path
) -> None:
    random_ = random.Random(seed)
    data = bytearray(mixed_segment(random_))
    for _ in range(flips):
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    if flips:
        del data[-random_.randrange(100) :]
    path = tmp_path / "segment.log"
    path.write_bytes(bytes(data))
    with InputFile(str(path)) as file:
        assert walked(FileWindow(file)) == walked(memory_window(bytes(data)))


def test_a_length_is_signed_however_large_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (batch(number, 1, value=bytes(100_000)) for number in range(2))
    begin = len(first)
    negative = second[:8] + (2**31 + 5_000).to_bytes(4, "big") + second[12:]
    path = tmp_path / "segment.log"
    path.write_bytes(first + negative)
    # So large that the length, taken for a positive one, would lie in the file.
    size = 2**31 + 300_000
    os.truncate(path, size)
    # To look for batches in the rest takes long, and is not what this is about.
    monkeypatch.setattr(
        Finder,
        "damaged_stretch",
        lambda _, position, fault, bounds: [Damage(position, size, fault)],
    )
    with InputFile(str(path)) as file:
        rows = walked(FileWindow(file))
    found = [(row[POSITION], row[SIZE], row[FAULT]) for row in rows]
    assert found == [(0, begin, Fault.NONE), (begin, size - begin, Fault.LENGTH)]
