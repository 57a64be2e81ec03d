"""The tasks that build the table of state, and write its files.

What tasks pass on to each other are keys as hashes and offsets, many at once. Reasons:
docs/decisions/0031.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.keys.key_offsets import ENTRY_BYTES, KeyOffsets
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.state.outdated_rows import FilePart, FoundRows, OutdatedRows, written_without
from kafkalog.lake.state.passed_on import PassingFolder, Piece
from kafkalog.lake.state.state_plan import StatePlan, in_shares
from kafkalog.lake.state.state_task import (
    MOST_KEYS,
    KeyPart,
    PartitionReads,
    StateFiles,
    StateTask,
    divided,
)
from kafkalog.lake.written_file import OnReport, Report, WrittenFile
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.views.engine import Views
from kafkalog.views.reading.work_log import READ, reported_work

# Of keys that one task merges, bucket by bucket, so that what survives of them fits into memory.
_MOST_KEY_BYTES = MOST_KEYS * ENTRY_BYTES
_OFFSET_BYTES = 8
# To write a record takes as long as to read so many bytes.
_WRITING = 1024


class _Whole(NamedTuple):
    """Partitions that one task reads as a whole."""

    partitions: Sequence[PartitionReads]


class _Share(NamedTuple):
    """What a task reads of a partition that several tasks read, and which of these it is."""

    owner: int
    reads: PartitionReads


class _Found(NamedTuple):
    """What a task has passed on of a share: keys, each with its bucket, and how many records have
    no key."""

    owner: int
    keys: Sequence[tuple[int, Piece]]
    keyless: int


class _Bucket(NamedTuple):
    """A bucket of a partition's keys, which tasks have passed on."""

    owner: int
    keys: Sequence[Piece]


class _Part(NamedTuple):
    """A part of a partition, and its offsets that survive, which tasks have passed on."""

    reads: PartitionReads
    offsets: Sequence[Piece]


class _Rewritten(NamedTuple):
    """Parts of files that one task writes again without their outdated rows."""

    parts: Sequence[FoundRows]


class _Records(NamedTuple):
    """Parts of partitions of which one task writes the records that survive."""

    partitions: Sequence[tuple[PartitionReads, LongArray]]


# A part of a partition: which partition, and which of its parts.
_PartPlace = tuple[int, int]


def written_state(views: Views, task: StateTask, plan: StatePlan, report: OnReport) -> StateFiles:
    """Write the state of what is planned, and return the files and the records without a key. What
    a task has written it also reports."""
    folder = PassingFolder.of_run(task.output.path)
    tasks = _Tasks(
        *(task, folder, report),
        buckets=[each.buckets for each in plan.spread],
        firsts=[each.firsts for each in plan.spread],
    )
    shares = [
        _Share(owner, reads)
        for owner, partition in enumerate(plan.spread)
        for reads in partition.shares
    ]
    items: list[_Whole | _Share] = [*map(_Whole, plan.whole), *shares]
    done: list[StateFiles] = []
    keys: defaultdict[tuple[int, int], list[Piece]] = defaultdict(list)
    survivors: defaultdict[_PartPlace, list[Piece]] = defaultdict(list)
    try:
        for found in views.tasks(tasks.find_keys, items):
            if isinstance(found, StateFiles):
                done.append(found)
                continue
            done.append(StateFiles([], found.keyless))
            for bucket, piece in found.keys:
                keys[found.owner, bucket].append(piece)
        buckets = [_Bucket(owner, pieces) for (owner, _), pieces in sorted(keys.items())]
        sizes = [_size(bucket.keys) for bucket in buckets]
        groups = in_shares(buckets, sizes, max(views.cores, -(-sum(sizes) // _MOST_KEY_BYTES)))
        for place, piece in views.tasks(tasks.find_survivors, groups):
            survivors[place].append(piece)
        parts = [
            _Part(plan.spread[owner].parts[number], pieces)
            for (owner, number), pieces in sorted(survivors.items())
        ]
        done += views.tasks(tasks.write, in_shares(parts, [*map(_work, parts)], len(shares)))
    finally:
        if shares:
            folder.remove()
    return _together(done)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """What tasks do with partitions of which each is several tasks' work: some find the keys of a
    share of its reads, others which offsets survive of buckets of these keys, and the last write
    the records of its parts. `buckets` and `firsts` are those of each partition."""

    task: StateTask
    folder: PassingFolder
    report: OnReport
    buckets: Sequence[int]
    firsts: Sequence[Sequence[int]]

    def find_keys(self, item: _Whole | _Share) -> Iterator[StateFiles | _Found]:
        """Pass on the keys of a share; write whole partitions."""
        if isinstance(item, _Whole):
            yield _written_whole(self.task, item.partitions, self.report)
            return
        use_file_access(self.task.options.file_access)
        keyless = 0

        def keys() -> Iterator[tuple[int, bytes]]:
            nonlocal keyless
            for found in self.task.key_parts(item.reads, self.buckets[item.owner]):
                if isinstance(found, KeyPart):
                    yield found
                else:
                    keyless += found

        with reported_work(READ, {"reads": str(len(item.reads.reads))}):
            passed_on = self.folder.pass_on(keys())
        yield _Found(item.owner, passed_on, keyless)

    def find_survivors(self, buckets: Sequence[_Bucket]) -> Iterator[tuple[_PartPlace, Piece]]:
        """Pass on the offsets that survive in some buckets to the parts that have them."""
        use_file_access(self.task.options.file_access)
        yield from self.folder.pass_on(self._survivors(buckets))

    def _survivors(self, buckets: Sequence[_Bucket]) -> Iterator[tuple[_PartPlace, bytes]]:
        for owner, own in groupby(buckets, attrgetter("owner")):
            some = []
            for bucket in own:
                keys = KeyOffsets(self.task.secret)
                for entries in self.folder.passed(bucket.keys):
                    keys.merge_bytes(entries)
                some.append(keys.offsets())
            offsets = np.concatenate(some)
            offsets.sort()
            for number, found in enumerate(divided(offsets, self.firsts[owner])):
                if len(found):
                    yield (owner, number), found.tobytes()

    def write(self, parts: Sequence[_Part]) -> Iterator[StateFiles]:
        """Write the records of some parts that survive."""
        use_file_access(self.task.options.file_access)

        def with_survivors() -> Iterator[tuple[PartitionReads, LongArray]]:
            for part in parts:
                some = [*map(_offsets, self.folder.passed(part.offsets))]
                survivors = np.concatenate(some)
                survivors.sort()
                yield part.reads, survivors

        with reported_work(READ, {"reads": str(sum(len(part.reads.reads) for part in parts))}):
            files = self.task.surviving_files(with_survivors())
        yield _reported(StateFiles(files, 0), self.report)


def _offsets(data: bytes) -> LongArray:
    return np.frombuffer(data, dtype=np.int64)


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.size for piece in pieces)


def _work(part: _Part) -> int:
    """Return what it takes to write what survives of a part, as if it were bytes to read."""
    return part.reads.size + _WRITING * (_size(part.offsets) // _OFFSET_BYTES)


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
