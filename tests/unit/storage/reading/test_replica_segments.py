from collections.abc import Sequence
from typing import overload

import pytest

from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.replica_reads import _overlapping

BASES = (0, 10, 20, 30)


def segments(bases: Sequence[int] = BASES) -> list[SegmentFile]:
    following = [*bases[1:], None]
    return [
        SegmentFile(str(base), base, follower, 1, "")
        for base, follower in zip(bases, following, strict=True)
    ]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 10, "0"),
        (0, 11, "0 10"),
        (5, 6, "0"),
        (10, 30, "10 20"),
        (29, 31, "20 30"),
        (500, 600, "30"),
        (0, 100, "0 10 20 30"),
        (7, 7, "0"),
    ],
)
def test_the_segments_that_can_hold_offsets(start: int, end: int, expected: str) -> None:
    assert [found.path for found in _overlapping(segments(), start, end)] == expected.split()


class Counted(Sequence[SegmentFile]):
    """Segments, and how many of them were looked at."""

    def __init__(self, found: list[SegmentFile]) -> None:
        self._found = found
        self.looked_at = 0

    @overload
    def __getitem__(self, index: int) -> SegmentFile: ...

    @overload
    def __getitem__(self, index: slice) -> list[SegmentFile]: ...

    def __getitem__(self, index: int | slice) -> SegmentFile | list[SegmentFile]:
        self.looked_at += len(range(len(self))[index]) if isinstance(index, slice) else 1
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)


def test_few_segments_of_many_are_looked_at() -> None:
    many = Counted(segments(range(0, 100_000, 10)))
    assert len(_overlapping(many, 50_000, 50_020)) == 2
    assert many.looked_at < 50
