"""When retention frees how much, from view `retention_plan`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.partitions.storage_totals import shown_topic

_DAY_MS = 86_400_000
# In order of time; the last two are not times.
WITHIN = (("day", _DAY_MS), ("week", 7 * _DAY_MS), ("month", 30 * _DAY_MS))
WHEN = ("now", *(name for name, _ in WITHIN), "later", "stays", "unknown")


def retention_times(plan: DataFrame, topics: Sequence[str | None]) -> DataFrame:
    """Return a row per shown topic and one of WHEN: what goes at the time of the plan, within a
    day, a week or a month of it, later, what no time limit reaches, and what is not known;
    segments, bytes, and the policy and limits that all of them have, null where they differ or are
    not known, and next_ms, when the first of them goes."""
    return (
        plan.groupBy(shown_topic(topics), _when().alias("when"))
        .agg(
            F.count("*").alias("segments"),
            F.sum("bytes").alias("bytes"),
            F.min("expires_at_ms").alias("next_ms"),
            *(
                F.when(F.min(name).eqNullSafe(F.max(name)), F.max(name)).alias(name)
                for name in ("cleanup_policy", "retention_ms", "retention_bytes")
            ),
        )
        .orderBy("shown_topic", "when")
    )


def _when() -> Column:
    left_ms = F.col("expires_at_ms") - F.col("at_ms")
    found = F.when(F.col("goes").isNull(), "unknown").when(F.col("goes"), "now")
    found = found.when(left_ms.isNull(), "stays")
    for name, limit_ms in WITHIN:
        found = found.when(left_ms <= limit_ms, name)
    return found.otherwise("later")


def blocked_topics(plan: DataFrame) -> DataFrame:
    """Return the topics whose retention a timestamp in the future blocks: topic, partitions, and
    that timestamp."""
    blocked = plan.where("reason = 'future_timestamp'").groupBy("topic")
    return blocked.agg(
        F.count("*").alias("partitions"), F.max("largest_timestamp_ms").alias("timestamp_ms")
    ).orderBy("topic")
