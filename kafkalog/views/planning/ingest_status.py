"""What a table has of each partition, what waits in the logs, and why.

Rule: docs/ingest.md F934.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import NamedTuple

from kafkalog.errors import refuse_unknown
from kafkalog.format.faults import Fault
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.logs.time_lookup import FirstRecord, first_record
from kafkalog.inspection.logs.waiting_records import faults_from
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.offset_ranges import doubt_words
from kafkalog.views.options.options import Isolation, ReadOptions
from kafkalog.views.options.topics import ALL_TOPICS, TopicChoice
from kafkalog.views.planning.ingest_positions import (
    FindingKind,
    IngestPositions,
    IngestRange,
    ingest_run,
)
from kafkalog.views.planning.state_sources import found_sources
from kafkalog.views.planning.table_positions import ASKED, StateSource
from kafkalog.words import counted

_MOST_FAULTS = 3


class Status(Enum):
    """Why records of a partition are not in the table; the first one that applies counts."""

    # Findings: no run to come mends these.
    GONE = "gone"
    RECREATED = FindingKind.RECREATED.value
    TRUNCATED = FindingKind.TRUNCATED.value
    REWRITTEN = FindingKind.REWRITTEN.value
    GAP = FindingKind.GAP.value
    DAMAGE = "damage"
    MISSING = "missing"
    FUTURE_TIME = FindingKind.FUTURE_TIME.value
    # What keeps the next run from records.
    OPEN_TRANSACTION = "open_transaction"
    HIGH_WATERMARK = "high_watermark"
    UNTIL_TIME = "until_time"
    # What the next run reads.
    NOT_READ = "not_read"
    NEW = "new"
    COMPLETE = "complete"

    @property
    def is_finding(self) -> bool:
        return self in _FINDINGS


_FINDINGS = frozenset(
    (Status.GONE, Status.RECREATED, Status.TRUNCATED, Status.REWRITTEN, Status.GAP, Status.DAMAGE,
     Status.MISSING, Status.FUTURE_TIME)
)  # fmt: skip


class PartitionStatus(NamedTuple):
    """A partition of a table or of the logs. Offsets are None where the log or the table does not
    have the partition; `next_run_offsets` is how many of `waiting_offsets` a run would read now,
    `next_time_ms` the time of the first record that waits."""

    topic: str
    partition: int
    status: str
    next_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    waiting_offsets: int
    next_run_offsets: int
    next_time_ms: int | None
    detail: str | None

    @property
    def is_finding(self) -> bool:
        """Whether the status is a finding."""
        return Status(self.status).is_finding


class _Reason(NamedTuple):
    status: Status
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Which topics, those of the table without a choice; and whether checksums of what waits are
    checked."""

    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    is_deep: bool = False

    def is_chosen(self, topic: str | None, recorded: Collection[str]) -> bool:
        """Return whether a topic is requested; `recorded` are those of the table."""
        if topic is None:
            return False
        if self.topic_pattern is not None:
            return re.search(self.topic_pattern, topic) is not None
        return self.topics == (ALL_TOPICS,) or topic in (self.topics or recorded)


def requested_statuses(
    recorded: IngestPositions, options: ReadOptions, request: StatusRequest
) -> tuple[list[PartitionStatus], int]:
    """Return the rows of `partition_statuses` for what the options find of the requested topics,
    and how many topics they find that were left out and are not in the table.

    Raises OptionError for a topic that neither the table nor the logs have.
    """
    found = find_logs(options.paths, strict=False)
    in_table = {topic for topic, _ in recorded.next_offsets}
    present = {log.topic for log in found if log.topic is not None}
    chosen = {topic for topic in present | in_table if request.is_chosen(topic, in_table)}
    known, every = present | in_table, {ALL_TOPICS}
    refuse_unknown("--topic", {*request.topics} - every, known, "a topic that is there")
    sources: list[StateSource] = []
    if chosen & present:
        choice = TopicChoice(subscribe=tuple(sorted(chosen & present)))
        sources = found_sources(replace(options, topics=choice))
    next_offsets = {key: each for key, each in recorded.next_offsets.items() if key[0] in chosen}
    own = replace(recorded, next_offsets=next_offsets)
    others = present - chosen - in_table - INTERNAL_TOPICS
    return partition_statuses(own, sources, options, is_deep=request.is_deep), len(others)


def partition_statuses(
    recorded: IngestPositions,
    sources: Sequence[StateSource],
    options: ReadOptions,
    *,
    is_deep: bool,
) -> list[PartitionStatus]:
    """Return a row for each source, and for each partition of the table that has none, by topic and
    partition. `sources` are those that `found_sources` gives for the options of a run, which have a
    time rule; with `is_deep` checksums of what waits are checked.

    Raises StatePositionError for logs of another cluster.
    """

    def status(source: StateSource) -> PartitionStatus:
        planned = ingest_run(recorded, [source], is_bounded=False).ranges
        return _Waiting(recorded, source, options, planned).status(is_deep=is_deep)

    rows = answers(status, sources, lambda source: source.input_path)
    absent = recorded.next_offsets.keys() - {source.key for source in sources}
    gone = [_gone(key, recorded.next_offsets[key]) for key in absent]
    return sorted([*rows, *gone], key=lambda row: (row.topic, row.partition))


def verdict(rows: Sequence[PartitionStatus], *, is_deep: bool) -> str:
    """Say how many partitions are complete, what waits, and how many findings there are."""
    complete = sum(row.status == Status.COMPLETE.value for row in rows)
    waiting = [row for row in rows if row.waiting_offsets]
    findings = sum(row.is_finding for row in rows)
    parts = [f"{counted(len(rows), 'partition')}: {complete} complete", "nothing waits"]
    if waiting:
        offsets = counted(sum(row.waiting_offsets for row in waiting), "offset")
        parts[1] = f"{offsets} of {counted(len(waiting), 'partition')} wait"
    parts.append(counted(findings, "finding") if findings else "no findings")
    if waiting and not is_deep:
        parts.append("checksums of what waits are not checked, --deep checks them")
    return "; ".join(parts)


def _gone(key: TopicPartition, position: int) -> PartitionStatus:
    detail = (
        "the given log directories do not have it: the topic was deleted, or a directory is missing"
    )
    return PartitionStatus(
        *key,
        status=Status.GONE.value,
        next_offset=position,
        log_start_offset=None,
        log_end_offset=None,
        waiting_offsets=0,
        next_run_offsets=0,
        next_time_ms=None,
        detail=detail,
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What waits of a partition; `planned` is what the next run does with it, empty for nothing."""

    recorded: IngestPositions
    source: StateSource
    options: ReadOptions
    planned: tuple[IngestRange, ...]

    def status(self, *, is_deep: bool) -> PartitionStatus:
        """Return the row, with the most important reason first in `detail`."""
        source, start = self.source, self._start
        first = self._first_record if start < source.log_end_offset else None
        reasons = [*self._findings(first, is_deep=is_deep), *self._limits()]
        next_run = sum(
            each.until_offset - each.from_offset for each in self.planned if not each.is_stopped
        )
        reasons.append(self._otherwise(next_run))
        details = [reason.detail for reason in reasons if reason.detail is not None]
        return PartitionStatus(
            source.topic,
            source.partition,
            status=reasons[0].status.value,
            next_offset=self._position,
            log_start_offset=source.log_start_offset,
            log_end_offset=source.log_end_offset,
            waiting_offsets=max(source.log_end_offset - start, 0),
            next_run_offsets=next_run,
            next_time_ms=None if first is None else first.timestamp_ms,
            detail="; ".join(details) or None,
        )

    @property
    def _position(self) -> int | None:
        return self.recorded.next_offsets.get(self.source.key)

    @property
    def _is_other_topic(self) -> bool:
        return any(each.finding == FindingKind.RECREATED.value for each in self.planned)

    @property
    def _start(self) -> int:
        """The first offset that is there and not in the table."""
        position = self._position
        if position is None or self._is_other_topic:
            return self.source.log_start_offset
        return max(position, self.source.log_start_offset)

    @property
    def _first_record(self) -> FirstRecord | None:
        log, rule = self.source.log, self.options.offsets.time_rule
        return None if log is None or rule is None else first_record(log, self._start, rule)

    def _findings(self, first: FirstRecord | None, *, is_deep: bool) -> Iterator[_Reason]:
        planned = [each for each in self.planned if each.finding is not None]
        for each in planned:
            yield _Reason(Status(each.finding), each.detail)
        yield from self._faults(is_deep=is_deep)
        rule = self.options.offsets.time_rule
        is_said = any(each.finding == FindingKind.FUTURE_TIME.value for each in planned)
        if first is not None and first.doubtful is not None and rule is not None and not is_said:
            detail = f"the next one, offset {first.offset}: {doubt_words(first.doubtful, rule)}"
            yield _Reason(Status.FUTURE_TIME, detail)

    def _faults(self, *, is_deep: bool) -> Iterator[_Reason]:
        source = self.source
        if source.log is None:
            return
        is_compacted = source.cleaner_checkpoint is not None
        found = [
            *islice(
                faults_from(source.log, self._start, is_compacted=is_compacted, is_deep=is_deep),
                _MOST_FAULTS,
            )
        ]
        for each in found:
            is_missing = each.fault.fault in (Fault.SEGMENT_HOLE, Fault.MISSING_END)
            yield _Reason(Status.MISSING if is_missing else Status.DAMAGE, each.line())
        if len(found) == _MOST_FAULTS:
            yield _Reason(Status.DAMAGE, "kafkalog check lists all of it")

    def _limits(self) -> Iterator[_Reason]:
        """Yield what keeps the next run from reading to the log's end."""
        source, end = self.source, self.source.log_end_offset
        if self._start >= end:
            return
        mark, committed = self._high_watermark, source.committed
        limit = end if mark is None else min(mark, end)
        if committed is not None and committed.stable_offset < limit:
            end = max(committed.stable_offset, source.log_start_offset)
            yield _Reason(
                Status.OPEN_TRANSACTION,
                f"a transaction is open from offset {end} on: kafkalog txns names it",
            )
        elif limit < end:
            end = limit
            yield _Reason(Status.HIGH_WATERMARK, f"the high watermark is {limit}")
        if source.end_from == ASKED and source.end_offset < end:
            yield _Reason(
                Status.UNTIL_TIME,
                f"a run with this --until-time ends at offset {source.end_offset}",
            )
        elif self._was_bounded:
            yield _Reason(
                Status.UNTIL_TIME,
                "the last run that read it ended at the time or offset it was given",
            )

    @property
    def _high_watermark(self) -> int | None:
        # A last stable offset is never above it, whatever the end rule.
        is_committed = self.options.isolation is Isolation.READ_COMMITTED
        rule = EndRule.HIGH_WATERMARK if is_committed else self.options.offsets.end_rule
        return None if self.source.log is None else log_bounds(self.source.log, rule).end_offset

    @property
    def _was_bounded(self) -> bool:
        return any(
            each.key == self.source.key
            and each.until == ASKED
            and each.until_offset == self._position
            for each in self.recorded.ranges
        )

    def _otherwise(self, next_run: int) -> _Reason:
        if self._position is None:
            return _Reason(Status.NOT_READ, "no run has read this partition")
        return _Reason(Status.NEW if next_run else Status.COMPLETE)
