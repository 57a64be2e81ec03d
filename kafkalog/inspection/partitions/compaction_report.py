"""Whether a partition's cleaned log keeps the cleaner's promises, and what the next cleaning would
free: view `compaction_report`, schemas/tables/compaction_report.json.

Rules: docs/format.md F240, F241, F262 and F255 to F260. The log is read once for its transactions,
once for the part below the checkpoint, twice for what a cleaning would free, and once more, with
the other copy, where there is one. Memory grows with the keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kafkalog.columns.records.sound_batches import sound_batches
from kafkalog.columns.table_rows import TableRow
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import read_header
from kafkalog.storage.cleaning.cleanable import (
    CleanableLog,
    CleanablePart,
    CleanableSegment,
    cleanable_part,
)
from kafkalog.storage.cleaning.compacted_copies import LogCopy, differences, last_records
from kafkalog.storage.cleaning.compaction import (
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.cleaning.compaction_check import (
    CleanedPartCheck,
    CompactionFinding,
    CompactionSeverity,
)
from kafkalog.storage.cleaning.log_transactions import LogTransactions, log_transactions
from kafkalog.storage.cleaning.retention_facts import largest_timestamp
from kafkalog.storage.files.files import modified_ms
from kafkalog.storage.log_dir.topic_configs import UNLIMITED, CompactionSettings
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.recovery.producer_state import BrokerStartError
from kafkalog.words import counted

# This many findings of each kind are listed; all are counted.
LISTED_COPIES = 1000


def compaction_rows(
    log: PartitionLog, settings: CompactionSettings, now_ms: int, before: PartitionLog | None
) -> Iterator[TableRow]:
    """Yield the row of a log that is compacted by its policy or has been cleaned; of others there
    is none. `before` is an earlier copy of the log."""
    checkpoint = log.log_dir.cleaner_checkpoints.get(log.topic_partition or ("", -1))
    if not log.segments or not (settings.is_compacted or checkpoint is not None):
        return
    policy = settings.cleanup_policy
    constants: TableRow = {
        "at_ms": now_ms,
        "directory": log.path,
        "cleanup_policy": None if policy.value is None else ",".join(sorted(policy.value)),
        "cleanup_policy_from": policy.source,
        "min_compaction_lag_ms": settings.min_compaction_lag_ms.value,
        "min_compaction_lag_ms_from": settings.min_compaction_lag_ms.source,
        "max_compaction_lag_ms": settings.max_compaction_lag_ms.value,
        "max_compaction_lag_ms_from": settings.max_compaction_lag_ms.source,
        "min_cleanable_dirty_ratio": settings.min_cleanable_dirty_ratio.value,
        "min_cleanable_dirty_ratio_from": settings.min_cleanable_dirty_ratio.source,
        "cleaner_checkpoint": checkpoint,
        "before_directory": None if before is None else before.path,
    }
    found = _Findings()
    try:
        facts = _LogFacts.of(log)
        earlier = None if before is None else _copy(before, _LogFacts.of(before))
    except (BrokerStartError, CorruptDataError) as error:
        found.add(CompactionFinding("transaction", CompactionSeverity.ERROR, None, str(error)))
        yield {**constants, **found.row()}
        return
    cleanable = _cleanable(log, facts, checkpoint)
    lag_ms = settings.min_compaction_lag_ms.value or 0
    part = cleanable_part(cleanable, now_ms=now_ms, min_compaction_lag_ms=lag_ms)
    is_due, why_not = _due(part, cleanable, settings, now_ms)
    counts = _checked(log, facts, part, checkpoint, now_ms, found)
    if earlier is not None:
        for finding in differences(earlier, _copy(log, facts), part.first_dirty_offset):
            found.add(finding)
    yield {
        **constants,
        **_part_columns(part, facts),
        "is_due": is_due,
        "why_not": why_not,
        **counts,
        "freeable_bytes": _freeable_bytes(log, facts, part, settings, now_ms),
        **found.row(),
    }


@dataclass(frozen=True, slots=True)
class _LogFacts:
    """What a walk over all sound batches finds."""

    transactions: LogTransactions
    start_offset: int
    end_offset: int
    high_watermark: int
    unread_bytes: int
    # Of the first sound batch of each segment, by the segment's path.
    first_timestamps_ms: Mapping[str, int]

    @property
    def last_stable_offset(self) -> int:
        first_open = self.transactions.first_open_offset
        return self.high_watermark if first_open is None else min(first_open, self.high_watermark)

    @classmethod
    def of(cls, log: PartitionLog) -> _LogFacts:
        """Raises as `log_transactions` does."""
        end, size = log_bounds(log, EndRule.LOG_END).start_offset, 0
        first_timestamps_ms: dict[str, int] = {}

        def batches() -> Iterator[bytes]:
            nonlocal end, size
            for batch in sound_batches(log.segments):
                header = read_header(batch.data, 0)
                first_timestamps_ms.setdefault(batch.file, header.max_timestamp_ms)
                end = max(end, header.last_offset + 1)
                size += len(batch.data)
                yield batch.data

        transactions = log_transactions(batches())
        bounds = log_bounds(log, EndRule.HIGH_WATERMARK)
        known = end if bounds.end_offset is None else min(bounds.end_offset, end)
        whole = sum(segment.size for segment in log.segments)
        return cls(transactions, bounds.start_offset, end, known, whole - size, first_timestamps_ms)


@dataclass(slots=True)
class _Findings:
    """Those that are listed, and how many there are."""

    listed: list[TableRow] = field(default_factory=list)
    _kinds: Counter[str] = field(default_factory=Counter)
    _severities: Counter[CompactionSeverity] = field(default_factory=Counter)

    def add(self, finding: CompactionFinding) -> None:
        self._severities[finding.severity] += 1
        self._kinds[finding.kind] += 1
        if self._kinds[finding.kind] <= LISTED_COPIES:
            self.listed.append({**finding._asdict(), "severity": finding.severity.value})

    def row(self) -> TableRow:
        """Return the columns of the table that are about them."""
        return {
            "errors": self._severities[CompactionSeverity.ERROR],
            "warnings": self._severities[CompactionSeverity.WARNING],
            "findings": self.listed,
        }


def _cleanable(log: PartitionLog, facts: _LogFacts, checkpoint: int | None) -> CleanableLog:
    segments = [
        CleanableSegment(
            segment.base_offset or 0,
            segment.size,
            largest_timestamp(segment).timestamp_ms,
            facts.first_timestamps_ms.get(segment.path, -1),
        )
        for segment in log.segments
    ]
    return CleanableLog(
        segments, checkpoint, facts.start_offset, facts.end_offset, facts.last_stable_offset
    )


def _due(
    part: CleanablePart, log: CleanableLog, settings: CompactionSettings, now_ms: int
) -> tuple[bool | None, str | None]:
    """Return whether the cleaner would come, None if settings that are not known decide it; and why
    not. The part is the largest that there can be where the lag is not known. Rule: F262."""
    policy, least = settings.cleanup_policy, settings.min_cleanable_dirty_ratio
    lag = settings.min_compaction_lag_ms
    if policy.value is not None and not settings.is_compacted:
        return False, f"cleanup.policy is {','.join(sorted(policy.value)) or 'empty'}"
    if not part.dirty_bytes:
        held = cleanable_part(log, now_ms=0, min_compaction_lag_ms=0).dirty_bytes
        if held:
            return False, f"min.compaction.lag.ms {lag.value} holds back {held} dirty bytes"
        start = part.first_dirty_offset
        if log.checkpoint is None and len(log.segments) == 1:
            offsets = counted(log.log_end_offset - start, "offset")
            return (False, f"never cleaned: {offsets}, all in the active segment, which stays")
        return False, (
            f"nothing is dirty from offset {start} to the active segment or the last stable offset"
        )
    ratio = part.dirty_ratio or 0.0
    is_dirty = None if least.value is None else ratio > least.value
    is_overdue = _is_overdue(part, settings.max_compaction_lag_ms.value, now_ms)
    if is_dirty is False and is_overdue is False:
        return False, f"dirty ratio {ratio:.3f}, min.cleanable.dirty.ratio {least.value}"
    decides = {
        "cleanup.policy": policy.value is None,
        "min.compaction.lag.ms": lag.value is None,
        "min.cleanable.dirty.ratio": is_dirty is None and not is_overdue,
        "max.compaction.lag.ms": is_overdue is None and not is_dirty,
    }
    unknown = [name for name, is_unknown in decides.items() if is_unknown]
    if unknown:
        return None, f"not known: {', '.join(unknown)}"
    return True, None


def _is_overdue(part: CleanablePart, max_lag_ms: int | None, now_ms: int) -> bool | None:
    """Return whether `max.compaction.lag.ms` has passed, None if it is not known."""
    if part.dirty_since_ms is None or max_lag_ms == UNLIMITED:
        return False
    return None if max_lag_ms is None else part.dirty_since_ms < now_ms - max_lag_ms


def _part_columns(part: CleanablePart, facts: _LogFacts) -> TableRow:
    return {
        "log_start_offset": facts.start_offset,
        "log_end_offset": facts.end_offset,
        "last_stable_offset": facts.last_stable_offset,
        "is_checkpoint_reset": part.is_reset,
        "first_dirty_offset": part.first_dirty_offset,
        "first_uncleanable_offset": part.first_uncleanable_offset,
        "clean_bytes": part.clean_bytes,
        "dirty_bytes": part.dirty_bytes,
        "dirty_ratio": part.dirty_ratio,
        "unread_bytes": facts.unread_bytes,
    }


def _checked(
    log: PartitionLog,
    facts: _LogFacts,
    part: CleanablePart,
    checkpoint: int | None,
    now_ms: int,
    found: _Findings,
) -> TableRow:
    """Return the check of the part below the checkpoint; one that does not count promises
    nothing."""
    cleaned = 0 if part.is_reset or checkpoint is None else checkpoint
    check = CleanedPartCheck(cleaned, facts.transactions, now_ms)
    for finding in check.findings(sound_batches(log.segments)):
        found.add(finding)
    if part.is_reset:
        detail = f"the log has offsets {facts.start_offset} to {facts.end_offset}"
        found.add(
            CompactionFinding("checkpoint", CompactionSeverity.INFORMATION, checkpoint, detail)
        )
    return {
        "cleaned_keys": check.keys,
        "cleaned_records": check.records,
        "expired_tombstones": check.expired_tombstones,
        "expired_markers": check.expired_markers,
    }


def _freeable_bytes(
    log: PartitionLog,
    facts: _LogFacts,
    part: CleanablePart,
    settings: CompactionSettings,
    now_ms: int,
) -> int:
    """Return what a cleaning would free now; nothing where there is nothing dirty."""
    if not part.dirty_bytes:
        return 0
    clean = [
        segment.path
        for segment in log.segments
        if (segment.base_offset or 0) < part.first_dirty_offset
    ]
    legacy_ms = modified_ms(clean[-1]) - settings.delete_retention_ms if clean else 0
    cleaning = CleaningRound(
        first_dirty_offset=part.first_dirty_offset,
        first_uncleanable_offset=part.first_uncleanable_offset,
        high_watermark=facts.high_watermark,
        now_ms=now_ms,
        delete_retention_ms=settings.delete_retention_ms,
        producers=facts.transactions.producers,
        aborted=facts.transactions.aborted,
        legacy_delete_horizon_ms=legacy_ms,
    )
    last = last_offsets(_sources(log), cleaning)
    return sum(
        len(batch.source) - len(batch.cleaned or b"")
        for batch in cleaned_batches(_sources(log), last, cleaning)
    )


def _sources(log: PartitionLog) -> Iterator[SourceBatch]:
    written_ms = {segment.path: modified_ms(segment.path) for segment in log.segments}
    for batch in sound_batches(log.segments):
        yield SourceBatch(batch.data, written_ms[batch.file])


def _copy(log: PartitionLog, facts: _LogFacts) -> LogCopy:
    batches = (batch.data for batch in sound_batches(log.segments))
    return LogCopy(
        last_records(batches, facts.transactions),
        facts.start_offset,
        facts.end_offset,
        facts.last_stable_offset,
    )
