"""What tasks make of segments for several views at once, whole or a part of one, and how parts are
put together. Rules: docs/report.md F1323, F1330.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from kafkalog.views.reading.shared_walk import (
    SharedRead,
    SoundPart,
    WantedView,
    joined_rows,
    read_part,
    read_shared,
)

# Rows of a view with its number.
Numbered = tuple[int, pa.RecordBatch]


class Fold(Protocol):
    """Takes the rows of a task as they come, whoever reads them."""

    def add(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Take some rows, and return what is ready."""
        ...

    def end(self) -> Iterable[pa.RecordBatch]:
        """Return what is left when all rows were taken."""
        ...


def folded(fold: Fold, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what a fold makes of all rows."""
    for batch in batches:
        yield from fold.add(batch)
    yield from fold.end()


@dataclass(frozen=True, slots=True)
class PartRows:
    """What a task has found in a part of a segment: what the folds made of it, but the first one,
    of view `byte_ranges`."""

    read: SharedRead
    sound: SoundPart | None
    made: Sequence[Numbered]

    @property
    def place(self) -> tuple[str, int]:
        """The segment, and where in it the part begins."""
        return self.read.path, 0 if self.read.part is None else self.read.part.start

    @property
    def is_last(self) -> bool:
        """Whether the segment has no part after this one."""
        return self.read.part is not None and self.read.part.end is None


@dataclass(frozen=True, slots=True)
class FoldedViews:
    """The views of a request by their numbers: how they are read, and what makes the fold of a task
    of those that share walks."""

    wanted: Sequence[WantedView]
    folds: Mapping[int, Callable[[], Fold]]

    def rows(self, reads: Sequence[SharedRead]) -> Iterator[Numbered | PartRows]:
        """Yield what the folds of several views make of what a task reads for all of them, or what
        it finds in a part of a segment."""
        if reads[0].part is not None:
            yield from map(self._of_part, reads)
        else:
            yield from self.whole_rows(reads)

    def whole_rows(self, reads: Sequence[SharedRead]) -> Iterator[Numbered]:
        """Yield what the folds make of whole segments."""
        numbers = {number for read in reads for number in read.reads}
        folds = {number: self.folds[number]() for number in sorted(numbers)}
        for read in reads:
            for number, batch in read_shared(read, self.wanted):
                yield from ((number, made) for made in folds[number].add(batch))
        for number, ended in folds.items():
            yield from ((number, made) for made in ended.end())

    def _of_part(self, read: SharedRead) -> PartRows:
        """Return what is found in a part of a segment; nothing if it does not show what it is."""
        _, *others = read.reads
        folds = {number: self.folds[number]() for number in others}
        made: list[Numbered] = []

        def take(number: int, batch: pa.RecordBatch) -> None:
            made.extend((number, each) for each in folds[number].add(batch))

        sound = read_part(read, self.wanted, take)
        if sound is None:
            return PartRows(read, None, ())
        made += [(number, each) for number, fold in folds.items() for each in fold.end()]
        return PartRows(read, sound, made)


class JoinedParts:
    """Takes what tasks have found in parts of segments, in the order of the parts, and gives the
    rows of each segment. `again` are the reads of segments whose parts do not show them."""

    def __init__(self, views: FoldedViews) -> None:
        self._views = views
        self._found: list[PartRows] = []
        self.again: list[list[SharedRead]] = []

    def add(self, part: PartRows) -> Iterator[Numbered]:
        """Yield the rows of a segment with its last part."""
        self._found.append(part)
        if not part.is_last:
            return
        found, self._found = self._found, []
        views, read = self._views, part.read
        ranges = joined_rows(read, views.wanted, [each.sound for each in found])
        if ranges is None:
            self.again.append([replace(read, part=None)])
            return
        lead, *_ = read.reads
        yield from (made for each in found for made in each.made)
        for batch in folded(views.folds[lead](), (batch for _, batch in ranges)):
            yield lead, batch
