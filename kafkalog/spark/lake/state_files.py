"""The tasks in Spark that build the table of state, and report the files that they wrote.

What tasks pass on to each other are keys as hashes and offsets, each row with many of them.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.arrays import fixed_width, of_values
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.keys.key_offsets import KeyOffsets
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.state.outdated_rows import FilePart, FoundRows, OutdatedRows, written_without
from kafkalog.lake.state.state_plan import SpreadPartition, StatePlan
from kafkalog.lake.state.state_task import KeyPart, PartitionReads, StateFiles, StateTask, divided
from kafkalog.lake.written_file import OnReport, Report, WrittenFile
from kafkalog.spark.delta_commit import session_setting
from kafkalog.spark.lake.task_groups import RESULT, in_places, in_tasks, pickled, results
from kafkalog.views.reading.work_log import READ, reported_work

# The number of the task that a row is for, what it is to know, and records without a key.
_PASSED_ON = "place int, data binary, keyless bigint"

# What the JVM gives a task at once of what others passed on; its own limit is 64 MiB.
_SMALL_BATCHES = "spark.sql.execution.arrow.maxBytesPerBatch", str(4 * 1024 * 1024)

_Batches = Iterator[pa.RecordBatch]


def written_state(
    spark: SparkSession, task: StateTask, plan: StatePlan, report: OnReport
) -> StateFiles:
    """Write the state of what is planned, and return the files and the records without a key. What
    a task has written it also reports."""
    frames = []
    if plan.whole:

        def whole(partitions: Sequence[PartitionReads]) -> _Batches:
            with reported_work(READ, {"reads": str(sum(len(each.reads) for each in partitions))}):
                done = task.whole_partitions(partitions)
            yield _reported(done, report)

        frames.append(in_tasks(spark, plan.whole, whole))
    if plan.spread:
        frames.append(_spread(spark, task, plan.spread, report))
    if not frames:
        return StateFiles([], 0)
    with session_setting(spark, *_SMALL_BATCHES):
        return _together(results(reduce(DataFrame.unionAll, frames)))


def found_keys(
    spark: SparkSession, task: StateTask, plan: StatePlan
) -> tuple[dict[TopicPartition, KeyOffsets], int]:
    """Return the keys of all that is planned, and how many records have none. They come to this
    process, so that there must not be too many."""
    groups = plan.groups
    keys = {part.key: KeyOffsets(task.secret) for group in groups for part in group}
    places = list(keys)

    def find_keys(partitions: Sequence[PartitionReads]) -> _Batches:
        for partition in partitions:
            place = places.index(partition.key)
            with reported_work(READ, {"reads": str(len(partition.reads))}):
                for found in task.key_parts(partition, buckets=1):
                    if isinstance(found, KeyPart):
                        yield _passed_on(place, found.entries)
                    else:
                        yield _passed_on(place, b"", found)

    rows = in_tasks(spark, groups, find_keys, _PASSED_ON).collect()
    for row in rows:
        keys[places[row.place]].merge_bytes(row.data)
    return keys, sum(row.keyless for row in rows)


def found_outdated(
    spark: SparkSession, outdated: OutdatedRows, groups: Sequence[Sequence[FilePart]]
) -> list[FoundRows]:
    """Find the outdated rows of parts of files; each group is a task's."""

    def find(parts: Sequence[FilePart]) -> _Batches:
        for part in parts:
            yield pickled(outdated.found_in(part))

    return results(in_tasks(spark, groups, find))


def written_changes(
    spark: SparkSession,
    task: StateTask,
    changed: Sequence[Sequence[FoundRows]],
    survivors: Sequence[Sequence[tuple[PartitionReads, LongArray]]],
    report: OnReport,
) -> list[WrittenFile]:
    """Write what is left of parts of files, and the records whose offsets, which are in order,
    survive; each group is a task's."""

    def write_others(parts: Sequence[FoundRows]) -> _Batches:
        files = written_without(task.output, task.options.file_access, parts)
        yield _reported(StateFiles(files, 0), report)

    def write_records(partitions: Sequence[tuple[PartitionReads, LongArray]]) -> _Batches:
        with reported_work(READ, {"reads": str(sum(len(each.reads) for each, _ in partitions))}):
            files = task.surviving_files(partitions)
        yield _reported(StateFiles(files, 0), report)

    if not changed and not survivors:
        return []
    others = in_tasks(spark, changed, write_others)
    return _together(results(others.unionAll(in_tasks(spark, survivors, write_records)))).files


def _spread(
    spark: SparkSession, task: StateTask, partitions: Sequence[SpreadPartition], report: OnReport
) -> DataFrame:
    """Return what writes partitions by several tasks each: some find the keys of a part of the
    reads, others which offsets survive of a bucket's keys, and the last write a part's records."""
    parts = [part for partition in partitions for part in partition.parts]
    # Of each partition: the numbers of its first part and of its first bucket among all.
    first_parts = [0, *accumulate(len(each.parts) for each in partitions)]
    first_buckets = [0, *accumulate(each.buckets for each in partitions)]
    counts = np.diff(first_parts)
    partition_of = np.repeat(np.arange(len(partitions)), counts).tolist()
    buckets = [each.buckets for each in partitions]
    firsts = [each.firsts for each in partitions]
    packed = [pickle.dumps(part) for part in parts]

    def find_keys(numbered: tuple[int, PartitionReads]) -> _Batches:
        owner, part = numbered
        with reported_work(READ, {"reads": str(len(part.reads))}):
            for found in task.key_parts(part, buckets[owner]):
                if isinstance(found, KeyPart):
                    place = first_buckets[owner] + found.bucket
                    yield _passed_on(place, found.entries)
                else:
                    yield _passed_on(first_buckets[owner], b"", found)

    def find_survivors(rows: _Batches) -> _Batches:
        keys: defaultdict[int, KeyOffsets] = defaultdict(lambda: KeyOffsets(task.secret))
        for bucket, entries, keyless in _received(rows):
            keys[bucket].merge_bytes(entries)
            keys[bucket].keyless += keyless
        for bucket, found in keys.items():
            owner = int(np.searchsorted(first_buckets, bucket, "right")) - 1
            own = divided(found.offsets(), firsts[owner])
            for number, offsets in enumerate(own):
                yield _passed_on(first_parts[owner] + number, offsets.tobytes())
            yield _passed_on(first_parts[owner], b"", found.keyless)

    def write(rows: _Batches) -> _Batches:
        found: defaultdict[int, list[LongArray]] = defaultdict(list)
        keyless = 0
        for number, offsets, count in _received(rows):
            found[number].append(np.frombuffer(offsets, dtype=np.int64))
            keyless += count
        for number in list(found):
            part: PartitionReads = pickle.loads(packed[number])
            survivors = np.concatenate(found.pop(number))
            survivors.sort()
            with reported_work(READ, {"reads": str(len(part.reads))}):
                files = task.surviving_files([(part, survivors)])
            yield _reported(StateFiles(files, keyless), report)
            keyless = 0

    numbered = list(zip(partition_of, parts, strict=True))
    keys = in_tasks(spark, numbered, find_keys, _PASSED_ON)
    keys = in_places(keys, int(first_buckets[-1]), "place")
    survivors = in_places(keys.mapInArrow(find_survivors, _PASSED_ON), len(parts), "place")
    return survivors.mapInArrow(write, RESULT)


def _passed_on(place: int, data: bytes, keyless: int = 0) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            fixed_width(np.array([place]), pa.int32()),
            of_values([data], pa.binary()),
            fixed_width(np.array([keyless]), pa.int64()),
        ],
        names=["place", "data", "keyless"],
    )


def _received(batches: _Batches) -> Iterator[tuple[int, pa.Buffer, int]]:
    for batch in batches:
        for place, data, keyless in zip(*batch.columns, strict=True):
            yield place.as_py(), data.as_buffer(), keyless.as_py()


def _reported(done: StateFiles, report: OnReport) -> pa.RecordBatch:
    report(Report(0, tuple(done.files)))
    return pickled(done)


def _together(done: Sequence[StateFiles]) -> StateFiles:
    return StateFiles(
        [file for each in done for file in each.files], sum(each.keyless for each in done)
    )
