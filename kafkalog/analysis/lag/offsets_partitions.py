"""Which partition of `__consumer_offsets` a group belongs to. Rule: docs/format.md F323."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from kafkalog.coordination.groups.offsets_partitions import offsets_partition_of


def offsets_partition(group_id: Column, partitions: int) -> Column:
    """Return the partition that a group belongs to, given the number of partitions."""

    def place(name: str | None) -> int | None:
        return None if name is None else offsets_partition_of(name, partitions)

    return F.udf(place, IntegerType(), useArrow=False)(group_id)
