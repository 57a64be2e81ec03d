"""Indexes from tables of batches. Rules: docs/format.md F100 and F101."""

import numpy as np
import pytest

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.appended_indexes import AppendedIndexes
from kafkalog.errors import UnsupportedFormatError
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment

_BASE = 1000


def _batches(sizes: list[int], times: list[int]) -> list[bytes]:
    return [
        write_batch([Record(_BASE + 2 * number, time, 0, None, b"v" * size, ())], BatchFields())
        for number, (size, time) in enumerate(zip(sizes, times, strict=True))
    ]


def _rows(batches: list[bytes], times: list[int]) -> np.ndarray:
    rows = np.zeros((len(batches), column.WIDTH), dtype=np.int64)
    rows[:, column.SIZE] = [*map(len, batches)]
    rows[:, column.LAST_OFFSET] = _BASE + 2 * np.arange(len(batches))
    rows[:, column.MAX_TIMESTAMP] = times
    return rows


@pytest.mark.parametrize("chunk", [1, 7, 100])
@pytest.mark.parametrize(
    ("sizes", "times"),
    [
        ([10] * 200, [*range(200)]),
        ([5000] * 20, [*range(20, 0, -1)]),
        ([10, 5000, 10, 4100, 3000, 2000] * 5, [5, 5, 9, 3, 9, 10] * 5),
        ([3000] * 9, [-1] * 9),
        ([3000] * 9, [-1] * 5 + [7] * 4),
        ([], []),
    ],
    ids=["small", "large, times fall", "mixed", "no times", "times begin later", "empty"],
)
def test_entries_are_those_of_the_plain_writer(
    sizes: list[int], times: list[int], chunk: int
) -> None:
    # F100, F101: other tests compare what `write_segment` writes with brokers' files.
    batches = _batches(sizes, times)
    rows = _rows(batches, times)
    positions = np.cumsum(rows[:, column.SIZE]) - rows[:, column.SIZE]
    made = AppendedIndexes(_BASE)
    for first in range(0, len(rows), chunk):
        made.add(rows[first : first + chunk], positions[first : first + chunk])
    expected = write_segment(batches, _BASE)
    assert made.index == expected.index
    assert made.timeindex == expected.timeindex


def test_a_position_beyond_a_segment_is_refused() -> None:
    # F100: positions have 32 bits.
    rows = _rows(_batches([5000] * 2, [1, 2]), [1, 2])
    positions = np.array([0, 2**31])
    with pytest.raises(UnsupportedFormatError, match="no room for 2,147,483,648"):
        AppendedIndexes(_BASE).add(rows, positions)
