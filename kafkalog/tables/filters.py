"""What a filter of Arrow's leaves to read of logs: partitions, offsets and times.

A filter is not taken apart. Arrow itself says whether rows with certain values can pass it: each
question is a fragment with a guarantee, as a partitioned data set has it, and a fragment that no
row can come from is left out. What is left is at least what passes; whoever reads it applies the
filter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from pyarrow import acero, fs

from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.offset_ranges import TimestampRange

_FORMAT, _FILES = pads.IpcFileFormat(), fs.LocalFileSystem()
# Up to so many logs are asked about one by one, where a filter has other offsets for each.
_MOST_LOGS = 16
# Arrow counts microseconds in 64 bits.
_FIRST_MS, _END_MS = -(2**63) // 1000 + 1, 2**63 // 1000
_Guarantee: TypeAlias = Any  # a pyarrow Expression


class Filter:
    """A filter of rows with a schema; None lets all pass."""

    def __init__(self, expression: pc.Expression | None, schema: pa.Schema) -> None:
        self.expression = expression
        self._schema = schema
        # A name can be in a text of the filter, too: that costs a column, and changes no row.
        text = "" if expression is None else str(expression)
        self.columns = tuple(name for name in schema.names if name in text)

    def logs(self, logs: Sequence[PartitionLog]) -> list[PartitionLog]:
        """Return the logs whose rows, with columns topic and partition, can pass."""
        passing = self._passing_partitions([(log.topic, log.partition) for log in logs])
        return list(compress(logs, passing))

    def partitions(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions whose rows, with columns topic and partition, can pass."""
        return list(compress(partitions, self._passing_partitions(partitions)))

    def offsets(
        self, column: str, logs: Sequence[PartitionLog]
    ) -> Mapping[TopicPartition | None, OffsetSpan] | None:
        """Return the offsets of each log whose rows can pass, None for all of all logs."""
        if column not in self.columns:
            return None
        field, number = pc.field(column), pa.int64()

        def between(of_log: _Guarantee, start: int, end: int) -> _Guarantee:
            first, last = pa.scalar(start, number), pa.scalar(end - 1, number)
            return of_log & (field >= first) & (field <= last)

        def span(of_log: _Guarantee) -> OffsetSpan:
            return self._span(partial(between, of_log), 0, LARGEST_OFFSET)

        depends = {"topic", "partition"} & set(self.columns)
        are_named = all(log.topic_partition for log in logs)
        if not (depends and are_named and len(logs) <= _MOST_LOGS):
            return dict.fromkeys((log.topic_partition for log in logs), span(pc.scalar(True)))
        return {log.topic_partition: span(_of_partition(log.topic, log.partition)) for log in logs}

    def times(self, column: str) -> TimestampRange | None:
        """Return the times, in a column of microseconds, of the rows that can pass, None for all
        times and where rows without a time can."""
        field, time = pc.field(column), pa.timestamp("us", tz="UTC")
        if column not in self.columns or any(self._passing([field.is_null()])):
            return None

        def between(start: int, end: int) -> _Guarantee:
            first, after = pa.scalar(start * 1000, time), pa.scalar(end * 1000, time)
            return (field >= first) & (field < after)

        span = self._span(between, _FIRST_MS, _END_MS)
        return TimestampRange(*span)

    def rows(self, batch: pa.RecordBatch, columns: Sequence[str]) -> list[pa.RecordBatch]:
        """Return these columns of the rows that pass."""
        if self.expression is None:
            return [batch.select(columns)]
        table = pa.Table.from_batches([batch])
        steps = [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
            acero.Declaration("filter", acero.FilterNodeOptions(self.expression)),
        ]
        # Without threads, which a fork does not have.
        found = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
        return [each for each in found.select(columns).to_batches() if len(each)]

    def _span(self, between: Callable[[int, int], _Guarantee], first: int, end: int) -> OffsetSpan:
        """Return the smallest span outside of which nothing passes, empty if nothing does."""

        def passes(start: int, stop: int) -> bool:
            return start < stop and self._passing([between(start, stop)])[0]

        if not passes(first, end):
            return OffsetSpan(first, first)
        start = _last(first, end, lambda place: not passes(first, place))
        stop = end - _last(0, end - start, lambda length: not passes(end - length, end))
        return OffsetSpan(start, stop)

    def _passing_partitions(
        self, partitions: Sequence[tuple[str | None, int | None]]
    ) -> list[bool]:
        if not {"topic", "partition"} & set(self.columns):
            return [True] * len(partitions)
        return self._passing([_of_partition(*each) for each in partitions])

    def _passing(self, guarantees: Sequence[_Guarantee]) -> list[bool]:
        fragments = [
            _FORMAT.make_fragment(str(number), _FILES, partition_expression=guarantee)
            for number, guarantee in enumerate(guarantees)
        ]
        dataset = pads.FileSystemDataset(fragments, self._schema, _FORMAT, _FILES)
        passing = {int(each.path) for each in dataset.get_fragments(filter=self.expression)}
        return [number in passing for number in range(len(guarantees))]


def _of_partition(topic: str | None, partition: int | None) -> _Guarantee:
    return _equals("topic", topic) & _equals("partition", partition)


def _equals(column: str, value: Any) -> _Guarantee:
    return pc.field(column).is_null() if value is None else pc.field(column) == value


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the last number for which it holds, which it does for `low` and up to some number."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
