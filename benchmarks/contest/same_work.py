"""Whoever is measured has done the same work: all rows are compared, not timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.contest.readers import HEADER
from benchmarks.inputs.segments import Segment


class DifferentWorkError(AssertionError):
    """Two that were to be compared do not give the same."""


def check_same_rows(
    label: str, expected: Iterable[pa.RecordBatch], found: Iterable[pa.RecordBatch]
) -> None:
    """Both give the same rows, in the columns of `found`. Raises DifferentWorkError."""
    left, right = pa.Table.from_batches(expected), pa.Table.from_batches(found)
    if left.num_rows != right.num_rows:
        raise DifferentWorkError(f"{label}: {right.num_rows} rows, {left.num_rows} expected")
    for name in right.column_names:
        if not left.column(name).equals(right.column(name)):
            raise DifferentWorkError(f"{label}: column {name} differs")


def check_headers(label: str, segment: Segment, found: Sequence[pa.RecordBatch]) -> None:
    """The header walk gives the batches that are there. Raises DifferentWorkError."""
    table = pa.Table.from_batches(found)
    expected = {
        "position": [batch.position for batch in segment.batches],
        "base_offset": [batch.base_offset for batch in segment.batches],
        "last_offset": [batch.last_offset for batch in segment.batches],
        "records": [batch.records for batch in segment.batches],
        "crc": [batch.crc for batch in segment.batches],
    }
    if table.column_names != list(HEADER):
        raise DifferentWorkError(f"{label}: columns {table.column_names}")
    for name, values in expected.items():
        if table.column(name).to_pylist() != values:
            raise DifferentWorkError(f"{label}: column {name} differs")


def data_bytes(batches: Iterable[pa.RecordBatch]) -> int:
    """How many bytes all keys and values have."""
    lengths = (
        pc.sum(pc.binary_length(batch.column(name))).as_py() or 0
        for batch in batches
        for name in ("key", "value")
    )
    return sum(lengths)
