"""The batches of a log that a question of lag decodes: each once, neighbours together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.single_batches import BatchRecords, is_message_set, records_of_batches
from kafkalog.inspection.logs.log_headers import SegmentTable

# Decodes batches of a table's file, a row of position, size and last offset each; None stands for
# one that cannot be decoded.
DecodeBatches = Callable[[SegmentTable, LongArray], list[BatchRecords | None]]
# So many stored bytes are decoded together, and about so many records are kept.
_MOST_BYTES = 4 * 1024 * 1024
_MOST_RECORDS = 1024 * 1024


@dataclass(slots=True)
class LagWork:
    """What was read to answer: batch headers, batches that were decoded, and compressed messages of
    the old formats, which are sets of messages whose headers do not count them."""

    headers: int = 0
    decoded_batches: int = 0
    decompressed_sets: int = 0


class DecodedBatches:
    """Decodes batches, and keeps the records of the last ones: where the log ended at a time, and
    what lies between two offsets, need the same batches."""

    def __init__(self, work: LagWork) -> None:
        self._work = work
        self._kept: dict[tuple[int, int], BatchRecords | None] = {}
        self._records = 0

    def records(self, headers: SegmentTable, rows: LongArray) -> list[BatchRecords | None]:
        """Return the records of each batch. `rows` rise, and have position, size, last offset."""
        positions = rows[:, 0].tolist()
        keys = [(headers.segment, position) for position in positions]
        missing = np.array([key not in self._kept for key in keys], dtype=np.bool_)
        found = {key: self._kept[key] for key in keys if key in self._kept}
        for some in _in_groups(rows[missing]):
            found.update(self._decoded(headers, some))
        return [found[key] for key in keys]

    def _decoded(
        self, headers: SegmentTable, rows: LongArray
    ) -> dict[tuple[int, int], BatchRecords | None]:
        batches = _read(headers, rows)
        sets = sum(map(is_message_set, batches))
        self._work.decompressed_sets += sets
        self._work.decoded_batches += len(batches) - sets
        records = records_of_batches(batches, rows[:, 2].tolist())
        keys = ((headers.segment, position) for position in rows[:, 0].tolist())
        found = dict(zip(keys, records, strict=True))
        self._keep(found)
        return found

    def _keep(self, found: dict[tuple[int, int], BatchRecords | None]) -> None:
        records = sum(len(each.offsets) for each in found.values() if each is not None)
        if self._records + records > _MOST_RECORDS:
            self._kept.clear()
            self._records = 0
        self._kept.update(found)
        self._records += records


def _read(headers: SegmentTable, rows: LongArray) -> list[memoryview]:
    """Return the bytes of batches, of neighbours by one read."""
    positions, sizes = rows[:, 0], rows[:, 1]
    is_first = np.append(True, positions[1:] != positions[:-1] + sizes[:-1])
    found: list[memoryview] = []
    for run in np.split(rows, np.flatnonzero(is_first)[1:]):
        begin = int(run[0, 0])
        data = memoryview(headers.file.read(begin, int(run[:, 1].sum())))
        found += (data[start : start + size] for start, size in (run[:, :2] - [begin, 0]).tolist())
    return found


def _in_groups(rows: LongArray) -> Iterator[LongArray]:
    """Yield the rows, so many of them at a time as are decoded together."""
    begin = 0
    sizes = np.cumsum(rows[:, 1])
    while begin < len(rows):
        most = _MOST_BYTES + (int(sizes[begin - 1]) if begin else 0)
        end = max(int(np.searchsorted(sizes, most, side="right")), begin + 1)
        yield rows[begin:end]
        begin = end
