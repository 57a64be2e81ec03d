"""The order that rows are written in."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kafkalog.errors import SchemaError

_OFFSET = "offset"


def in_log_order(frame: DataFrame) -> DataFrame:
    """Return the rows of each partition in one task, sorted by offset. Raises SchemaError where
    there is no column to sort by."""
    if _OFFSET not in frame.columns:
        raise SchemaError(
            "no column offset to sort by: bring the rows of each partition into one task and "
            'into their order yourself, and use df.write.format("kafkalog")'
        )
    partition = [name for name in ("topic", "partition") if name in frame.columns]
    return frame.repartition(*partition).sortWithinPartitions(*partition, _OFFSET)
