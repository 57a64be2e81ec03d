"""A read of chosen offsets has their records, and of batches of format 2 no others. Rules: F20 to
F27."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import MemoryWindow
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.format.records import Record
from tests.support.logs.samples import joined, segments
from tests.support.logs.seeded_segments import sound_segment

COLUMNS = ("offset", "key", "value")
Row = tuple[Any, ...]


def rows(data: bytes, chosen: Sequence[int] | None = None) -> list[Row]:
    offsets = None if chosen is None else np.array(chosen, dtype=np.int64)
    records = SegmentRecords(
        MemoryWindow(np.frombuffer(bytearray(data), dtype=np.uint8)),
        SegmentOptions(0, chosen_offsets=offsets),
        COLUMNS,
        {},
        lambda fault: None,
    )
    return [tuple(row.values()) for batch in records.rows() for row in batch.to_pylist()]


@given(segments(), st.lists(st.integers(0, 80), min_size=1, unique=True), st.data())
def test_the_records_of_chosen_offsets_are_read_from_batches_of_all_formats(
    made: tuple[list[bytes], list[Record]], others: list[int], data: st.DataObject
) -> None:
    batches, records = made
    all_rows: list[Row] = [(record.offset, record.key, record.value) for record in records]
    assert rows(joined(batches)) == all_rows
    own = data.draw(st.sets(st.sampled_from([row[0] for row in all_rows]))) if all_rows else set()
    chosen = sorted({*own, *others})
    found = rows(joined(batches), chosen)
    assert [row for row in found if row[0] in chosen] == [
        row for row in all_rows if row[0] in chosen
    ]
    assert [row for row in all_rows if row in found] == found


@given(st.integers(0, 1000), st.sets(st.integers(0, 60), min_size=1))
def test_no_other_record_of_format_2_is_read(seed: int, chosen: set[int]) -> None:
    segment = sound_segment(seed)
    expected = [row for row in rows(segment) if row[0] in chosen]
    assert rows(segment, sorted(chosen)) == expected
