"""How a question reads logs: by the views that it asks for. Processes of this machine read them
(`LocalViews`), or tasks of Spark do (`kafkalog.spark.jobs.spark_views`): a question never asks
which.

1. The logs are listed before, and no view lists them again.
2. A task reads its part of a view. It can reduce the rows, so that few of them go further.
3. Views of one request are read together: no task waits for a view to end. Those that fold their
   rows can go along one walk over a segment.
4. The rows of a view come back as one object, `Rows`. An engine decides where it keeps them.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import present
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.records.segment_reader import load_kernels
from kafkalog.columns.table_rows import table_batch
from kafkalog.storage.files.files import has_connections
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.options import view_options
from kafkalog.views.parallel import in_order, light_in_order
from kafkalog.views.planning.planning import Read, planned_groups
from kafkalog.views.planning.shared_reads import Groups, divided, shared_plan, sharing_views
from kafkalog.views.reading.partition_reads import PartitionRead
from kafkalog.views.reading.shared_walk import SharedRead, WantedView
from kafkalog.views.shared_views import Fold, FoldedViews, JoinedParts, Numbered, PartRows, folded
from kafkalog.views.view_reading import load_readers, read_view

Batches = Iterator[pa.RecordBatch]
Reduction = Callable[[Batches], Batches]
Options = Mapping[str, str | int | None]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_NO_OPTIONS: Options = MappingProxyType({})
# Processes end at about the same time if each has so many parts to take, one after another.
_PARTS_EACH = 8
# What a task reads: of the view with a number, or of all that share a walk.
_Part = tuple[int | None, Sequence[Read] | Sequence[SharedRead]]


@dataclass(frozen=True, slots=True)
class AskedView:
    """A view that a question asks for: `columns` of its rows, all without; or what `reduce` makes
    of the rows of a task, or a `fold` does that a task makes for itself: batches of `schema`.
    `options` are the source's. `logs` are those to read, where these are not all. Without
    `has_value_bytes` values of records may be empty: nothing but whether they are null is wanted.
    """

    name: str
    columns: tuple[str, ...] | None = None
    reduce: Reduction | None = None
    schema: pa.Schema | None = None
    options: Options = field(default_factory=dict)
    logs: Sequence[PartitionLog] | None = None
    fold: Callable[[], Fold] | None = None
    has_value_bytes: bool = True

    def reduced(self, batches: Batches) -> Batches:
        """Yield what is wanted of the rows of a task."""
        if self.fold is None:
            yield from (self.reduce or iter)(batches)
        else:
            yield from folded(self.fold(), batches)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns of the view that are read."""
        return self.columns or tuple(arrow_schema(self.name).names)

    @property
    def rows_schema(self) -> pa.Schema:
        """The columns of the rows that come back."""
        return arrow_schema(self.name, self.columns) if self.schema is None else self.schema


@dataclass(frozen=True, slots=True)
class Step:
    """A step of work after a shuffle: `make` has all that was passed on to one of `places`, in a
    task of its own, and is not called for a place without any. It yields results."""

    make: Callable[[int, Iterator[Any]], Iterable[Any]]
    places: int


class Rows(Protocol):
    """Rows that a question has got, to be used more than once."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no row."""
        ...

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each row's values by column."""
        ...

    @property
    def table(self) -> pa.Table:
        """All rows, in this process."""
        ...

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the values of a column, in this process."""
        ...

    def of_table(self, name: str) -> Rows:
        """Return the structs of a column that are not null, as rows."""
        ...


class Views(Protocol):
    """Reads views of the logs that were found under some paths."""

    @property
    def log_dirs(self) -> Sequence[str]:
        """The paths, globs resolved."""
        ...

    @property
    def logs(self) -> Sequence[PartitionLog]:
        """The logs under them."""
        ...

    @property
    def options(self) -> Options:
        """The source's options, for all views."""
        ...

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        ...

    def over(self, log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> Views:
        """Return views of other logs, read in the same way."""
        ...

    def rows(self, *asked: AskedView) -> Sequence[Rows]:
        """Return the rows of each view. A view of a topic that no log is of has none."""
        ...

    def tasks(
        self, run: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """Yield what `run` gives of each item, in a task of its own, in the order of the items.
        Results can be pickled."""
        ...

    def shuffled(
        self, read: Callable[[_Item], Iterable[tuple[int, Any]]], items: Sequence[_Item], step: Step
    ) -> Iterator[Any]:
        """Yield what the step makes. `read` has an item in a task of its own, and passes on what it
        finds, each with a number below the step's `places`. What is passed on, and results, can be
        pickled."""
        ...

    def shuffled_rows(
        self,
        read: Callable[[_Item], Iterable[tuple[int, Any]]],
        items: Sequence[_Item],
        schema: pa.Schema,
        step: Step,
    ) -> Rows:
        """Return the same, where the step makes batches of rows with a schema."""
        ...


class RowsInMemory:
    """Rows that this process has."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @classmethod
    def of(cls, table: str, rows: Iterable[Mapping[str, Any]]) -> RowsInMemory:
        """Return rows that were made one by one, with the columns of a table."""
        return cls(pa.Table.from_batches([table_batch(table, [*rows], {})]))

    @property
    def is_empty(self) -> bool:
        """Whether there is no row."""
        return not len(self.table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each row's values by column."""
        for batch in self.table.to_batches():
            yield from batch.to_pylist(maps_as_pydicts="strict")

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the values of a column."""
        return self.table.column(name)

    def of_table(self, name: str) -> RowsInMemory:
        """Return the structs of a column that are not null, as rows."""
        structs = self.table.column(name)
        # `drop_null` would import pyarrow.compute.
        batches = [
            pa.RecordBatch.from_struct_array(chunk.slice(start, end - start))
            for chunk in structs.chunks
            for start, end in np.flatnonzero(
                np.diff(present(chunk), prepend=False, append=False)
            ).reshape(-1, 2)
        ]
        return RowsInMemory(pa.Table.from_batches(batches, pa.schema(list(structs.type))))


@dataclass(frozen=True, slots=True)
class LocalViews:
    """Reads views by processes of this machine. `options` are the source's, for all views;
    `on_done` is called with the number of bytes that a task has read."""

    log_dirs: Sequence[str]
    logs: Sequence[PartitionLog]
    processes: int
    options: Options = field(default_factory=dict)
    on_done: Callable[[int], None] = lambda size: None

    def over(self, log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> LocalViews:
        """Return views of other logs, by as many processes."""
        return replace(self, log_dirs=log_dirs, logs=logs)

    def rows(self, *asked: AskedView) -> list[RowsInMemory]:
        """Return the rows of each view, in the order of the logs; those of folds in any."""
        found: list[list[pa.RecordBatch]] = [[] for _ in asked]
        for number, batch in self._batches(asked):
            found[number].append(batch)
        return [
            RowsInMemory(pa.Table.from_batches(batches, each.rows_schema))
            for each, batches in zip(asked, found, strict=True)
        ]

    def batches(self, asked: AskedView) -> Batches:
        """Yield the rows of a view in the order of the logs, as they are read: none are kept."""
        for _, batch in self._batches([asked]):
            yield batch

    def _batches(self, asked: Sequence[AskedView]) -> Iterator[Numbered]:
        """Yield the rows of some views, each batch with the number of its view."""
        divides = self.processes > 1 and not has_connections()
        plan = planned_views(self, asked, self.processes * _PARTS_EACH if divides else 1)
        parts: list[_Part] = [(None, group) for group in plan.together]
        parts += [(number, group) for number, groups in enumerate(plan.alone) for group in groups]

        if self.processes > 1 and len(parts) > 1:
            load_kernels()
            load_readers(read for groups in plan.alone for group in groups for read in group)

        def read(part: _Part) -> Iterator[Numbered | PartRows]:
            number, reads = part
            if number is None:
                yield from plan.views.rows(cast("Sequence[SharedRead]", reads))
                return
            batches = read_view(cast("Sequence[Read]", reads), *plan.views.wanted[number])
            yield from ((number, batch) for batch in asked[number].reduced(batches))

        def done(part: _Part) -> None:
            self.on_done(sum(each.size for each in part[1]))

        # What reads partitions looks at headers, mostly.
        is_light = all(
            number is not None
            and (plan.views.wanted[number].has_headers_alone or isinstance(each, PartitionRead))
            for number, reads in parts
            for each in reads
        )
        taken = light_in_order if is_light else in_order
        joined = JoinedParts(plan.views)
        for found in taken(read, parts, processes=self.processes, on_done=done):
            if isinstance(found, PartRows):
                yield from joined.add(found)
            else:
                yield found
        yield from in_order(plan.views.whole_rows, joined.again, processes=self.processes)

    def tasks(
        self, run: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """Yield what `run` gives of each item, in the order of the items."""
        yield from in_order(run, items, processes=self.processes, on_done=self._done)

    def _done(self, item: Any) -> None:
        """Say that an item was read, if it says how many bytes it has."""
        parts = item if isinstance(item, (list, tuple)) else [item]
        self.on_done(sum(getattr(part, "size", 0) for part in parts))

    @property
    def cores(self) -> int:
        """How many processes work at once."""
        return self.processes

    def shuffled(
        self, read: Callable[[_Item], Iterable[tuple[int, Any]]], items: Sequence[_Item], step: Step
    ) -> Iterator[Any]:
        """Yield what the step makes. What is passed on waits in this process."""
        waiting: dict[int, list[bytes]] = defaultdict(list)

        def pickled(item: _Item) -> Iterator[tuple[int, bytes]]:
            for place, passed in read(item):
                yield place, pickle.dumps(passed)

        for place, data in in_order(pickled, items, processes=self.processes, on_done=self._done):
            waiting[place].append(data)
        made = partial(_made, step, waiting)
        yield from in_order(made, sorted(waiting), processes=self.processes)

    def shuffled_rows(
        self,
        read: Callable[[_Item], Iterable[tuple[int, Any]]],
        items: Sequence[_Item],
        schema: pa.Schema,
        step: Step,
    ) -> RowsInMemory:
        """Return the same as rows."""
        return RowsInMemory(pa.Table.from_batches(self.shuffled(read, items, step), schema))


def _made(step: Step, waiting: Mapping[int, Sequence[bytes]], place: int) -> Iterable[Any]:
    """Return what a step makes of what waits at a place."""
    return step.make(place, map(pickle.loads, waiting[place]))


def rows_of_view(
    views: Views,
    view: str,
    columns: tuple[str, ...] | None = None,
    reduce: Reduction | None = None,
    schema: pa.Schema | None = None,
    options: Options = _NO_OPTIONS,
) -> Rows:
    """Return the rows of one view."""
    return views.rows(AskedView(view, columns, reduce, schema, options))[0]


class RequestPlan(NamedTuple):
    """What tasks read for a request: groups of reads for all views that share a walk, a task each;
    and those of each view for itself."""

    views: FoldedViews
    together: Sequence[Sequence[SharedRead]]
    alone: Sequence[Groups]

    @property
    def sharing(self) -> list[int]:
        """The numbers of the views that share walks."""
        return sorted({n for group in self.together for read in group for n in read.reads})


def planned_views(
    views: Views, asked: Sequence[AskedView], parts: int, left_out: Collection[int] = ()
) -> RequestPlan:
    """Return the plan of a request, without the views that are `left_out`. Segments that are larger
    than one of so many equal `parts` of everything are divided."""
    options = [
        replace(
            view_options(views.log_dirs, each.name, **{**views.options, **each.options}),
            has_value_bytes=each.has_value_bytes,
        )
        for each in asked
    ]
    wanted = [WantedView(options[number], each.read_columns) for number, each in enumerate(asked)]
    sharing = sharing_views(
        [
            wanted[number] if each.fold is not None and number not in left_out else None
            for number, each in enumerate(asked)
        ]
    )
    planned = [
        []
        if number in left_out or is_of_absent_topic(each, views.logs)
        else planned_groups(
            options[number],
            list(views.logs if each.logs is None else each.logs),
            divides=number not in sharing,
            beside=views.logs,
        )
        for number, each in enumerate(asked)
    ]
    together, alone = shared_plan(planned, sharing)
    of_tasks = FoldedViews(
        # What was planned goes to no task once more.
        [WantedView(each.options.of_tasks(), each.columns) for each in wanted],
        {number: fold for number in sharing if (fold := asked[number].fold) is not None},
    )
    return RequestPlan(of_tasks, divided(together, parts), alone)


def is_of_absent_topic(asked: AskedView, logs: Sequence[PartitionLog]) -> bool:
    """Return whether a view is of a topic that no log is of: it has no rows."""
    topic = asked.options.get("subscribe", "*")
    return topic not in ("*", None, *(log.topic for log in logs))
