"""The partitions that state is built from: up to which offset each counts, and what its files
say about it. Rules: docs/format.md F273 to F275.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from kafkalog.columns.transactions.transaction_walk import stable_offset
from kafkalog.errors import LogDirError, OptionError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.logs.log_tails import LogTails
from kafkalog.inspection.logs.missing_offsets import cleaned_up_to
from kafkalog.inspection.logs.past_copies import copy_at
from kafkalog.inspection.logs.replica_facts import leader_epochs, replica_sets
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.partition_log import PartitionLog, topic_id
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.offset_ranges import (
    Everything,
    FromTimestamp,
    OffsetRange,
    offset_range,
)
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.replica_reads import ReplicaSet
from kafkalog.views.options.offset_options import by_topic, check_partitions
from kafkalog.views.options.options import Isolation, ReadOptions
from kafkalog.views.options.topics import SUBSCRIBE_PATTERN
from kafkalog.views.planning.planning import best_ranges, logs_of_paths, time_lookup
from kafkalog.views.planning.table_positions import ASKED, StateSource
from kafkalog.views.reading.reading import report_damage_behind
from kafkalog.words import name_suggestions


class PlannedOffsets(Protocol):
    """The offsets that a run reads: of each partition from its start to its end."""

    @property
    def starts(self) -> Mapping[TopicPartition, int]: ...

    @property
    def ends(self) -> Mapping[TopicPartition, int]: ...


def found_sources(options: ReadOptions) -> list[StateSource]:
    """Return the partitions under the paths of a read of view `records`, by topic and partition.

    Reads checkpoints, batch headers for times, and of each partition the last segment. Raises
    LogDirError for what is not a whole partition, OptionError, DataLossError and CorruptDataError
    as the read would.
    """
    found = logs_of_paths(options)
    chosen = options.topics.chosen(found)
    if not chosen and options.topics.pattern is not None:
        held = name_suggestions([options.topics.pattern], {log.topic for log in found if log.topic})
        raise OptionError(
            SUBSCRIBE_PATTERN, options.topics.pattern, f"what is found in a topic's name: {held}"
        )
    # The oldest messages have no keys.
    logs = [log for log in chosen if not is_oldest_layout(log)]
    _refuse_parts(logs)
    check_partitions(options.offsets, logs)
    ranges = best_ranges(logs, options)
    sources = answers(
        lambda each: replace(_source(each[0], each[1], options), committed=each[2]),
        ranges,
        lambda each: each[0].best.path,
    )
    names = Counter(source.name for source in sources)
    for name, count in names.items():
        if count > 1:
            raise LogDirError(f"partition {name} is there in {count} places: give only one")
    return sorted(sources, key=lambda source: source.key)


def state_sources(options: ReadOptions) -> list[StateSource]:
    """Return the same for a state: where the best replica may lack what counted at its end, the
    replica that was cleaned least is in its place. F1294"""
    return answers(
        lambda source: _least_cleaned(source, options),
        found_sources(options),
        lambda source: source.input_path,
    )


def _least_cleaned(source: StateSource, options: ReadOptions) -> StateSource:
    source = _with_missing(source)
    if source.is_exact or len(source.logs) == 1:
        return source
    (replicas,) = replica_sets(source.logs)
    log = copy_at(replicas, partial(_moment, options=options))
    if log is replicas.best:
        return source
    ((alone, offsets, committed),) = best_ranges([log], options)
    found = _source(alone, offsets, options)
    return _with_missing(replace(found, committed=committed, best_path=replicas.best.path))


def _with_missing(source: StateSource) -> StateSource:
    """Return the source with what says that the cleaner has been in its log, where no checkpoint
    does and the state is not that of the log's end. F1425"""
    log = source.log
    if log is None or log.log_dir.has_cleaner_checkpoint or not source.is_past:
        return source
    return replace(source, missing_until=cleaned_up_to(log))


def _moment(log: PartitionLog, options: ReadOptions) -> int | None:
    """Return the offset of the requested end in a replica, as `copy_at` asks for it: a replica
    whose high watermark or last stable offset is below does not go on past it."""
    request = replace(options.offsets, end_rule=EndRule.LOG_END, fail_on_data_loss=False)
    lookup = time_lookup(ReplicaSet((log,), ()), request.time_rule)
    end = offset_range(log, request, lookup).end
    marks = [log_bounds(log, options.offsets.end_rule).end_offset]
    if options.isolation is Isolation.READ_COMMITTED:
        marks.append(stable_offset(log, looks_for_damage=False).offset)
    if end is None or any(mark is not None and mark < end for mark in marks):
        return LARGEST_OFFSET
    return None if end <= log.log_start else end


def _refuse_parts(logs: Sequence[PartitionLog]) -> None:
    for log in logs:
        if log.topic_partition is None:
            raise LogDirError(
                f"{log.path} is not named <topic>-<partition>, which the table's rows need: rename "
                "or link it"
            )
        if log.given_files:
            raise LogDirError(
                f"{log.segments[0].path} is one file of a partition, and the table is made from "
                f"all of them: give the directory {log.path}"
            )


def _source(replicas: ReplicaSet, offsets: OffsetRange, options: ReadOptions) -> StateSource:
    log = replicas.best
    topic, partition = log.topic_partition or ("", 0)
    is_only_copy = len(replicas.logs) == 1
    log_end = LogTails().end(log).offset if is_only_copy else replicas.lineage_end
    end, end_from = _end(log, offsets, log_end, options)
    if is_only_copy and (offsets.end is None or offsets.end > log_end):
        report_damage_behind(log, log_end, options)
    return StateSource(
        topic=topic,
        partition=partition,
        log_start_offset=offsets.log_start,
        end_offset=end,
        end_from=end_from,
        log_end_offset=log_end,
        cleaner_checkpoint=log.log_dir.cleaner_checkpoints.get((topic, partition)),
        cluster_id=log.log_dir.cluster_id,
        broker_id=log.log_dir.broker_id,
        input_path=log.input_path,
        topic_id=topic_id(log),
        leader_epochs=leader_epochs(log),
        start_offset=offsets.start,
        segments=log.segments,
        passed_over=offsets.passed_over,
        time_rule=options.offsets.time_rule,
        log=log,
        logs=replicas.logs,
        ends_before_time=isinstance(options.offsets.ending, FromTimestamp) and end == log_end,
    )


def _end(
    log: PartitionLog, offsets: OffsetRange, log_end: int, options: ReadOptions
) -> tuple[int, str]:
    if offsets.requested_end is not None and offsets.requested_end > log_end:
        raise OptionError(
            options.offsets.ending_option,
            offsets.requested_end,
            f"an offset of {log.name} from {offsets.log_start} to {log_end}",
        )
    end = log_end if offsets.end is None else min(offsets.end, log_end)
    return end, _end_from(log, end, log_end, options)


def _end_from(log: PartitionLog, end: int, log_end: int, options: ReadOptions) -> str:
    if not isinstance(options.offsets.ending, Everything):
        return ASKED
    is_committed = options.isolation is Isolation.READ_COMMITTED
    # A last stable offset is never above the high watermark, whatever the end rule.
    rule = EndRule.HIGH_WATERMARK if is_committed else options.offsets.end_rule
    mark = log_bounds(log, rule).end_offset
    if is_committed and end < (log_end if mark is None else min(mark, log_end)):
        return "last_stable_offset"
    return "log_end" if mark is None else "high_watermark"


def range_options(run: PlannedOffsets, keys: Collection[TopicPartition]) -> dict[str, str]:
    """Return the options of Spark's reader that read exactly what a run has to read of some
    partitions."""
    assigned: dict[str, list[int]] = {}
    for topic, partition in keys:
        assigned.setdefault(topic, []).append(partition)
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(by_topic({key: run.starts[key] for key in keys})),
        "endingOffsets": json.dumps(by_topic({key: run.ends[key] for key in keys})),
    }
