"""The tables of the audit of old consumers. Rules: docs/zookeeper.md F448, F466 to F469."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster

_PLACE = ("input_path", "cluster_id", "chroot")
_OWNERSHIP = (
    "group_id",
    "topic",
    "broker_id",
    "partition",
    "owner",
    "owner_session_id",
    "claimed_ms",
    "assigned",
    "is_assignment_known",
    "strategy",
    "committed_offset",
    "committed_ms",
    "log_start_offset",
    "high_watermark",
    "findings",
)
_OTHER_CLUSTER_ID = "other_cluster_id"


def of_members(audit: DataFrame, members: Iterable[EnsembleCluster]) -> DataFrame:
    """Return the rows about these clusters as these members of their ensembles have them."""
    return audit.where(reduce(Column.__or__, map(_is_of, members), F.lit(False)))


def _is_of(member: EnsembleCluster) -> Column:
    # An ensemble has one cluster at a root.
    return (F.col("input_path") == member.input_path) & (F.col("chroot") == member.chroot)


def ownerships(audit: DataFrame) -> DataFrame:
    """Return the rows of table partition_ownership, without the findings from logs."""
    rows = _of_table(audit, "partition_ownership")
    return rows.drop("log_start_offset", "high_watermark")


def ownership_changes(audit: DataFrame) -> DataFrame:
    """Return the rows of table ownership_history."""
    return _of_table(audit, "ownership_history")


def with_log_findings(accounted: DataFrame) -> DataFrame:
    """Return rows of `ownerships` with an account of the lag (`with_lag`): with what the log says
    against the offset among the findings."""
    beyond, deleted = (F.coalesce(name, F.lit(0)) for name in ("ahead_of_log", "below_log_start"))
    more = F.array_compact(
        F.array(
            F.when(beyond > 0, "offset_beyond_log_end"),
            F.when(deleted > 0, "offset_below_log_start"),
        )
    )
    return accounted.withColumns({"findings": F.concat("findings", more), "log_findings": more})


def partition_ownership(judged: DataFrame) -> DataFrame:
    """Return the rows of table partition_ownership, of what `with_log_findings` has judged."""
    return judged.select(*_PLACE, *_OWNERSHIP)


def consumer_findings(audit: DataFrame, judged: DataFrame) -> DataFrame:
    """Return the rows of table consumer_findings: those of the audit, and those of rows that
    `with_log_findings` has judged. A log directory of a cluster that another input has is not a
    finding."""
    rows = _of_table(audit, "consumer_findings").where("finding IS NOT NULL")
    clusters = audit.where("cluster_id IS NOT NULL").select(F.col("cluster_id").alias("known_id"))
    unknown = rows.join(
        F.broadcast(clusters.distinct()), rows[_OTHER_CLUSTER_ID] == F.col("known_id"), "left_anti"
    ).drop(_OTHER_CLUSTER_ID)
    words = F.format_string(
        "offset %d, the log has %d to %d",
        F.col("committed_offset"),
        F.col("log_start_offset"),
        F.col("high_watermark"),
    )
    by_logs = judged.select(
        *_PLACE,
        F.explode("log_findings").alias("finding"),
        "group_id",
        "topic",
        "broker_id",
        "partition",
        words.alias("detail"),
    )
    return unknown.unionByName(by_logs, allowMissingColumns=True)


def finding_counts(found: DataFrame) -> DataFrame:
    """Return how often each finding occurs: finding, count, and the first of them in words."""
    about = F.concat_ws(" ", "group_id", "topic", F.col("partition").cast("string"), "detail")
    return found.groupBy("finding").agg(
        F.count("*").alias("count"), F.min(about).alias("for_example")
    )


def ownership_totals(owned: DataFrame) -> DataFrame:
    """Return one row: groups, partitions, owned, assigned."""
    return owned.agg(
        F.countDistinct("input_path", "chroot", "group_id").alias("groups"),
        F.count("*").alias("partitions"),
        F.count("owner").alias("owned"),
        F.count("assigned").alias("assigned"),
    )


def _of_table(audit: DataFrame, table: str) -> DataFrame:
    return audit.where(F.col(table).isNotNull()).select(*_PLACE, f"{table}.*")
