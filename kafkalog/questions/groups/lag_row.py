"""A row of table `consumer_lag`, as faces read it. Rules: docs/format.md F310 to F317."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import python_rows, scalar, strings
from kafkalog.coordination.groups.commit_status import COUNTED
from kafkalog.coordination.groups.group_records import GroupKey, GroupPartition
from kafkalog.inspection.lag.lag_columns import LAG_PARTS
from kafkalog.inspection.lag.lag_table import LOG_COLUMNS, in_order
from kafkalog.inspection.lag.resumed_commits import RECORDS_AGAIN, RESUMES_AT

_COLUMNS = (
    *("cluster_id", "input_path", "internal_partition", "group_id", "topic", "partition"),
    *(
        "at_ms",
        "commit_status",
        "group_type",
        "member_id",
        "client_id",
        "client_host",
        "committed_offset",
    ),
    *("log_start_offset", "high_watermark", "high_watermark_from", "last_stable_offset", "lag"),
    *(*LAG_PARTS, "next_offset", "next_timestamp_ms", "timestamp_type", "time_lag_ms"),
    *("newest_timestamp_ms",),
    *("commit_timestamp_ms", RESUMES_AT, RECORDS_AGAIN, "log_broker_id"),
)


class LagRow(dict[str, Any]):
    """A group's commit for a partition, or a partition that a member has without one, by the
    columns of the table."""

    __slots__ = ()

    @property
    def group(self) -> GroupKey:
        """The group's key."""
        return GroupKey(self["cluster_id"], self["internal_partition"], self["group_id"])

    @property
    def place(self) -> GroupPartition:
        """The topic and the partition."""
        return self["topic"], self["partition"]

    @property
    def is_counted(self) -> bool:
        """Whether a consumer may continue from the commit, and its log is there."""
        return self["commit_status"] in COUNTED and self["lag"] is not None

    @property
    def is_lagging(self) -> bool:
        """Whether the commit counts and leaves something to read."""
        return self.is_counted and self["readable_records"] > 0

    @property
    def is_ahead_of_time(self) -> bool:
        """Whether the first record that is left to read has a timestamp in the future."""
        next_ms = self["next_timestamp_ms"]
        return next_ms is not None and next_ms > self["at_ms"]

    @property
    def is_held(self) -> bool:
        """Whether readers of committed records have nothing left to read but what is behind an open
        transaction."""
        return (
            self["committed_offset"] is not None
            and not self["readable_records"]
            and bool(self["beyond_last_stable"])
            and self["committed_offset"] <= self["last_stable_offset"]
        )


def lag_rows_of(table: pa.Table) -> list[LagRow]:
    """Return the rows of the table by group, topic and partition."""
    return [*map(LagRow, python_rows(in_lag_order(table.select(_COLUMNS))))]


def in_lag_order(table: pa.Table) -> pa.Table:
    """Return the rows by group, topic and partition."""
    return in_order(table, ("group_id", *LOG_COLUMNS))


def notable_rows(table: pa.Table) -> pa.Table:
    """Return the rows whose commit does not count, or has expired, whose lag is not known or has
    parts that were not read, and those at whose commit consumers do not continue."""
    counted = strings([status for status in COUNTED if status != "expired"])
    is_usual = pc.and_(
        pc.is_in(table["commit_status"], counted),
        pc.and_(table["lag"].is_valid(), table[RESUMES_AT].is_null()),
    )
    nothing = scalar(0, pa.int64())
    for part in ("damaged", "in_tiered_storage"):
        is_usual = pc.and_(is_usual, pc.equal(table[part].fill_null(nothing), nothing))
    return table.filter(pc.invert(is_usual))
