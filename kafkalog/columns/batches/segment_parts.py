"""A segment's read in parts that tasks can read apart from each other: offset ranges, and where in
the file the walk of each may begin.

A part ends with the offset of an index entry, and the next one's walk begins at the entry's
position. Where the index does not help, batch headers do. Rules: docs/options.md F500 to F503.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.format.batch_header import MAGIC_POSITION, MAGICS, V2_HEADER_BYTES, read_base_offset
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.indexes import OffsetEntry
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.names import segment_file_name
from kafkalog.storage.reading.index_lookup import OffsetIndexFile, offset_index, start_position
from kafkalog.storage.reading.read_plan import SegmentRead, in_parts
from kafkalog.storage.reading.renamed_files import opened


def parts_by_bytes(read: SegmentRead, part_bytes: int) -> list[SegmentRead]:
    """Return the read in parts of `part_bytes` at most, as near as batches and index entries allow.

    A segment that is not larger is not looked into.
    """
    if read.size <= part_bytes or segment_file_name(os.path.basename(read.path)) is None:
        return [read]
    try:
        file = opened(read.path)
    except FileNotFoundError:
        return [read]  # whoever reads it says so
    with file:
        start, end, cuts = _by_index(file, read, part_bytes)
        if cuts is None:
            start, end = 0, file.size
            cuts = _by_headers(file, read, _targets(start, end, part_bytes))
    return in_parts(read, start, end, cuts)


def parts_by_offsets(read: SegmentRead, most_offsets: int) -> list[tuple[SegmentRead, int]]:
    """Return the read in parts of `most_offsets` offsets at most, about as many in each, and how
    many each has. The last part of a log goes on to where the log ends when it is read."""
    first = max(read.first_offset, read.base_offset or 0)
    next_base_offset = read.next_base_offset
    end = min(read.end_offset, _log_end(read) if next_base_offset is None else next_base_offset)
    count = max(-(-(end - first) // most_offsets), 1)
    bounds = [first + (end - first) * number // count for number in range(count + 1)]
    cuts = [OffsetEntry(bound - 1, start_position(read.path, bound)) for bound in bounds[1:-1]]
    parts = in_parts(read, read.start_position, 0, cuts)
    return [
        (replace(part, size=read.size // count), max(next_bound - bound, 0))
        for part, (bound, next_bound) in zip(parts, pairwise(bounds), strict=True)
    ]


def _by_index(
    file: InputFile, read: SegmentRead, part_bytes: int
) -> tuple[int, int, list[OffsetEntry] | None]:
    """Return where what is requested begins and ends in the file, about, and where to cut it; None
    for what an index does not say."""
    index = offset_index(file.path)
    if index is None:
        return 0, file.size, None
    with index:
        start, end = _requested_bytes(index, read, file.size)
        targets = _targets(start, end, part_bytes)
        found = [index.at_position(target) for target in targets]
    cuts = [entry for entry in dict.fromkeys(found) if entry is not None]
    return start, end, cuts if not targets or _fit(file, read, start, cuts) else None


def _requested_bytes(index: OffsetIndexFile, read: SegmentRead, file_size: int) -> tuple[int, int]:
    begins_later = read.first_offset > (read.base_offset or 0)
    below = index.below_offset(read.first_offset) if begins_later else None
    after = index.from_offset(read.end_offset) if read.end_offset < LARGEST_OFFSET else None
    start = 0 if below is None else max(below.position, 0)
    end = file_size if after is None else min(after.position, file_size)
    return (start, end) if start < end else (0, file_size)


def _targets(start: int, end: int, part_bytes: int) -> list[int]:
    """Return the positions near which to cut, so that no part is larger than the others."""
    count = -(-(end - start) // part_bytes)
    return [start + (end - start) * number // count for number in range(1, count)]


def _fit(file: InputFile, read: SegmentRead, start: int, cuts: Sequence[OffsetEntry]) -> bool:
    """Return whether entries are of this file, by what the headers there say, and rise."""
    before = OffsetEntry(max(read.first_offset, read.base_offset or 0) - 1, start)
    rises = all(
        a.offset < b.offset and a.position < b.position for a, b in pairwise((before, *cuts))
    )
    return bool(cuts) and rises and all(_has_batch(file, read, cut) for cut in cuts)


def _has_batch(file: InputFile, read: SegmentRead, cut: OffsetEntry) -> bool:
    header = file.read(cut.position, V2_HEADER_BYTES)
    if len(header) < V2_HEADER_BYTES or header[MAGIC_POSITION] not in MAGICS:
        return False
    first_offset = read_base_offset(header)
    return (read.base_offset or 0) <= first_offset <= cut.offset < read.end_offset - 1


def _by_headers(file: InputFile, read: SegmentRead, targets: Sequence[int]) -> list[OffsetEntry]:
    """Return the last batch at or before each target."""
    options = SegmentOptions(read.base_offset, read.next_base_offset, end_offset=read.end_offset)
    first = max(read.first_offset, read.base_offset or 0)
    found: dict[int, OffsetEntry] = {}
    for chunk in SegmentHeaders(FileWindow(file), options).chunks():
        requested = (chunk.table[:, column.FAULT] == 0) & (
            chunk.table[:, column.LAST_OFFSET] >= first
        )
        requested &= chunk.table[:, column.LAST_OFFSET] < read.end_offset - 1
        batches = chunk.table[requested]
        rows = np.searchsorted(batches[:, column.POSITION], targets, side="right") - 1
        for target, row in zip(targets, rows.tolist(), strict=True):
            if row >= 0:
                last_offset, position = batches[row, [column.LAST_OFFSET, column.POSITION]].tolist()
                found[target] = OffsetEntry(last_offset, position)
    return list(dict.fromkeys(entry for entry in found.values() if entry.position > 0))


def _log_end(read: SegmentRead) -> int:
    """Return where the log ends whose last segment this is, by batch headers."""
    try:
        file = opened(read.path)
    except FileNotFoundError:
        return 0
    with file:
        options = SegmentOptions(
            read.base_offset,
            first_offset=LARGEST_OFFSET,
            start_position=start_position(file.path, LARGEST_OFFSET - 1),
        )
        return SegmentHeaders(FileWindow(file), options).walk()
