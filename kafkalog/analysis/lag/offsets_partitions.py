"""Which partition of `__consumer_offsets` a group belongs to. Rule: docs/format.md F323."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructType

from kafkalog.coordination.groups.group_records import GroupKey
from kafkalog.coordination.groups.offsets_partitions import offsets_partition_of, offsets_partitions

_NUMBERS = "partition_numbers"


def offsets_partition(group_id: Column, partitions: int) -> Column:
    """Return the partition that a group belongs to, given the number of partitions."""

    def place(name: str | None) -> int | None:
        return None if name is None else offsets_partition_of(name, partitions)

    return F.udf(place, IntegerType(), useArrow=False)(group_id)


def with_offsets_partition(groups: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return groups, with cluster_id, internal_partition and group_id, with a new column
    offsets_partition: the partition that the group belongs to, null where that is not known.

    `partitions` has cluster_id and partition, a row or more for each partition that is found.
    """
    numbers = partitions.groupBy(F.col("cluster_id").alias("of_cluster_id")).agg(
        F.collect_set("partition").alias(_NUMBERS)
    )
    same = F.col("cluster_id").eqNullSafe(F.col("of_cluster_id"))
    known = groups.join(F.broadcast(numbers), same, "left").select(*groups.columns, _NUMBERS)
    schema = StructType([*groups.schema.fields]).add("offsets_partition", IntegerType())
    return known.groupBy("cluster_id").applyInArrow(_with_places, schema)


def _with_places(groups: pa.Table) -> pa.Table:
    """Return the groups of one cluster with their partitions."""
    keys = [GroupKey(**row) for row in groups.select(GroupKey._fields).to_pylist()]
    numbers = groups.column(_NUMBERS)[0].as_py() or ()
    found = offsets_partitions(keys, {keys[0].cluster_id: numbers})
    places = pa.array([found.get(key) for key in keys], pa.int32())
    return groups.drop_columns([_NUMBERS]).append_column("offsets_partition", places)
