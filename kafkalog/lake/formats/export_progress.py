"""How far an export has come: records, bytes and rate of all its processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import Array
from multiprocessing.sharedctypes import RawArray
from typing import Any

from kafkalog.lake.export_task import suppressed_lines
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.words import size_text

_SHOWN_SECONDS = 0.25


class ExportProgress:
    """Moves a bar by the bytes of the segments that are done; tasks count in shared memory, where
    forks of this process write too."""

    def __init__(self, groups: Sequence[Sequence[SegmentRead]], bar: Any) -> None:
        self._bar = bar
        self._bytes = [sum(read.size for read in group) for group in groups]
        self._offsets = [max(sum(map(_offsets, group)), 1) for group in groups]
        self._rows = RawArray("q", max(len(groups), 1))
        self._is_done = RawArray("b", max(len(groups), 1))
        self._process = os.getpid()
        self._began = self._shown_at = time.monotonic()
        self._shown_bytes = 0

    def add(self, task: int, rows: int) -> None:
        """Count rows that a task has written."""
        self._rows[task] += rows
        if os.getpid() == self._process and time.monotonic() - self._shown_at > _SHOWN_SECONDS:
            self.show()

    def done(self, task: int) -> None:
        """Remember that a task has written everything."""
        self._is_done[task] = 1

    def show(self) -> None:
        """Move the bar to where the tasks are now."""
        self._shown_at = time.monotonic()
        done = sum(self._bytes_done(task) for task in range(len(self._bytes)))
        rate = done / max(self._shown_at - self._began, 0.001)
        text = f"{sum(self._rows):,} records, {size_text(done)}, {size_text(int(rate))}/s"
        self._bar.update(done - self._shown_bytes, text)
        self._shown_bytes = done

    def _bytes_done(self, task: int) -> int:
        if self._is_done[task]:
            return self._bytes[task]
        # A compacted segment has fewer records than offsets.
        share = min(self._rows[task] / self._offsets[task], 1)
        return int(self._bytes[task] * share)


class SuppressedCounts:
    """Counts the records of each topic that were left out, and the values that nothing decodes, in
    shared memory likewise."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = sorted(topics)
        self._counts = Array("q", max(2 * len(self._topics), 1))

    def add(self, topic: str, records: int, undecoded: int) -> None:
        """Count records and values of a topic."""
        place = 2 * self._topics.index(topic)
        with self._counts.get_lock():
            self._counts[place] += records
            self._counts[place + 1] += undecoded

    def kept(self) -> dict[str, int]:
        """Return how many values of each topic nothing decodes."""
        return {topic: self._counts[2 * number + 1] for number, topic in enumerate(self._topics)}

    def lines(self) -> Iterator[str]:
        """Yield lines for each topic with such records or values."""
        for number, topic in enumerate(self._topics):
            yield from suppressed_lines(topic, *self._counts[2 * number : 2 * number + 2])


def _offsets(read: SegmentRead) -> int:
    first = max(read.first_offset, read.base_offset or 0)
    end = read.end_offset
    if read.next_base_offset is not None:
        end = min(end, read.next_base_offset)
    return max(end - first, 0)
