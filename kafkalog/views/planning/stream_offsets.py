"""Where the partitions of a stream begin and end now, and what speaks against going on.

Rules: docs/ingest.md F520 to F524.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kafkalog.columns.transactions.transaction_walk import stable_offset
from kafkalog.errors import LogDirError, UnsupportedFormatError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.logs.log_tails import LogTails
from kafkalog.inspection.logs.replica_facts import replica_sets
from kafkalog.storage.partition_log import PartitionLog, topic_id
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.offset_ranges import report_data_loss
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.replica_reads import ReplicaSet
from kafkalog.views.options.offset_options import offsets_by_partition
from kafkalog.views.options.options import Isolation, ReadOptions
from kafkalog.views.options.topics import TopicChoice

StreamOffsets = dict[TopicPartition, int]

# Topics are deleted one after the other, and partitions with them.
_LISTINGS = 10


class PartitionEnd(NamedTuple):
    """A partition as it is found: offsets [start, end) can be read now.

    The log itself ends at `log_end`, which is not below `end`. `rewritten` says how it is known
    that what was read before is not in the log any more, None if it is not known so.
    """

    replicas: ReplicaSet
    start: int
    end: int
    log_end: int
    rewritten: str | None = None


@dataclass(frozen=True, slots=True)
class _Stable:
    """A last stable offset, and the ends of the log for which it was found."""

    ends: tuple[int, int | None]
    offset: int


class StreamEnds:
    """Lists the logs of a stream again and again, and of each walks only what is new."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._tails = LogTails()
        self._topic_ids: dict[TopicPartition, str | None] = {}
        self._stable: dict[TopicPartition, _Stable] = {}

    def now(self) -> dict[TopicPartition, PartitionEnd]:
        """Return every partition that is there. Raises LogDirError for what cannot grow."""
        logs = present_logs(self._options)
        return {
            _key(replicas.best): self._partition_end(replicas) for replicas in replica_sets(logs)
        }

    def _partition_end(self, replicas: ReplicaSet) -> PartitionEnd:
        log = replicas.best
        if len(replicas.logs) > 1:
            log_end, is_new, is_rewritten = replicas.lineage_end, True, False
        else:
            log_end, is_new, is_rewritten = self._tails.end(log)
        rewritten = "what was its last batch is not there" if is_rewritten else None
        if is_new:
            rewritten = self._other_topic(log) or rewritten
        start = log_bounds(log, EndRule.LOG_END).start_offset
        return PartitionEnd(
            replicas, start, max(start, self._end(log, log_end)), log_end, rewritten
        )

    def _other_topic(self, log: PartitionLog) -> str | None:
        key = _key(log)
        before, found = self._topic_ids.get(key), topic_id(log)
        self._topic_ids[key] = found or before
        if before and found and before != found:
            return f"topic {log.topic} had the id {before} and has {found}: it was created again"
        return None

    def _end(self, log: PartitionLog, log_end: int) -> int:
        if self._options.isolation is Isolation.READ_COMMITTED:
            return min(log_end, self._stable_offset(log, log_end))
        mark = log_bounds(log, self._options.offsets.end_rule).end_offset
        return log_end if mark is None else min(mark, log_end)

    def _stable_offset(self, log: PartitionLog, log_end: int) -> int:
        key = _key(log)
        ends = log_end, log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
        known = self._stable.get(key)
        if known is None or known.ends != ends:
            known = _Stable(ends, stable_offset(log, looks_for_damage=False).offset)
            self._stable[key] = known
        return known.offset


def present_logs(options: ReadOptions) -> list[PartitionLog]:
    """Return the logs of what was requested, as far as it is there.

    Raises LogDirError for files and directories that a broker does not write to, and
    UnsupportedFormatError for Kafka 0.7's layout.
    """
    # The view's own choice of topics is one for planning, in the driver as well.
    from kafkalog.views.planning.planning import chosen_logs

    found = _listed(options)
    logs = chosen_logs(replace(options, topics=_present(options.topics, found)), found)
    for log in logs:
        if is_oldest_layout(log):
            raise UnsupportedFormatError(
                f"{log.path} has files of Kafka 0.7's layout: read a batch"
            )
        if not log.is_live or log.topic_partition is None:
            raise LogDirError(
                f"{log.path}: a stream reads log directories and partition directories, not files "
                "by their own names nor what is on its way out"
            )
    return logs


def _listed(options: ReadOptions) -> list[PartitionLog]:
    """Return all logs under the paths. A directory that goes while they are listed is not there the
    next time."""
    from kafkalog.views.planning.planning import logs_of_paths

    for _ in range(_LISTINGS - 1):
        with suppress(FileNotFoundError):
            return logs_of_paths(options)
    return logs_of_paths(options)


def _present(choice: TopicChoice, found: list[PartitionLog]) -> TopicChoice:
    keys = {log.topic_partition for log in found}
    topics = {log.topic for log in found}
    return TopicChoice(
        subscribe=(
            choice.subscribe and tuple(each for each in choice.subscribe if each in {*topics, "*"})
        ),
        pattern=choice.pattern,
        assign=choice.assign and frozenset(each for each in choice.assign if each in keys),
    )


def _key(log: PartitionLog) -> TopicPartition:
    return log.topic or "", log.partition or 0


def parsed_offsets(offset: Mapping[str, Any]) -> StreamOffsets:
    """Return the offsets in a stream's checkpoint, in the form of Spark's Kafka source."""
    return offsets_by_partition("checkpoint", json.dumps(offset))


def new_ends(
    starts: StreamOffsets, found: Mapping[TopicPartition, PartitionEnd], *, fail_on_data_loss: bool
) -> StreamOffsets:
    """Return the offset up to which to read each existing partition; missing ones are left out.

    Raises DataLossError, or logs, if a partition is missing, ends before its start, or is not the
    one that was read so far; or if a new one does not begin at offset 0 (F523).
    """
    for topic, partition in sorted(starts.keys() - found.keys()):
        report_data_loss(
            f"partition {topic}-{partition} was read up to offset {starts[topic, partition]} and "
            "no longer exists",
            fail=fail_on_data_loss,
        )
    ends = {}
    for key, partition_end in found.items():
        reason = _why_not(starts.get(key), partition_end)
        if reason is not None:
            report_data_loss(
                f"partition {key[0]}-{key[1]} in {partition_end.replicas.best.path} {reason}",
                fail=fail_on_data_loss,
            )
        start = starts.get(key, partition_end.start)
        is_gone = partition_end.log_end < start
        ends[key] = partition_end.end if is_gone else max(start, partition_end.end)
    return ends


def _why_not(start: int | None, found: PartitionEnd) -> str | None:
    if start is None:
        if found.start == 0:
            return None
        return (
            f"is new to the stream and begins at offset {found.start}: earlier records were deleted"
        )
    if found.log_end < start:
        return (
            f"ends at offset {found.log_end} and was read up to {start}: it was truncated, created "
            f"again, or this is an older copy; {_START_AGAIN}"
        )
    if found.rewritten is not None:
        return f"was read up to offset {start}, and {found.rewritten}: {_START_AGAIN}"
    return None


_START_AGAIN = "a new checkpoint location reads it from its start"
