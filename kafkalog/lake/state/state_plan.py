"""Which tasks build the table of state: one for some whole partitions, several for a large one.

Reasons: docs/decisions/0031.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import TypeVar, cast

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.keys.key_offsets import MOST_BUCKETS
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.state.state_task import MOST_KEYS, PartitionReads, divided, first_offset
from kafkalog.storage.reading.offset_ranges import OffsetRequest, SpecificOffsets
from kafkalog.storage.reading.read_plan import (
    LEAST_PART_BYTES,
    LogReads,
    SegmentRead,
    TaskSize,
    packed,
    pieces,
    read_cost,
    task_reads,
)
from kafkalog.views.options.option_values import chosen
from kafkalog.views.options.options import Isolation, Mode, ReadOptions
from kafkalog.views.options.topics import TopicChoice
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.planning.state_positions import StateRun
from kafkalog.views.planning.table_positions import StateSource

# Of segments that one task reads at most: a key is passed on once for each task that has it.
_TASK_BYTES = 4 * 1024 * 1024 * 1024
# So many parts of a partition are there for each task, where it has so many segments: most of what
# survives is in the last ones.
_PARTS_OF_TASK = 8

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class SpreadPartition:
    """A partition that several tasks read. Its reads are divided into parts, of each of which the
    offsets that survive fit into memory. Its keys are divided into buckets, so that each fits into
    memory. `shares` has the reads of some parts together, of a task that finds keys."""

    parts: tuple[PartitionReads, ...]
    buckets: int
    shares: tuple[PartitionReads, ...]

    @property
    def firsts(self) -> list[int]:
        """The lowest offset that each part can have."""
        return [first_offset(part.reads[0]) for part in self.parts]


@dataclass(frozen=True, slots=True)
class StatePlan:
    """What a run reads: each of the groups `whole` has partitions for one task."""

    options: ReadOptions
    whole: tuple[tuple[PartitionReads, ...], ...]
    spread: tuple[SpreadPartition, ...]

    @property
    def groups(self) -> list[tuple[PartitionReads, ...]]:
        """What a task reads at a time, whole partitions or parts of them."""
        parts = [(part,) for partition in self.spread for part in partition.parts]
        return [*self.whole, *parts]

    def with_survivors(
        self, survivors: Mapping[TopicPartition, LongArray]
    ) -> list[list[tuple[PartitionReads, LongArray]]]:
        """Return the groups that have surviving offsets, which are in order, each part of a
        partition with its own."""
        firsts = defaultdict(list)
        for part in chain.from_iterable(self.groups):
            firsts[part.key].append(first_offset(part.reads[0]))
        own = {key: iter(divided(survivors[key], starts)) for key, starts in firsts.items()}
        groups = [[(part, next(own[part.key])) for part in group] for group in self.groups]
        return [group for group in groups if any(len(offsets) for _, offsets in group)]


def plan_state(
    paths: Sequence[str],
    mode: str,
    run: StateRun,
    sources: Sequence[StateSource],
    *,
    processes: int,
    most_keys: int = MOST_KEYS,
    least_bytes: int = LEAST_PART_BYTES,
) -> StatePlan:
    """Plan the tasks of a run; `processes` is how many run at once.

    A partition that can have more than `most_keys` records, or more than an equal share of the
    bytes, is read by several tasks, none for fewer than `least_bytes`.
    """
    damage = chosen("mode", Mode, mode)
    ends = {key: run.ends[key] for key in run.starts}
    options = ReadOptions(
        tuple(paths),
        topics=TopicChoice(assign=frozenset(run.starts)),
        offsets=OffsetRequest(SpecificOffsets({**run.starts}), SpecificOffsets(ends)),
        mode=damage,
        fails_on_deleted=damage is Mode.FAILFAST,
        isolation=Isolation(run.positions.isolation_level),
    )
    of_partition: defaultdict[TopicPartition, list[SegmentRead | LogReads]] = defaultdict(list)
    walked = {source.key: source.committed for source in sources}
    logs = [log for source in sources for log in source.logs]
    groups = planned_groups(options, logs, walked) if run.starts else []
    for group in cast("list[Sequence[SegmentRead]]", groups):
        for piece in pieces(group):
            of_partition[piece.topic or "", piece.partition or 0].append(piece)
    size = sum(read.size for reads in of_partition.values() for read in reads)
    task_bytes = max(least_bytes, min(_TASK_BYTES, -(-size // processes)))
    by_key = {source.key: source for source in sources}
    whole, spread = [], []
    for key, reads in of_partition.items():
        source = by_key[key]
        partition = PartitionReads(
            key,
            source.cluster_id,
            source.input_path,
            task_reads(reads),
            run.ends[key] - run.starts[key],
        )
        if partition.size > task_bytes or partition.records > most_keys:
            spread.append(_spread(partition, task_bytes, processes, most_keys))
        else:
            whole.append(partition)
    tasks = packed(whole, TaskSize(task_bytes, cores=processes))
    return StatePlan(options, tuple(tasks), tuple(spread))


def _spread(
    partition: PartitionReads, task_bytes: int, processes: int, most_keys: int
) -> SpreadPartition:
    tasks = _full_rounds(-(-partition.size // task_bytes), processes)
    least_parts = -(-partition.records // (2 * most_keys))
    reads = pieces(partition.reads)
    cost = sum(read_cost(read) for read in reads)
    parts, shares = (
        tuple(
            replace(partition, reads=task_reads(group))
            for group in packed(reads, TaskSize(-(-cost // count), cores=1))
        )
        for count in (max(least_parts, _PARTS_OF_TASK * tasks), tasks)
    )
    # A task has a bucket's keys several times: as it receives them, and while its table grows.
    bucket_keys = max(1, most_keys // 4)
    buckets = max(-(-partition.records // bucket_keys), min(processes, len(parts)))
    return SpreadPartition(parts, min(buckets, MOST_BUCKETS), shares)


def _full_rounds(tasks: int, processes: int) -> int:
    return -(-tasks // processes) * processes


def in_shares(items: Sequence[_Item], costs: Sequence[int], most: int) -> list[tuple[_Item, ...]]:
    """Return the items, in their order, in at most so many groups of about the same cost."""
    total = max(sum(costs), 1)
    numbers = [
        (2 * end - cost) * most // (2 * total)
        for end, cost in zip(accumulate(costs), costs, strict=True)
    ]
    grouped = groupby(zip(numbers, items, strict=True), itemgetter(0))
    return [tuple(item for _, item in group) for _, group in grouped]
