"""Which segments of a log a broker's retention removes at a given time: the rule, on plain values.

Rules: docs/format.md F160 to F166.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from kafkalog.storage.log_dir.topic_configs import DELETE_POLICY, RetentionLimits


class Reason(Enum):
    """Why a segment is deleted, stays, or why that is unknown."""

    LOG_START = "log_start"
    SIZE = "size"
    TIME = "time"
    WITHIN_LIMITS = "within_limits"
    BEHIND_SURVIVOR = "behind_survivor"
    FUTURE_TIMESTAMP = "future_timestamp"
    HIGH_WATERMARK = "high_watermark"
    EMPTY_ACTIVE = "empty_active"
    NOT_UPLOADED = "not_uploaded"
    UNKNOWN_LIMITS = "unknown_limits"
    UNKNOWN_UPLOAD = "unknown_upload"


@dataclass(frozen=True, slots=True)
class RetentionSegment:
    """The facts about a segment that retention uses. `largest_timestamp_ms` is that of the last
    entry of its time index or, without one, the time its file was last written."""

    base_offset: int
    size: int
    largest_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class RetentionLog:
    """The facts about a log that retention uses. `highest_remote_offset` is the last one in tiered
    storage, -1 without any, None if not known."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    highest_remote_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a segment; `goes` is None if the known facts do not decide it."""

    goes: bool | None
    reason: Reason


# Whether the segment of this number has reached a limit.
_Rule = Callable[[int], bool]


def plan_retention(
    segments: Sequence[RetentionSegment], log: RetentionLog, limits: RetentionLimits, now_ms: int
) -> list[Verdict]:
    """Return what one run of a broker's retention at `now_ms` does to each segment, in their order.

    Three passes go by log start, size and time; each begins at the oldest segment that is left
    and ends at the first that stays. Where `cleanup.policy` is not known, a segment is decided that
    goes or stays with and without `delete` (F168).
    """
    if limits.has_limits is not None:
        return _Walk(segments, log, limits, now_ms).verdicts()
    with_delete, without = (
        _Walk(
            segments, log, replace(limits, cleanup_policy=frozenset((policy,))), now_ms
        ).verdicts()
        for policy in (DELETE_POLICY, "compact")
    )
    unknown = Verdict(None, Reason.UNKNOWN_LIMITS)
    return [
        verdict if verdict.goes == other.goes else unknown
        for verdict, other in zip(with_delete, without, strict=True)
    ]


def expiries_ms(segments: Sequence[RetentionSegment], limits: RetentionLimits) -> list[int | None]:
    """Return the time from which retention deletes each segment: not before earlier segments, and
    if `cleanup.policy`, where that is not known, has `delete`. None for never."""
    if limits.has_limits is False or limits.retention_ms is None or limits.retention_ms < 0:
        return [None] * len(segments)
    latest = 0
    expiries = []
    for segment in segments:
        latest = max(latest, segment.largest_timestamp_ms + limits.retention_ms + 1)
        expiries.append(latest if latest < 2**63 else None)
    return expiries


class _Walk:
    """The passes over one log. `_first` is the number of the oldest segment that is left."""

    def __init__(
        self,
        segments: Sequence[RetentionSegment],
        log: RetentionLog,
        limits: RetentionLimits,
        now_ms: int,
    ) -> None:
        self._segments = segments
        self._log = log
        self._limits = limits
        self._now_ms = now_ms
        self._first = 0
        self._verdicts: list[Verdict] = []
        self._kept_local: Reason | None = None
        self._ends = [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]

    def verdicts(self) -> list[Verdict]:
        limits = self._limits
        self._pass(Reason.LOG_START, self._is_below_log_start)
        if limits.has_limits:
            if limits.retention_bytes is not None:
                self._pass(Reason.SIZE, self._size_rule(limits.retention_bytes))
            if limits.retention_ms is not None:
                self._pass(Reason.TIME, self._is_expired)
        survivors = range(self._first, len(self._segments))
        return self._verdicts + [self._survivor(number) for number in survivors]

    def _pass(self, reason: Reason, has_reached: _Rule) -> None:
        for number in range(self._first, len(self._segments)):
            if self._is_held(number) is not None or not has_reached(number):
                return
            upload = self._missing_upload(number)
            if upload is not None:
                self._kept_local = upload
                return
            self._verdicts.append(Verdict(True, reason))
            self._first = number + 1

    def _is_held(self, number: int) -> Reason | None:
        """Return the reason that keeps a segment whatever the limits are."""
        if self._log.high_watermark < self._ends[number]:
            return Reason.HIGH_WATERMARK
        if number == len(self._segments) - 1 and self._segments[number].size == 0:
            return Reason.EMPTY_ACTIVE
        return None

    def _missing_upload(self, number: int) -> Reason | None:
        """Return the reason that keeps a segment of a tiered log that has reached a limit."""
        log, is_last = self._log, number == len(self._segments) - 1
        if not self._limits.is_tiered or (
            not is_last and log.log_start_offset >= self._ends[number]
        ):
            return None
        if is_last:
            # Only what is not written to any more is uploaded.
            return Reason.NOT_UPLOADED
        if log.highest_remote_offset is None:
            return Reason.UNKNOWN_UPLOAD
        if self._ends[number] - 1 <= log.highest_remote_offset:
            return None
        return Reason.NOT_UPLOADED

    def _is_below_log_start(self, number: int) -> bool:
        is_last = number == len(self._segments) - 1
        return not is_last and self._ends[number] <= self._log.log_start_offset

    def _size_rule(self, retention_bytes: int) -> _Rule:
        """Return whether the log keeps `retention_bytes` without the segment and all before it."""
        left = sum(segment.size for segment in self._segments[self._first :])
        sizes = [0] * self._first
        for segment in self._segments[self._first :]:
            left -= segment.size
            sizes.append(left)
        return lambda number: 0 <= retention_bytes <= sizes[number]

    def _is_expired(self, number: int) -> bool:
        retention_ms = self._limits.retention_ms
        if retention_ms is None or retention_ms < 0:
            return False
        return self._now_ms - self._segments[number].largest_timestamp_ms > retention_ms

    def _survivor(self, number: int) -> Verdict:
        """Return why a segment is left, or whether it is at all."""
        held = self._is_held(number)
        if held is not None:
            return Verdict(False, held)
        if self._kept_local is Reason.NOT_UPLOADED:
            is_first = number == self._first
            return Verdict(False, Reason.NOT_UPLOADED if is_first else Reason.BEHIND_SURVIVOR)
        if self._kept_local is not None:
            return Verdict(None, self._kept_local)
        limits = self._limits
        if limits.has_limits and None in (limits.retention_ms, limits.retention_bytes):
            return Verdict(None, Reason.UNKNOWN_LIMITS)
        return Verdict(False, self._within_limits(number))

    def _within_limits(self, number: int) -> Reason:
        has_time = self._limits.has_limits and (self._limits.retention_ms or 0) >= 0
        if number == self._first:
            is_future = self._segments[number].largest_timestamp_ms > self._now_ms
            return Reason.FUTURE_TIMESTAMP if has_time and is_future else Reason.WITHIN_LIMITS
        if has_time and self._is_expired(number):
            return Reason.BEHIND_SURVIVOR
        return Reason.WITHIN_LIMITS
