"""Which views of one request go along one walk over a segment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import ReadOptions, View
from kafkalog.views.planning.planning import Read
from kafkalog.views.reading.shared_walk import SharedRead, WantedView, is_whole

Groups = Sequence[Sequence[Read]]


class SharedPlan(NamedTuple):
    """Reads for several views at once, a group for each task; and what is left to each view."""

    together: Sequence[Sequence[SharedRead]]
    alone: Sequence[Groups]


def sharing_views(wanted: Sequence[WantedView | None]) -> list[int]:
    """Return the numbers of the views that can go along one walk, first that of view `byte_ranges`;
    none where there are not two. None stands for a view that takes all rows of a task at once."""
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
    return [lead, *others] if others else []


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
    taken = {path for path, reads in files.items() if len(reads) > 1}
    together = [
        [SharedRead(files[read.path]) for read in _whole([group]) if read.path in taken]
        for group in planned[lead]
    ]
    alone = [
        _without(groups, taken) if number in sharing else groups
        for number, groups in enumerate(planned)
    ]
    return SharedPlan([group for group in together if group], alone)


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
