"""How often keys occur, and tombstones, from view `records`. Counts of single keys are estimates
where there are more keys than are tracked."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.partitions.storage_totals import shown_topic

# What `key_totals` reads.
SKEW_COLUMNS = ("topic", "key", "value")
TOP_KEYS = 10
# The sketch of frequent items has about this many keys of a topic in memory; with fewer keys than
# three quarters of it its counts are exact.
TRACKED_KEYS = 8192
EXACT_UP_TO = TRACKED_KEYS * 3 // 4
_SHOWN_CHARACTERS = 48


def key_totals(
    records: DataFrame, topics: Sequence[str | None], *, shows_keys: bool = False
) -> DataFrame:
    """Return a row per shown topic: shown_topic, null for topics that are not among `topics`;
    records; keyed, those with a key; tombstones, those of them without a value; distinct_keys,
    estimated; and top_keys, (item, count) of the most frequent ones, the item being the key's hash
    as a number in text, or with `shows_keys` the key itself."""
    key = F.col("key")
    item = _text(key) if shows_keys else F.xxhash64(key).cast("string")
    return (
        records.select(shown_topic(topics), key, F.col("value").isNull().alias("is_empty"))
        .withColumn("item", F.when(key.isNotNull(), item))
        .groupBy("shown_topic")
        .agg(
            F.count("*").alias("records"),
            F.count("key").alias("keyed"),
            F.count_if(key.isNotNull() & F.col("is_empty")).alias("tombstones"),
            F.approx_count_distinct("key").alias("distinct_keys"),
            # One more, for records without a key count as an item of their own.
            F.expr(f"approx_top_k(item, {TOP_KEYS + 1}, {TRACKED_KEYS})").alias("found"),
        )
        .withColumn("top_keys", F.filter("found", lambda each: each["item"].isNotNull()))
        .withColumn("top_keys", F.slice("top_keys", 1, TOP_KEYS))
        .drop("found")
        .orderBy(F.desc("records"), "shown_topic")
    )


def _text(key: Column) -> Column:
    """Return a key as text, or in hexadecimal where it is none; long ones by their beginning and
    hash."""
    text = key.cast("string")
    whole = F.when(F.is_valid_utf8(text), text).otherwise(F.concat(F.lit("0x"), F.hex(key)))
    begin = F.substring(whole, 1, _SHOWN_CHARACTERS)
    short = F.concat(begin, F.lit("… "), F.hex(F.xxhash64(key)))
    return F.when(F.length(whole) <= _SHOWN_CHARACTERS, whole).otherwise(short)
