"""Which offsets of a log damage may have held. Rules: docs/format.md F70, F71."""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan


class DamagedOffsets:
    """Takes the batch tables of a log in their order. `spans` are disjoint and in order; the last
    one reaches to LARGEST_OFFSET until a sound batch has come after it."""

    def __init__(self) -> None:
        self.spans: list[OffsetSpan] = []

    @property
    def is_open(self) -> bool:
        """Whether no sound batch has come after the last damage."""
        return bool(self.spans) and self.spans[-1].end == LARGEST_OFFSET

    def note(self, table: LongArray, firsts: LongArray | None = None) -> None:
        """What damage may hold ends only where the next sound batch begins; `firsts` are the first
        offsets of batches, where more is known of them than headers show."""
        faulty = table[:, column.FAULT] != 0
        sound = np.flatnonzero(~faulty)
        firsts = first_offsets(table) if firsts is None else firsts
        starts = np.append(firsts[sound], LARGEST_OFFSET)
        self.end_at(int(starts[0]))
        rows = np.flatnonzero(faulty)
        ends = starts[np.searchsorted(sound, rows)]
        for start, end in zip(
            table[rows, column.EXPECTED_OFFSET].tolist(), ends.tolist(), strict=True
        ):
            self.add(start, end)

    def end_at(self, offset: int) -> None:
        """That the damage noted last, if it has no end yet, holds nothing from an offset on."""
        if self.is_open:
            self.spans[-1] = self.spans[-1]._replace(end=offset)

    def add(self, start: int, end: int) -> None:
        """Offsets that no file has."""
        if start < end and (not self.spans or self.spans[-1].end < end):
            self.spans.append(OffsetSpan(start, end))
