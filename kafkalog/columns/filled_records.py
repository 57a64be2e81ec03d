"""A segment's records, and those that are damaged in it from other replicas.

Rules: docs/format.md F174 and F175.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kafkalog.columns.batch_table import (
    BASE_OFFSET,
    EXPECTED_OFFSET,
    FAULT,
    LAST_OFFSET,
    POSITION,
    SIZE,
)
from kafkalog.columns.compiled import LongArray
from kafkalog.columns.fault_details import FaultyRange, faulty_range
from kafkalog.columns.header_walk import is_wrapper
from kafkalog.columns.record_columns import RecordColumns
from kafkalog.columns.segment_batches import SegmentBatches, SegmentOptions
from kafkalog.columns.window import FileWindow, Window
from kafkalog.storage.files import InputFile
from kafkalog.storage.renamed_files import current_path
from kafkalog.storage.replica_reads import Filling, OtherSegment
from kafkalog.storage.replicas import OffsetSpan, merged, subtract

Constants = Mapping[str, str | int | None]
# Told of the offsets that came from another replica, and of its file.
OnFilled = Callable[[OffsetSpan, str], None]


def read_filled_records(
    window: Window,
    options: SegmentOptions,
    columns: Sequence[str],
    constants: Constants,
    filling: Filling,
    on_fault: Callable[[FaultyRange], None],
    on_filled: OnFilled,
) -> Generator[pa.RecordBatch, None, int]:
    """The records of the segment as `read_records` gives them; what is missing for damage comes
    from the other replicas, each offset once. `on_fault` hears of damage that none of them fills.

    Batches next to damage, or to a gap where none should be, can lie about their offsets, which no
    checksum covers: other replicas are asked first for them. Returns the offset after the last that
    was found.
    """
    own_options = replace(options, end_offset=min(options.end_offset, filling.own_end))
    doubtful = doubtful_positions(window, own_options, filling)
    own = _Sound()
    yield from own.read(window, own_options, columns, constants, without=doubtful)
    start = max(options.first_offset, options.base_offset or 0)
    asked = [OffsetSpan(start, min(options.end_offset, filling.end_offset))]
    missing = subtract(asked, own.spans)
    if not filling.fills_gaps:
        missing = [span for span in missing if own.faults_in(span)]
    end_offset = own.next_offset
    for other in filling.others:
        if not missing:
            break
        for span in list(missing):
            found = _Sound()
            yield from _read_other(found, other, span, options, columns, constants)
            filled = subtract([span], subtract([span], found.spans))
            for part in filled:
                on_filled(part, other.path)
                end_offset = max(end_offset, part.end)
            missing = subtract(missing, filled)
    for span in list(missing) if len(doubtful) else ():
        found, theirs = _Sound(), _within(own_options, span)
        yield from found.read(window, theirs, columns, constants, only=doubtful)
        missing = subtract(missing, found.spans)
    for fault in own.unfilled(missing, window.size, is_last=options.next_base_offset is None):
        on_fault(fault)
    return end_offset


def _read_other(
    found: _Sound,
    other: OtherSegment,
    span: OffsetSpan,
    options: SegmentOptions,
    columns: Sequence[str],
    constants: Constants,
) -> Iterator[pa.RecordBatch]:
    agreed = OffsetSpan(span.start, min(span.end, other.end_offset))
    path = current_path(other.path)
    if path is None or agreed.start >= agreed.end:
        return
    theirs = replace(
        _within(options, agreed),
        base_offset=other.base_offset,
        next_base_offset=other.next_base_offset,
    )
    own_columns = {**constants, "file": path, "brokerId": other.broker_id}
    with InputFile(path) as file:
        yield from found.read(FileWindow(file), theirs, columns, own_columns)


def _within(options: SegmentOptions, span: OffsetSpan) -> SegmentOptions:
    return replace(
        options,
        first_offset=max(span.start, options.first_offset),
        end_offset=min(span.end, options.end_offset),
    )


def doubtful_positions(window: Window, options: SegmentOptions, filling: Filling) -> LongArray:
    """Where the sound batches are that lie next to damage or, in a log that should have none, next
    to a gap."""
    rows = [
        np.column_stack((chunk.table[:, _KEPT], _first_offsets(chunk.table)))
        for chunk in SegmentBatches(window, options).chunks()
    ]
    if not rows:
        return np.zeros(0, dtype=np.int64)
    table = np.concatenate(rows)
    is_faulty, is_gap = table[:, 1] != 0, table[:, 4] != table[:, 3]
    last_end = table[-1, 2] + 1
    is_cut = np.array([last_end < min(options.end_offset, filling.end_offset)])
    is_beside = np.append(is_faulty[1:], False) | np.insert(is_faulty[:-1], 0, False)
    if filling.fills_gaps:
        is_beside |= is_gap | np.append(is_gap[1:], is_cut)
    positions: LongArray = table[is_beside & ~is_faulty, 0]
    return positions


_KEPT = [POSITION, FAULT, LAST_OFFSET, EXPECTED_OFFSET]


def _first_offsets(table: LongArray) -> LongArray:
    """The first offset of each row; where the header does not have it, the one expected."""
    first: LongArray = np.where(is_wrapper(table), table[:, EXPECTED_OFFSET], table[:, BASE_OFFSET])
    return first


class _Sound:
    """What was sound and what was not in one pass over a segment."""

    def __init__(self) -> None:
        self.spans: list[OffsetSpan] = []
        self.next_offset = 0
        self._faulty: list[list[int]] = []

    def read(
        self,
        window: Window,
        options: SegmentOptions,
        columns: Sequence[str],
        constants: Constants,
        *,
        without: LongArray | None = None,
        only: LongArray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The records of the segment's sound batches, control records not among them; of batches
        but those at some positions, or of those only."""
        records = RecordColumns(options, columns, constants)
        batches = SegmentBatches(window, options)
        for chunk in batches.chunks():
            table = chunk.table
            if without is not None:
                table = table[~np.isin(table[:, POSITION], without)]
            if only is not None:
                table = table[np.isin(table[:, POSITION], only)]
            yield from records.batches(replace(chunk, table=table))
            self._note(table, options)
        self.next_offset = batches.next_offset

    def _note(self, table: LongArray, options: SegmentOptions) -> None:
        faulty = table[:, FAULT] != 0
        self._faulty += table[faulty].tolist()
        sound = table[~faulty]
        ends = np.minimum(sound[:, LAST_OFFSET] + 1, options.end_offset)
        starts = np.maximum(_first_offsets(sound), options.first_offset)
        spans = map(OffsetSpan, starts.tolist(), ends.tolist())
        self.spans = merged([*self.spans, *spans])

    def faults_in(self, span: OffsetSpan) -> bool:
        """Whether damage lies where these offsets are missing."""
        return any(span.start <= row[EXPECTED_OFFSET] <= span.end for row in self._faulty)

    def unfilled(
        self, missing: Sequence[OffsetSpan], file_size: int, *, is_last: bool
    ) -> Iterator[FaultyRange]:
        """The damage where offsets are still missing."""
        for row in self._faulty:
            if any(span.start <= row[EXPECTED_OFFSET] <= span.end for span in missing):
                ends_file = row[POSITION] + row[SIZE] == file_size
                yield faulty_range(row, ends_log=ends_file and is_last)
