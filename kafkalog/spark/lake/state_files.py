"""The tasks in Spark that build the table of state, and report the files that they wrote.

What tasks pass on to each other are keys as hashes and offsets, each row with many of them.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import accumulate

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.arrays import fixed_width, integers, of_values
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.keys.key_offsets import KeyOffsets
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.state_plan import SpreadPartition, StatePlan
from kafkalog.lake.state.state_task import KeyPart, PartitionReads, StateFiles, StateTask, divided
from kafkalog.spark.lake.task_files import Report, Reports
from kafkalog.views.reading.work_log import READ, reported_work

# The number of the task that a row is for, what it is to know, and records without a key.
_PASSED_ON = "place int, data binary, keyless bigint"
_WRITTEN = "files binary, keyless bigint"

_Batches = Iterator[pa.RecordBatch]
_Run = Callable[[_Batches], _Batches]


def written_state(spark: SparkSession, task: StateTask, plan: StatePlan) -> StateFiles:
    """Write the state of what is planned, and return the files and the records without a key.

    If it fails, the files of tasks that ended well are removed; those of killed processes stay, and
    no commit names them.
    """
    reports = spark.sparkContext.accumulator([], Reports())
    frames = []
    if plan.whole:
        groups = [pickle.dumps(group) for group in plan.whole]
        tasks = spark.range(0, len(groups), 1, len(groups))
        frames.append(tasks.mapInArrow(_whole(task, groups, reports), _WRITTEN))
    if plan.spread:
        frames.append(_spread(spark, task, plan.spread, reports))
    if not frames:
        return StateFiles([], 0)
    try:
        rows = reduce(DataFrame.unionAll, frames).collect()
    except BaseException:
        directory = OutputDirectory(task.output.path)
        for report in reports.value:
            for file in report.files:
                directory.delete(file.written_path)
        raise
    files = [file for row in rows for file in pickle.loads(row.files)]
    return StateFiles(files, sum(row.keyless for row in rows))


def _whole(task: StateTask, groups: Sequence[bytes], reports: Accumulator[list[Report]]) -> _Run:
    def run(numbers: _Batches) -> _Batches:
        for number in _numbers(numbers):
            partitions = pickle.loads(groups[number])
            with reported_work(READ, {"reads": str(sum(len(each.reads) for each in partitions))}):
                done = task.whole_partitions(partitions)
            yield _reported(done, reports)

    return run


def _spread(
    spark: SparkSession,
    task: StateTask,
    partitions: Sequence[SpreadPartition],
    reports: Accumulator[list[Report]],
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
    pickled = [pickle.dumps(part) for part in parts]

    def find_keys(numbers: _Batches) -> _Batches:
        for number in _numbers(numbers):
            owner = partition_of[number]
            part: PartitionReads = pickle.loads(pickled[number])
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
        for number, own in found.items():
            part: PartitionReads = pickle.loads(pickled[number])
            with reported_work(READ, {"reads": str(len(part.reads))}):
                files = task.surviving_files(part, np.concatenate(own))
            yield _reported(StateFiles(files, keyless), reports)
            keyless = 0

    tasks = spark.range(0, len(parts), 1, len(parts))
    keys = tasks.mapInArrow(find_keys, _PASSED_ON).repartitionById(first_buckets[-1], "place")
    survivors = keys.mapInArrow(find_survivors, _PASSED_ON).repartitionById(len(parts), "place")
    return survivors.mapInArrow(write, _WRITTEN)


def _numbers(batches: _Batches) -> Iterator[int]:
    for batch in batches:
        yield from integers(batch.column(0)).tolist()


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


def _reported(done: StateFiles, reports: Accumulator[list[Report]]) -> pa.RecordBatch:
    reports.add([Report(0, tuple(done.files))])
    return pa.RecordBatch.from_arrays(
        [
            of_values([pickle.dumps(done.files)], pa.binary()),
            fixed_width(np.array([done.keyless]), pa.int64()),
        ],
        names=["files", "keyless"],
    )
