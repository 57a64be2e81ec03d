"""Streams of Spark 4.2 and newer, which limits micro-batches and ends at what is there now.

Rules: docs/ingest.md F524 to F528.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kafkalog.spark.source.stream_reader import KafkaLogStreamReader
from kafkalog.views.options.stream_options import StreamOptions

if TYPE_CHECKING:
    from kafkalog.inspection.logs.byte_limits import ByteLimits
    from kafkalog.views.planning.stream_offsets import PartitionEnd, StreamOffsets

_Key = TypeVar("_Key", bound=Hashable)


class LimitedStreamReader(KafkaLogStreamReader, SupportsTriggerAvailableNow):
    """Spark gives it where a micro-batch begins, and asks for its end within a limit."""

    def __init__(self, options: StreamOptions, columns: tuple[str, ...]) -> None:
        super().__init__(options, columns)
        self._byte_limits: ByteLimits | None = None
        self._target: StreamOffsets | None = None
        self._latest: dict[str, Any] | None = None
        self._last_trigger_s: float | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return one of the limits in the options: all of them hold, unless Spark asks for
        everything."""
        if self._options.max_offsets is not None:
            return ReadMaxRows(self._options.max_offsets)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        if self._options.min_offsets is not None:
            return ReadMinRows(self._options.min_offsets)
        return ReadAllAvailable()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Up to where the next micro-batch reads. Raises DataLossError."""
        from kafkalog.views.options.offset_options import by_topic
        from kafkalog.views.planning.stream_offsets import new_ends, parsed_offsets

        start = start or {}
        if self._begins_at_the_latest(start):
            return start
        starts = parsed_offsets(start)
        found = self._stream_ends().now()
        fail = self._options.read.offsets.fail_on_data_loss
        ends = new_ends(starts, found, fail_on_data_loss=fail)
        self._latest = dict(by_topic(ends))
        if self._target is not None:
            ends = _up_to(ends, self._target, starts)
        if not isinstance(limit, ReadAllAvailable):
            if self._waits(starts, ends, found):
                return start
            ends = self._limited(starts, ends, found)
        return dict(by_topic(ends))

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix where the query ends: at what is there now."""
        found = self._stream_ends().now()
        self._target = {key: partition.end for key, partition in found.items()}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends that were found last, limits aside."""
        return self._latest

    def _waits(
        self, starts: StreamOffsets, ends: StreamOffsets, found: dict[tuple[str, int], PartitionEnd]
    ) -> bool:
        """Return whether there is too little new as yet; never where the query is to end."""
        if self._options.min_offsets is None or self._target is not None:
            return False
        now_s, last_s = time.monotonic(), self._last_trigger_s
        sizes = [end - starts.get(key, found[key].start) for key, end in ends.items()]
        is_due = last_s is None or 1000 * (now_s - last_s) >= self._options.max_trigger_delay_ms
        if is_due or sum(sizes) >= self._options.min_offsets or min(sizes, default=0) < 0:
            self._last_trigger_s = now_s
            return False
        return True

    def _limited(
        self, starts: StreamOffsets, ends: StreamOffsets, found: dict[tuple[str, int], PartitionEnd]
    ) -> StreamOffsets:
        from kafkalog.inspection.logs.byte_limits import ByteLimits

        begins = {key: starts.get(key, found[key].start) for key in ends}
        if self._options.max_offsets is not None:
            sizes = {key: end - begins[key] for key, end in ends.items()}
            offsets = _shares(self._options.max_offsets, sizes)
            ends = {key: begins[key] + offsets[key] for key in ends}
        if self._options.max_bytes is None:
            return ends
        if self._byte_limits is None:
            self._byte_limits = ByteLimits()
        logs = {key: found[key].replicas.best for key in ends if begins[key] < ends[key]}
        left = {key: self._byte_limits.bytes_from(log, begins[key]) for key, log in logs.items()}
        return ends | {
            key: self._byte_limits.end_offset(logs[key], begins[key], ends[key], size)
            for key, size in _shares(self._options.max_bytes, left).items()
        }


def _up_to(ends: StreamOffsets, target: StreamOffsets, starts: StreamOffsets) -> StreamOffsets:
    """Return the ends, but none beyond the target; partitions that are in neither have come
    since."""
    return {
        key: min(end, max(target[key], starts.get(key, 0))) if key in target else starts[key]
        for key, end in ends.items()
        if key in target or key in starts
    }


def _shares(limit: int, sizes: Mapping[_Key, int]) -> dict[_Key, int]:
    """Return the part of `limit` that each gets: in proportion to its size, rounded down, but 1 at
    least of what is not empty, and never more than there is.

    The rule of Spark's Kafka source, so that small partitions are not left waiting.
    """
    total = sum(size for size in sizes.values() if size > 0)
    if total <= limit:
        return dict(sizes)
    return {
        key: min(size, max(limit * size // total, 1)) if size > 0 else size
        for key, size in sizes.items()
    }
