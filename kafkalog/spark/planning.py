"""The driver's half of a read: from options to the segments that each task reads."""

from __future__ import annotations

import os

from kafkalog.columns.time_lookup import offset_for_time
from kafkalog.spark.offset_options import check_partitions
from kafkalog.spark.options import Mode, ReadOptions
from kafkalog.storage.log_dir import find_partitions
from kafkalog.storage.offset_ranges import offset_range
from kafkalog.storage.read_plan import SegmentRead, packed, segment_reads


def planned_groups(options: ReadOptions) -> list[tuple[SegmentRead, ...]]:
    """Which segments to read, a group for each task.

    Looks at names and checkpoints only; times are looked up in batch headers.
    """
    found = find_partitions(options.paths, strict=options.mode is Mode.FAILFAST)
    logs = options.topics.chosen(found)
    check_partitions(options.offsets, logs)
    reads = [
        read
        for log in logs
        for read in segment_reads(log, offset_range(log, options.offsets, offset_for_time))
    ]
    return packed(reads, options.max_partition_bytes, os.cpu_count() or 1)
