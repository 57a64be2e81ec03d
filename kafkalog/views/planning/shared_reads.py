"""Which views of one request go along one walk over a segment, and which processes walk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kafkalog.columns.batches.segment_parts import parts_by_bytes
from kafkalog.storage.reading.read_plan import LEAST_PART_BYTES, SegmentRead
from kafkalog.views.options.options import ReadOptions, View
from kafkalog.views.planning.planning import Read
from kafkalog.views.reading.shared_walk import FilePart, SharedRead, WantedView, is_whole

Groups = Sequence[Sequence[Read]]


class SharedPlan(NamedTuple):
    """Reads for several views at once, a group for each task; and what is left to each view."""

    together: Sequence[Sequence[SharedRead]]
    alone: Sequence[Groups]


def sharing_views(wanted: Sequence[WantedView | None]) -> list[int]:
    """Return the numbers of the views that can go along one walk, first that of view `byte_ranges`,
    alone too; none without it. None stands for a view that takes all rows of a task at once."""
    by_view: dict[View, int] = {}
    for number, each in enumerate(wanted):
        if each is not None and each.can_share:
            by_view.setdefault(each.options.view, number)
    lead = by_view.pop(View.BYTE_RANGES, None)
    leader = None if lead is None else wanted[lead]
    if lead is None or leader is None:
        return []
    others = [
        number
        for number in by_view.values()
        if (each := wanted[number]) and _reading(each.options) == _reading(leader.options)
    ]
    return [lead, *others]


def _reading(options: ReadOptions) -> tuple[object, ...]:
    """Return the options by which a segment's bytes are read."""
    return options.mode, options.check_crcs, options.max_batch_bytes


def shared_plan(planned: Sequence[Groups], sharing: Sequence[int]) -> SharedPlan:
    """Return the plan of a request, given that of each view. Tasks are those of the first view that
    shares; other views go along where they would read the same file as a whole."""
    if not sharing:
        return SharedPlan((), planned)
    lead = sharing[0]
    files: dict[str, dict[int, SegmentRead]] = defaultdict(dict)
    for number in sharing:
        for read in _whole(planned[number]):
            if number == lead or read.path in files:
                files[read.path][number] = read
    together = [
        [SharedRead(files[read.path]) for read in _whole([group])] for group in planned[lead]
    ]
    alone = [
        _without(groups, set(files)) if number in sharing else groups
        for number, groups in enumerate(planned)
    ]
    return SharedPlan([group for group in together if group], alone)


def divided(groups: Sequence[Sequence[SharedRead]], parts: int) -> list[Sequence[SharedRead]]:
    """Return the groups with segments in parts, a task each, that are larger than one of so many
    equal parts of everything."""
    total = sum(read.size for group in groups for read in group)
    part_bytes = max(total // parts, LEAST_PART_BYTES)
    found: list[Sequence[SharedRead]] = []
    for group in groups:
        in_parts = [_parts(read, part_bytes) for read in group]
        found += [[part] for some in in_parts if len(some) > 1 for part in some]
        left = [some[0] for some in in_parts if len(some) == 1]
        found += [left] if left else []
    return found


def _parts(shared: SharedRead, part_bytes: int) -> list[SharedRead]:
    """Return the read of a segment in parts, where an index or headers say how to divide it."""
    reads = list(shared.reads.values())
    found = parts_by_bytes(reads[0], max(part_bytes // len(reads), 1))
    if len(found) == 1:
        return [shared]
    places = [0, *(part.start_position for part in found[1:]), None]
    return [replace(shared, part=FilePart(start or 0, end)) for start, end in pairwise(places)]


def _whole(groups: Groups) -> Iterator[SegmentRead]:
    for group in groups:
        for read in group:
            if isinstance(read, SegmentRead) and is_whole(read):
                yield read


def _without(groups: Groups, taken: set[str]) -> Groups:
    """Return the groups without the whole reads of some files."""
    left = [
        [
            read
            for read in group
            if not (isinstance(read, SegmentRead) and is_whole(read) and read.path in taken)
        ]
        for group in groups
    ]
    return [group for group in left if group]
