"""The tasks that build the table of state, and write its files.

What tasks pass on to each other are keys as hashes and offsets, many at once. Reasons:
docs/decisions/0031.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.keys.key_offsets import KeyOffsets
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.state.outdated_rows import FilePart, FoundRows, OutdatedRows, written_without
from kafkalog.lake.state.state_plan import SpreadPartition, StatePlan
from kafkalog.lake.state.state_task import KeyPart, PartitionReads, StateFiles, StateTask, divided
from kafkalog.lake.written_file import OnReport, Report, WrittenFile
from kafkalog.views.engine import Step, Views
from kafkalog.views.reading.work_log import READ, reported_work


class _Survivors(NamedTuple):
    """Offsets of a part of a partition's reads that survive, of one of its buckets, and how many
    records of the bucket have no key."""

    offsets: LongArray
    keyless: int


class _Part(NamedTuple):
    """A part of a partition that several tasks read, and which of these partitions."""

    owner: int
    reads: PartitionReads


class _Whole(NamedTuple):
    """Partitions that one task reads as a whole."""

    partitions: Sequence[PartitionReads]


class _Rewritten(NamedTuple):
    """Parts of files that one task writes again without their outdated rows."""

    parts: Sequence[FoundRows]


class _Records(NamedTuple):
    """Parts of partitions of which one task writes the records that survive."""

    partitions: Sequence[tuple[PartitionReads, LongArray]]


_Keys = KeyPart | int | StateFiles


def written_state(views: Views, task: StateTask, plan: StatePlan, report: OnReport) -> StateFiles:
    """Write the state of what is planned, and return the files and the records without a key. What
    a task has written it also reports."""
    if plan.spread:
        spread = _SpreadState(task, plan.spread, report)
        items: list[_Part | _Whole] = [*map(_Whole, plan.whole), *spread.items()]
        return _together([*views.shuffled(spread.find_keys, items, *spread.steps())])

    def whole(partitions: Sequence[PartitionReads]) -> Iterator[StateFiles]:
        yield _written_whole(task, partitions, report)

    return _together([*views.tasks(whole, plan.whole)])


class _SpreadState:
    """Partitions that several tasks write each: some find the keys of a part of the reads, others
    which offsets survive of a bucket's keys, and the last write a part's records."""

    def __init__(
        self, task: StateTask, partitions: Sequence[SpreadPartition], report: OnReport
    ) -> None:
        self._task, self._report = task, report
        # Of each partition: the numbers of its first part and of its first bucket among all.
        self._first_parts = [0, *accumulate(len(each.parts) for each in partitions)]
        self._first_buckets = [0, *accumulate(each.buckets for each in partitions)]
        self._buckets = [each.buckets for each in partitions]
        self._firsts = [each.firsts for each in partitions]
        # A task unpickles its own.
        self._parts = [pickle.dumps(part) for each in partitions for part in each.parts]

    def items(self) -> list[_Part]:
        """Return what tasks read first."""
        owners = np.searchsorted(self._first_parts, range(len(self._parts)), "right") - 1
        return [
            _Part(owner, pickle.loads(part))
            for owner, part in zip(owners.tolist(), self._parts, strict=True)
        ]

    def steps(self) -> tuple[Step, Step]:
        """Return what is done after that."""
        return (
            Step(self.find_survivors, self._first_buckets[-1]),
            Step(self.write, len(self._parts)),
        )

    def find_keys(self, item: _Part | _Whole) -> Iterator[tuple[int, _Keys]]:
        """Pass keys on to their buckets; of whole partitions what is done."""
        if isinstance(item, _Whole):
            yield 0, _written_whole(self._task, item.partitions, self._report)
            return
        first = self._first_buckets[item.owner]
        with reported_work(READ, {"reads": str(len(item.reads.reads))}):
            for found in self._task.key_parts(item.reads, self._buckets[item.owner]):
                yield first + (found.bucket if isinstance(found, KeyPart) else 0), found

    def find_survivors(
        self, bucket: int, found: Iterator[_Keys]
    ) -> Iterator[tuple[int, _Survivors | StateFiles]]:
        """Pass the offsets that survive in a bucket on to the parts that have them."""
        keys = KeyOffsets(self._task.secret)
        for each in found:
            if isinstance(each, StateFiles):
                yield 0, each
            elif isinstance(each, KeyPart):
                keys.merge_bytes(each.entries)
            else:
                keys.keyless += each
        owner = int(np.searchsorted(self._first_buckets, bucket, "right")) - 1
        own = divided(keys.offsets(), self._firsts[owner])
        for number, offsets in enumerate(own):
            part = self._first_parts[owner] + number
            yield part, _Survivors(offsets, 0 if number else keys.keyless)

    def write(self, number: int, found: Iterator[_Survivors | StateFiles]) -> Iterator[StateFiles]:
        """Write the records of a part that survive."""
        some, keyless = [], 0
        for each in found:
            if isinstance(each, StateFiles):
                yield each
            else:
                some.append(each.offsets)
                keyless += each.keyless
        part: PartitionReads = pickle.loads(self._parts[number])
        survivors = np.concatenate(some)
        survivors.sort()
        with reported_work(READ, {"reads": str(len(part.reads))}):
            files = self._task.surviving_files([(part, survivors)])
        yield _reported(StateFiles(files, keyless), self._report)


def _written_whole(
    task: StateTask, partitions: Sequence[PartitionReads], report: OnReport
) -> StateFiles:
    with reported_work(READ, {"reads": str(sum(len(each.reads) for each in partitions))}):
        done = task.whole_partitions(partitions)
    return _reported(done, report)


def found_keys(
    views: Views, task: StateTask, plan: StatePlan
) -> tuple[dict[TopicPartition, KeyOffsets], int]:
    """Return the keys of all that is planned, and how many records have none. They come to this
    process, so that there must not be too many."""
    keys = {part.key: KeyOffsets(task.secret) for group in plan.groups for part in group}

    def find_keys(
        partitions: Sequence[PartitionReads],
    ) -> Iterator[tuple[TopicPartition, KeyPart | int]]:
        for partition in partitions:
            with reported_work(READ, {"reads": str(len(partition.reads))}):
                for found in task.key_parts(partition, buckets=1):
                    yield partition.key, found

    keyless = 0
    for key, found in views.tasks(find_keys, plan.groups):
        if isinstance(found, KeyPart):
            keys[key].merge_bytes(found.entries)
        else:
            keyless += found
    return keys, keyless


def found_outdated(
    views: Views, outdated: OutdatedRows, groups: Sequence[Sequence[FilePart]]
) -> list[FoundRows]:
    """Find the outdated rows of parts of files; each group is a task's."""

    def find(parts: Sequence[FilePart]) -> Iterator[FoundRows]:
        yield from map(outdated.found_in, parts)

    return [*views.tasks(find, groups)]


def written_changes(
    views: Views,
    task: StateTask,
    changed: Sequence[Sequence[FoundRows]],
    survivors: Sequence[Sequence[tuple[PartitionReads, LongArray]]],
    report: OnReport,
) -> list[WrittenFile]:
    """Write what is left of parts of files, and the records whose offsets, which are in order,
    survive; each group is a task's."""

    def write(group: _Rewritten | _Records) -> Iterator[StateFiles]:
        if isinstance(group, _Rewritten):
            files = written_without(task.output, task.options.file_access, group.parts)
        else:
            reads = sum(len(each.reads) for each, _ in group.partitions)
            with reported_work(READ, {"reads": str(reads)}):
                files = task.surviving_files(group.partitions)
        yield _reported(StateFiles(files, 0), report)

    items: list[_Rewritten | _Records] = [*map(_Rewritten, changed), *map(_Records, survivors)]
    return _together([*views.tasks(write, items)]).files


def _reported(done: StateFiles, report: OnReport) -> StateFiles:
    report(Report(0, tuple(done.files)))
    return done


def _together(done: Sequence[StateFiles]) -> StateFiles:
    return StateFiles(
        [file for each in done for file in each.files], sum(each.keyless for each in done)
    )
