"""`spark.readStream.format("kafkalog")`: micro-batches of log directories that grow.

The driver keeps one reader for the whole of a query; tasks get a copy that knows the options only.
Rules: docs/ingest.md F520 to F523, F527.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkalog.log_lines import logger
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.views.options.options import without_effect_words
from kafkalog.views.options.stream_options import StreamOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.views.planning.stream_offsets import PartitionEnd, StreamEnds, StreamOffsets

_logger = logger(__name__)


class KafkaLogStreamReader(DataSourceStreamReader):
    """Offsets are those of Spark's Kafka source: `{"topic":{"0":23}}`, the next one to read.

    Spark 4.0 and 4.1 ask for the end of a micro-batch without its start: so the reader remembers
    what it has returned, and compares the first start that it gets with what it found.
    """

    def __init__(self, options: StreamOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._ends: StreamEnds | None = None
        self._initial: dict[str, Any] | None = None
        self._is_begun = False
        self._reached: StreamOffsets | None = None
        self._found: dict[tuple[str, int], PartitionEnd] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where the stream begins, the same at every call."""
        from kafkalog.views.options.offset_options import by_topic
        from kafkalog.views.planning.stream_start import starting_offsets

        if self._initial is None:
            if unused := without_effect_words(self._options.read):
                _logger.warning("%s", unused)
            self._initial = dict(by_topic(starting_offsets(self._options, self._stream_ends())))
        return self._initial

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """Return all that is there now. Raises DataLossError."""
        from kafkalog.views.options.offset_options import by_topic
        from kafkalog.views.planning.stream_offsets import new_ends

        if self._options.starting is None and self._begins_at_the_latest(self.initialOffset()):
            return self.initialOffset()
        found = self._stream_ends().now()
        if self._reached is None:
            self._found = found
            ends = {key: partition.end for key, partition in found.items()}
        else:
            fail = self._options.read.offsets.fail_on_data_loss
            ends = new_ends(self._reached, found, fail_on_data_loss=fail)
        self._reached = ends
        return dict(by_topic(ends))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of a micro-batch, planned as a batch read of these offsets. Raises
        DataLossError."""
        from kafkalog.views.planning.planning import planned_groups
        from kafkalog.views.planning.stream_offsets import new_ends, parsed_offsets
        from kafkalog.views.planning.stream_start import micro_batch

        if self._found is not None:
            fail = self._options.read.offsets.fail_on_data_loss
            new_ends(parsed_offsets(start), self._found, fail_on_data_loss=fail)
            self._found = None
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
