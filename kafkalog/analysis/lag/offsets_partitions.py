"""Which partition of `__consumer_offsets` a group belongs to. Rule: docs/format.md F323."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_CODES = 2**32


def absolute_hash(text: Column) -> Column:
    """The absolute value of the hash that Java has for strings: over UTF-16 units, in 32 bits with
    a sign; 0 for the least number, which has none."""
    data = F.encode(text, "UTF-16BE")
    positions = F.sequence(F.lit(1), F.length(data) - 1, F.lit(2))
    code = F.aggregate(
        F.when(F.length(data) > 0, positions).otherwise(F.array().cast("array<int>")),
        F.lit(0).cast("long"),
        lambda code, position: (
            (code * 31 + F.conv(F.hex(F.substring(data, position, 2)), 16, 10).cast("long"))
            % _CODES
        ),
    )
    return F.least(code, _CODES - code) % (_CODES // 2)


def with_offsets_partition(groups: DataFrame, partitions: DataFrame) -> DataFrame:
    """Groups, with cluster_id, internal_partition and group_id, and a new column
    offsets_partition: the one that the group belongs to, null where that is not known.

    `partitions` are those of the topic that something tells of, cluster_id and partition: as many
    as the highest of them says, if none below is missing and most groups lie where that number puts
    them; an input that has only the first partitions of a topic puts them anywhere.
    """
    numbers = partitions.distinct().groupBy(F.col("cluster_id").alias("of_cluster_id"))
    counts = numbers.agg(
        F.when(F.max("partition") + 1 == F.count("*"), F.count("*")).alias("partition_count")
    )
    same = F.col("cluster_id").eqNullSafe(F.col("of_cluster_id"))
    place = (absolute_hash(F.col("group_id")) % F.col("partition_count")).cast("int")
    placed = groups.join(F.broadcast(counts), same, "left").withColumn("place", place)
    fits = placed.groupBy(F.col("cluster_id").alias("fit_cluster_id")).agg(
        (
            F.count_if(F.col("place") == F.col("internal_partition")) * 2
            > F.count("internal_partition")
        ).alias("fits")
    )
    same = F.col("cluster_id").eqNullSafe(F.col("fit_cluster_id"))
    return placed.join(F.broadcast(fits), same, "left").select(
        *groups.columns, F.when(F.col("fits"), F.col("place")).alias("offsets_partition")
    )
