"""Consumer lag of groups as DataFrames: commits of groups in ZooKeeper with their members, and
what a terminal shows. Rules: docs/format.md F310 to F327.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.lag.groups import GROUP_KEY, joined_by_group
from kafkalog.analysis.sentences import age_column

_PARTITION = ("topic", "partition")
# What a lag can be made of, in words.
_PARTS = (
    ("readable_records", "to read"),
    ("control_records", "control"),
    ("aborted_records", "aborted"),
    ("gaps", "gaps"),
    ("beyond_last_stable", "in open transactions"),
    ("below_log_start", "deleted"),
    ("in_tiered_storage", "in tiered storage"),
    ("damaged", "damaged"),
    ("ahead_of_log", "ahead of the log"),
)


@dataclass(frozen=True)
class ZookeeperSources:
    """One cluster's tables of analysis.zookeeper.zookeeper_groups: groups, the partitions that
    consumers own, topics and leaders."""

    groups: DataFrame
    owned: DataFrame
    topics: DataFrame
    leaders: DataFrame


def zookeeper_rows(commits: DataFrame, sources: ZookeeperSources) -> DataFrame:
    """Return a row for each commit of groups in ZooKeeper, with the consumer that owns its
    partition, and for each owned partition without a commit; with columns of the group.

    `commits` are rows of commits_in_effect. If several consumers claim a partition, because one of
    them has died, the last by id is named. Rows without a commit have the input_path of the group:
    a job that runs again replaces rows by their input.
    """
    names = (*GROUP_KEY, *_PARTITION)
    owners = sources.owned.groupBy(*names).agg(F.max("member_id").alias("member_id"))
    rest = [name for name in commits.columns if name not in (*names, "input_path")]
    rows = joined_by_group(commits, owners, "full", key=names).select(
        *(F.coalesce(name, f"of_{name}").alias(name) for name in names),
        *rest,
        F.col("input_path").alias("commit_path"),
        "member_id",
    )
    groups = sources.groups.select(
        *GROUP_KEY,
        F.col("input_path").alias("group_path"),
        "group_type",
        F.col("state").alias("group_state"),
        F.col("members").alias("member_count"),
    )
    found = joined_by_group(rows, groups)
    return found.select(
        *(*names, *rest, "member_id", "group_type", "group_state", "member_count"),
        F.coalesce("commit_path", "group_path").alias("input_path"),
    )


def most_behind(lag: DataFrame) -> DataFrame:
    """Return the rows with most to read first, in the columns for a terminal."""
    words = [F.when(F.col(name) > 0, F.format_string(f"%,d {text}", name)) for name, text in _PARTS]
    return lag.orderBy(
        F.col("readable_records").desc_nulls_last(), "group_id", "topic", "partition"
    ).select(
        *("group_id", "topic", "partition", "committed_offset", "high_watermark", "lag"),
        F.concat_ws(", ", *words).alias("made_of"),
        age_column(F.col("time_lag_ms")).alias("time_lag"),
        F.col("commit_status").alias("status"),
        "group_state",
        F.col("offset_storage").alias("stored_in"),
        # Consumers that ZooKeeper coordinates have no other name.
        F.coalesce("client_id", "member_id").alias("client"),
        "client_host",
    )
