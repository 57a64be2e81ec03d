"""The driver's half of a read: from options to the segments that each task reads."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from kafkalog.columns.batches.segment_parts import parts_by_bytes, parts_by_offsets
from kafkalog.errors import OptionError, UnsupportedFormatError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.logs.log_offsets import earliest_local_offset, earliest_offset
from kafkalog.inspection.logs.replica_facts import live_replicas, replica_sets
from kafkalog.inspection.logs.replica_time_lookup import time_answer_in_replicas
from kafkalog.inspection.logs.time_lookup import time_answer
from kafkalog.inspection.metadata.current_topics import Doubles, find_logs
from kafkalog.log_lines import logger
from kafkalog.messages.catalog import topic_families
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    oldest_base_offset,
)
from kafkalog.storage.partition_log import ListedSegments, PartitionLog
from kafkalog.storage.reading.index_lookup import first_offset_from
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.offset_ranges import (
    Everything,
    OffsetRange,
    TimeAnswer,
    TimeLookup,
    TimeRule,
    TimestampRange,
    offset_range,
)
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.read_plan import (
    CommittedRead,
    LogReads,
    SegmentRead,
    TaskSize,
    packed,
    replica_reads,
    segment_reads,
    single_reads,
    task_reads,
)
from kafkalog.storage.reading.replica_reads import ReplicaSet
from kafkalog.views.options.offset_options import check_partitions
from kafkalog.views.options.options import (
    METADATA_VIEWS,
    PARTITION_VIEWS,
    PLAN_VIEWS,
    RECORD_VIEWS,
    SPLIT_VIEWS,
    START_VIEWS,
    Mode,
    ReadOptions,
    Replicas,
    View,
    without_effect_words,
)
from kafkalog.views.options.topics import internal_logs
from kafkalog.views.planning.directory_reads import DirectoryRead, directory_reads
from kafkalog.views.planning.isolation import committed_read
from kafkalog.views.reading.commit_reading import CommitsRead, commits_reads
from kafkalog.views.reading.partition_reads import (
    PartitionRead,
    ReplicaSetRead,
    partition_read,
    replica_set_read,
)
from kafkalog.views.reading.reading import report_lost_log
from kafkalog.views.reading.work_log import PLANNED, plan_context, reported_work

_logger = logger(__name__)

# What has a row for every byte, or for all of a certain kind.
_ACCOUNTS = (View.BYTE_RANGES, View.FAULTS)
_BYTES = (*_ACCOUNTS, View.SEGMENTS)


# Views about one internal topic.
_TOPIC_OF = {
    View.OFFSET_COMMITS: CONSUMER_OFFSETS,
    View.GROUP_METADATA: CONSUMER_OFFSETS,
    View.TRANSACTION_STATES: TRANSACTION_STATE,
    **dict.fromkeys(METADATA_VIEWS, CLUSTER_METADATA),
}
# What a broker makes of its own disk.
_OF_DISKS = (View.SEGMENTS, View.RECOVERY_PLAN, View.RETENTION_PLAN, View.COMPACTION_REPORT)

# What was found out of the transactions of partitions, by walking over their headers.
CommittedReads = Mapping[TopicPartition, CommittedRead | None]
NOT_WALKED: CommittedReads = MappingProxyType({})
# One read, or those of many segments of a log.
Piece = SegmentRead | LogReads
Read = SegmentRead | PartitionRead | ReplicaSetRead | CommitsRead | DirectoryRead


def logs_of_paths(options: ReadOptions, *, strict: bool | None = None) -> list[PartitionLog]:
    """Return all logs under the paths of a read; `strict` is that of `find_logs`, by the mode of
    the read where it is not given. Of a partition in two directories a view that is about bytes
    has both, one about a broker's start too (F1170)."""
    doubles = Doubles.ALL if options.view in _BYTES else Doubles.ASSIGNED
    if options.view in START_VIEWS:
        doubles = Doubles.UNSAID
    is_strict = options.mode is Mode.FAILFAST if strict is None else strict
    return find_logs(options.paths, strict=is_strict, doubles=doubles)


def planned_groups(
    options: ReadOptions,
    found: list[PartitionLog] | None = None,
    committed: CommittedReads = NOT_WALKED,
    *,
    divides: bool = True,
    beside: Sequence[PartitionLog] = (),
) -> list[Sequence[Read]]:
    """Return which segments to read, or which partitions, a group for each task; `found` are the
    logs under the paths where they have been listed just now, `committed` what was found out of
    their transactions. Large segments are read in parts if `divides`, by views that can. `beside`
    are all logs where those found are some of them: the settings of topics come from all.

    Looks at names and checkpoints only; times are looked up in batch headers. The log start holds
    for records only, and an account of bytes is one of whole files.
    """
    if unused := without_effect_words(options):
        _logger.warning("%s", unused)
    with reported_work(PLANNED) as context:
        if found is None:
            found = logs_of_paths(options)
        groups = _groups(options, found, committed, beside or found, divides=divides)
        context.update(plan_context(found, groups))
    return groups


def _groups(
    options: ReadOptions,
    found: list[PartitionLog],
    committed: CommittedReads,
    beside: Sequence[PartitionLog],
    *,
    divides: bool,
) -> list[Sequence[Read]]:
    logs = chosen_logs(options, found)
    _refuse_oldest_layout(options.view, logs)
    _refuse_tiered(options.view, logs)
    if options.view in PARTITION_VIEWS:
        # Others, such as `segments`, need no replay of the cluster's metadata.
        needs_configs = options.view in PLAN_VIEWS or (
            options.view is View.RECOVERY_PLAN and options.as_of_ms
        )
        configs = options.configs.of_logs(beside) if needs_configs else options.configs.of_files()
        before = _copies_before(options, logs)
        partitions = [
            partition_read(log, configs(log), before.get(log.topic_partition)) for log in logs
        ]
        return [*packed(partitions, _task_size(options))]
    if options.view is View.REPLICAS or options.view in METADATA_VIEWS:
        sets = [replica_set_read(logs) for logs in live_replicas(logs)]
        return [*packed(sets, _task_size(options))]
    check_partitions(options.offsets, logs)
    if options.view in RECORD_VIEWS and options.replicas is Replicas.BEST:
        reads: list[Piece] = list(_best_reads(logs, options, committed))
        return _packed(reads, options, divides=divides)
    lost = directory_reads(logs) if options.view in _ACCOUNTS else []
    if options.view not in RECORD_VIEWS:
        # Bytes below the log start are there until their segment is deleted.
        logs = [replace(log, log_dir=replace(log.log_dir, log_starts={})) for log in logs]
    _report_missing_high_watermarks(options.offsets.end_rule, logs)
    reads = [_log_reads(log, options) for log in logs]
    if options.view in _ACCOUNTS:
        reads = [*_of_whole_files(reads)]
    return [*_packed(reads, options, divides=divides), *packed(lost, _task_size(options))]


def _task_size(options: ReadOptions) -> TaskSize:
    return TaskSize(
        options.max_partition_bytes,
        # Of the driver's machine: how many the executors have is unknown.
        os.cpu_count() or 1,
        options.min_partitions,
        options.max_records_per_partition,
    )


def _of_whole_files(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if isinstance(piece, LogReads) and isinstance(piece.segments, ListedSegments):
            shared = replace(piece.shared, first_offset=0, end_offset=LARGEST_OFFSET)
            yield LogReads(shared, piece.segments)
        else:
            for read in single_reads([piece]):
                yield replace(read, first_offset=0, end_offset=LARGEST_OFFSET)


def _of_times(reads: list[SegmentRead], times: TimestampRange) -> list[SegmentRead]:
    """Return the reads without what time indexes say is too early, and without what has no
    times."""
    timed = [read for read in reads if oldest_base_offset(os.path.basename(read.path)) is None]
    firsts = answers(lambda read: first_offset_from(read.path, times.first_ms), timed, _path)
    found = []
    for read, first_in_time in zip(timed, firsts, strict=True):
        first = max(read.first_offset, first_in_time)
        if read.next_base_offset is None or first < read.next_base_offset:
            found.append(replace(read, first_offset=first))
    return found


def _path(read: SegmentRead) -> str:
    return read.path


def _packed(
    pieces: Sequence[Piece], options: ReadOptions, *, divides: bool
) -> list[Sequence[Read]]:
    task = _task_size(options)
    if options.view is View.OFFSET_COMMITS:
        return [*packed(commits_reads(single_reads(pieces)), task)]
    if options.view not in SPLIT_VIEWS or not divides:
        return [task_reads(group) for group in packed(pieces, task)]
    if options.timestamps is not None:
        pieces = _of_times([*single_reads(pieces)], options.timestamps)
    parts = _divided(pieces, task.part_bytes(pieces))
    if task.max_offsets is None:
        return [task_reads(group) for group in packed(parts, task)]
    most = task.max_offsets
    reads = [*single_reads(parts)]
    found = answers(lambda read: parts_by_offsets(read, most), reads, _path)
    counted = [*chain.from_iterable(found)]
    return [*packed([part for part, _ in counted], task, [count for _, count in counted])]


def _divided(pieces: Iterable[Piece], part_bytes: int) -> list[Piece]:
    """Return the reads, those of larger segments in parts: no others are looked into."""
    whole: list[Piece] = []
    for piece in pieces:
        is_many = isinstance(piece, LogReads) and max(piece.sizes, default=0) > part_bytes
        whole += single_reads([piece]) if is_many else [piece]
    large = [read for read in whole if isinstance(read, SegmentRead) and read.size > part_bytes]
    parts = iter(answers(lambda read: parts_by_bytes(read, part_bytes), large, _path))
    divided: list[Piece] = []
    for piece in whole:
        is_large = isinstance(piece, SegmentRead) and piece.size > part_bytes
        divided += next(parts) if is_large else [piece]
    return divided


def chosen_logs(options: ReadOptions, found: list[PartitionLog]) -> list[PartitionLog]:
    """Return the logs that the options and the view select. Raises OptionError."""
    known: Collection[str] = topic_families()
    if options.view is not View.MESSAGES:
        if options.view not in _TOPIC_OF:
            return options.topics.chosen(found)
        known = (_TOPIC_OF[options.view],)
    return internal_logs(options.topics, found, options.view.value, known)


def _refuse_oldest_layout(view: View, logs: Iterable[PartitionLog]) -> None:
    """Raise UnsupportedFormatError for views that the oldest layout has no batches for."""
    oldest = next(filter(is_oldest_layout, logs), None)
    if oldest is not None and view is not View.RECORDS:
        raise UnsupportedFormatError(
            f"{oldest.path} has files of Kafka 0.7's layout, for which view {view.value} has no "
            "rows: view records reads them, and "
            "kafkalog.storage.reading.oldest_log.read_oldest_file says what is in each range"
        )


def _refuse_tiered(view: View, logs: Iterable[PartitionLog]) -> None:
    """Raise UnsupportedFormatError for views about a broker's own files."""
    tiered = next((log for log in logs if log.tiered_topic_id is not None), None)
    if tiered is not None and view in _OF_DISKS:
        raise UnsupportedFormatError(
            f"view {view.value} is about the files on a broker's disk, and segments of "
            f"{tiered.name} in {tiered.segments[0].path if tiered.segments else tiered.path} are "
            "in tiered storage: name the log directory alone"
        )


def _log_reads(log: PartitionLog, options: ReadOptions) -> LogReads:
    committed = committed_read([(log, LARGEST_OFFSET)], options)
    lookup = _log_lookup(options.offsets.time_rule)
    offsets = offset_range(log, options.offsets, lookup, _end_of(committed))
    _report_if_lost(log, offsets, options)
    return segment_reads(log, offsets, committed)


def _report_if_lost(log: PartitionLog, offsets: OffsetRange, options: ReadOptions) -> None:
    """Do what `mode` says of a log without a segment: no task would come upon the loss."""
    if not log.segments and options.view in RECORD_VIEWS:
        requested = offsets.requested_end
        report_lost_log(log, LARGEST_OFFSET if requested is None else requested, options)


def _end_of(committed: CommittedRead | None) -> int | None:
    return None if committed is None else committed.stable_offset


def _refuse_other_clusters(
    before: str, earlier: Sequence[PartitionLog], found: Sequence[PartitionLog]
) -> None:
    """Raise OptionError for earlier copies that are of another cluster's logs."""
    ids, before_ids = (
        {log.log_dir.cluster_id for log in logs} - {None} for logs in (found, earlier)
    )
    if ids and before_ids and not ids & before_ids:
        given = f"{before} of cluster {', '.join(sorted(map(str, before_ids)))}"
        raise OptionError("before", given, f"logs of cluster {', '.join(sorted(map(str, ids)))}")


def _copies_before(
    options: ReadOptions, found: Sequence[PartitionLog]
) -> dict[TopicPartition | None, PartitionLog]:
    """Return the earlier copies of partitions, if any are given."""
    if options.before is None:
        return {}
    logs = find_logs([options.before], strict=options.mode is Mode.FAILFAST)
    _refuse_oldest_layout(options.view, logs)
    copies: dict[TopicPartition | None, PartitionLog] = {
        log.topic_partition: log for log in logs if log.is_live and log.topic_partition
    }
    _refuse_other_clusters(options.before, logs, found)
    if len(copies) < sum(log.topic_partition in copies for log in logs if log.is_live):
        raise OptionError("before", options.before, "one copy of each partition")
    return copies


def _best_reads(
    logs: list[PartitionLog], options: ReadOptions, known: CommittedReads
) -> Iterator[Piece]:
    """Return the best replica's segments of every partition, together with the others'."""
    for found, offsets, committed in best_ranges(logs, options, known):
        _report_if_lost(found.best, offsets, options)
        yield from replica_reads(found, offsets, committed)


def best_ranges(
    logs: Sequence[PartitionLog], options: ReadOptions, known: CommittedReads = NOT_WALKED
) -> list[tuple[ReplicaSet, OffsetRange, CommittedRead | None]]:
    """Return the replicas of every partition, the offsets that view `records` reads of them, and
    the transactions to leave out if only committed records are read, unless they are `known`."""
    replicas = replica_sets(logs)
    best = [found.best for found in replicas]
    _report_missing_high_watermarks(options.offsets.end_rule, best)
    if isinstance(options.offsets.starting, Everything):
        _report_tiered_storage(best)

    def of_partition(found: ReplicaSet) -> tuple[ReplicaSet, OffsetRange, CommittedRead | None]:
        key = found.best.topic_partition
        committed = known.get(key) if key else None
        if committed is None:
            committed = committed_read(found.logs_and_ends, options)
        lookup, end = time_lookup(found, options.offsets.time_rule), _end_of(committed)
        return found, offset_range(found.best, options.offsets, lookup, end), committed

    return answers(of_partition, replicas, lambda found: found.best.path)


def time_lookup(replicas: ReplicaSet, rule: TimeRule | None) -> TimeLookup:
    """Return how offsets for times are found in a partition's replicas."""
    if len(replicas.logs) == 1:
        return _log_lookup(rule)

    def lookup(log: PartitionLog, start_offset: int, timestamp_ms: int) -> TimeAnswer:
        return time_answer_in_replicas(replicas, start_offset, timestamp_ms, rule)

    return lookup


def _log_lookup(rule: TimeRule | None) -> TimeLookup:
    def lookup(log: PartitionLog, start_offset: int, timestamp_ms: int) -> TimeAnswer:
        # Messages of the oldest layout have no times.
        if is_oldest_layout(log):
            return TimeAnswer(None)
        return time_answer(log, start_offset, timestamp_ms, rule)

    return lookup


def _report_missing_high_watermarks(rule: EndRule, logs: Iterable[PartitionLog]) -> None:
    """Log which logs are read to their end although the high watermark was requested."""
    unknown = [log.name for log in logs if log_bounds(log, rule).end_offset is None]
    if rule is EndRule.HIGH_WATERMARK and unknown:
        _logger.warning(
            "read to the end of the log, because only a clean stop of the broker leaves its high "
            "watermark, and there was none: %s",
            ", ".join(unknown),
        )


def _report_tiered_storage(logs: Iterable[PartitionLog]) -> None:
    """Log which logs begin in tiered storage, which is not read."""
    for log in logs:
        start, local_start = earliest_offset(log), earliest_local_offset(log)
        if start < local_start:
            _logger.warning(
                "%s is read from offset %d on: those from %d are in tiered storage only",
                log.name,
                local_start,
                start,
            )
