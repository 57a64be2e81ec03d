"""What view `records` reads with read_committed, without Spark: planned in the driver, read task by
task, and as if tasks had split the segments."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import ReadOptions, read_options
from kafkalog.views.planning.planning import Read, planned_groups
from kafkalog.views.reading.reading import read_segment

COLUMNS = ("topic", "partition", "offset", "timestampMs", "key", "value")
Row = tuple[Any, ...]


def committed_options(paths: Sequence[Path], **options: str) -> ReadOptions:
    """The options of a read of committed records of all topics."""
    given = {"paths": json.dumps([str(path) for path in paths]), "subscribe": "*"}
    return read_options({**given, "isolationLevel": "read_committed", **options})


def committed_rows(
    options: ReadOptions, *, pieces: int = 1, columns: tuple[str, ...] = COLUMNS
) -> list[Row]:
    """The rows in the order of topic, partition and offset, every segment a task of its own, or
    several of them, each with as many of its offsets."""
    return sorted(
        rows_of(planned_groups(options), options, columns, pieces), key=lambda row: row[:3]
    )


def committed_offsets(*paths: Path, **options: str) -> list[int]:
    """The offsets of the committed records of one partition."""
    rows = committed_rows(committed_options(paths, **options), columns=("offset",))
    return [offset for (offset,) in rows]


def rows_of(
    groups: Sequence[Sequence[Read]],
    options: ReadOptions,
    columns: tuple[str, ...],
    pieces: int = 1,
) -> list[Row]:
    """The rows of what was planned, in the order of the tasks."""
    rows: list[Row] = []
    for group in groups:
        for read in group:
            assert isinstance(read, SegmentRead)
            for piece in _split(read, pieces):
                for batch in read_segment(piece, options, columns):
                    rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows


def _split(read: SegmentRead, pieces: int) -> Iterator[SegmentRead]:
    start = max(read.first_offset, read.base_offset or 0)
    end = min(read.end_offset, read.next_base_offset or read.end_offset)
    if pieces == 1 or end - start < pieces:
        yield read
        return
    cuts = [start + (end - start) * number // pieces for number in range(pieces + 1)]
    for first, after in pairwise(cuts):
        yield replace(read, first_offset=first, end_offset=after)
