"""`spark.readStream.format("kafkalog")`: micro-batches of log directories that grow.

The driver keeps one reader for the whole of a query; tasks get a copy that knows the options only.
Rules: docs/ingest.md F520 to F526.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kafkalog.log_lines import logger
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.views.options.stream_options import StreamOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.inspection.logs.byte_limits import ByteLimits
    from kafkalog.views.planning.stream_offsets import PartitionEnd, StreamEnds, StreamOffsets

_logger = logger(__name__)


class KafkaLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are those of Spark's Kafka source: `{"topic":{"0":23}}`, the next one to read."""

    def __init__(self, options: StreamOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._ends: StreamEnds | None = None
        self._byte_limits: ByteLimits | None = None
        self._initial: dict[str, Any] | None = None
        self._is_begun = False
        self._target: StreamOffsets | None = None
        self._latest: dict[str, Any] | None = None
        self._last_trigger_s: float | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where the stream begins, the same at every call."""
        from kafkalog.views.options.offset_options import by_topic
        from kafkalog.views.planning.stream_start import starting_offsets

        if self._initial is None:
            if self._options.read.without_effect:
                without_effect = ", ".join(self._options.read.without_effect)
                _logger.warning("options without effect here: %s", without_effect)
            self._initial = dict(by_topic(starting_offsets(self._options, self._stream_ends())))
        return self._initial

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

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Up to where the next micro-batch reads. Raises DataLossError."""
        from kafkalog.views.options.offset_options import by_topic
        from kafkalog.views.planning.stream_offsets import new_ends, parsed_offsets

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

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of a micro-batch, planned as a batch read of these offsets."""
        from kafkalog.views.planning.planning import planned_groups
        from kafkalog.views.planning.stream_start import micro_batch

        read = replace(self._options.read, without_effect=())
        planned = micro_batch(read, start, end)
        return [] if planned is None else [ReadGroup(reads) for reads in planned_groups(*planned)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return KafkaLogReader(self._options.read, self._columns).read(partition)

    def _stream_ends(self) -> StreamEnds:
        from kafkalog.views.planning.stream_offsets import StreamEnds

        if self._ends is None:
            self._ends = StreamEnds(self._options.read)
        return self._ends

    def _begins_at_the_latest(self, start: dict[str, Any]) -> bool:
        """Return whether this is the first micro-batch of a stream that begins at the latest
        offsets: an empty one, so that the checkpoint has where the stream begins before anything is
        read."""
        is_first = not self._is_begun and self._options.starting is None and start == self._initial
        self._is_begun = True
        return is_first

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
        from kafkalog.views.planning.trigger_limits import shares

        begins = {key: starts.get(key, found[key].start) for key in ends}
        if self._options.max_offsets is not None:
            sizes = {key: end - begins[key] for key, end in ends.items()}
            offsets = shares(self._options.max_offsets, sizes)
            ends = {key: begins[key] + offsets[key] for key in ends}
        if self._options.max_bytes is None:
            return ends
        if self._byte_limits is None:
            self._byte_limits = ByteLimits()
        logs = {key: found[key].replicas.best for key in ends if begins[key] < ends[key]}
        left = {key: self._byte_limits.bytes_from(log, begins[key]) for key, log in logs.items()}
        return ends | {
            key: self._byte_limits.end_offset(logs[key], begins[key], ends[key], size)
            for key, size in shares(self._options.max_bytes, left).items()
        }


def _up_to(ends: StreamOffsets, target: StreamOffsets, starts: StreamOffsets) -> StreamOffsets:
    """Return the ends, but none beyond the target; partitions that are in neither have come
    since."""
    return {
        key: min(end, max(target[key], starts.get(key, 0))) if key in target else starts[key]
        for key, end in ends.items()
        if key in target or key in starts
    }
