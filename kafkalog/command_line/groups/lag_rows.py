"""The lag of groups on one machine: a row per group, topic and partition.

Rules: docs/format.md F310 to F317 and F327.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.command_line.groups.group_sources import GroupSources
from kafkalog.coordination.groups.commit_status import COUNTED, NO_COMMIT
from kafkalog.coordination.groups.group_records import (
    GroupKey,
    GroupMember,
    GroupPartition,
    GroupRecord,
)
from kafkalog.inspection.lag.lag_columns import ACCOUNT_COLUMNS, with_accounts
from kafkalog.inspection.lag.lag_times import lag_times
from kafkalog.inspection.lag.resumed_commits import RESUME_COLUMNS, RESUMES_AT, with_resumes
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.views.parallel import in_order

# The columns of an account that its times are made of.
_TIMED = (
    *("readable_records", "in_tiered_storage", "damaged", "next_timestamp_ms"),
    *("newest_timestamp_ms", "consumed_timestamp_ms"),
)
_Place = tuple[GroupKey, GroupPartition]
# The names of columns of accounts, these columns, and the statuses of commits.
_Accounts = tuple[list[str], list[list[Any]], list[str]]


@dataclass(frozen=True, slots=True)
class LagRow:
    """A group's commit for a partition, None without one, the account of its lag (columns of table
    `consumer_lag`), the status of the commit, and the member that has the partition."""

    group: GroupKey
    topic: str
    partition: int
    commit: GroupRecord | None
    account: Mapping[str, Any]
    status: str
    member: GroupMember | None
    at_ms: int

    @property
    def committed_offset(self) -> int | None:
        return None if self.commit is None else self.commit["committed_offset"]

    @property
    def is_counted(self) -> bool:
        """Whether a consumer may continue from the commit, and its log is there."""
        return self.status in COUNTED and self.account["lag"] is not None

    @property
    def is_lagging(self) -> bool:
        """Whether the commit counts and leaves something to read."""
        return self.is_counted and self.account["readable_records"] > 0

    @property
    def behind_since_ms(self) -> int | None:
        """The time of the first record that is left to read, None if unknown."""
        next_ms: int | None = self.account["next_timestamp_ms"]
        return next_ms

    @property
    def resumes_at(self) -> int | None:
        """Where Java's consumers continue, None where that is the commit. F943"""
        offset: int | None = self.account[RESUMES_AT]
        return offset

    @property
    def is_ahead_of_time(self) -> bool:
        """Whether that record has a timestamp in the future."""
        return self.behind_since_ms is not None and self.behind_since_ms > self.at_ms

    @property
    def time_lag_ms(self) -> int | None:
        """The age of the first record that is left to read, None if unknown. F315"""
        age_ms: int | None = self.account["time_lag_ms"]
        return age_ms


def lag_rows(
    sources: GroupSources,
    places: Sequence[_Place],
    *,
    as_of: int | None,
    now_ms: int,
    read_committed: bool,
    processes: int,
) -> Iterator[LagRow]:
    """Yield the rows of these groups and partitions, now, at `now_ms`, or `as_of` a past time."""
    logs = {log.topic_partition: log for log in best_logs(sources.logs)}
    at_ms = now_ms if as_of is None else as_of
    by_log: dict[GroupPartition, list[_Place]] = defaultdict(list)
    for place in places:
        by_log[place[1]].append(place)

    def accounts(item: tuple[GroupPartition, list[_Place]]) -> Iterator[_Accounts]:
        key, wanted = item
        commits = [sources.commits.get(place) for place in wanted]
        offsets = [None if commit is None else commit["committed_offset"] for commit in commits]
        epochs = [None if commit is None else commit["leader_epoch"] for commit in commits]
        rows = {
            "committed_offset": of_values(offsets, pa.int64()),
            "leader_epoch": of_values(epochs, pa.int64()),
        }
        if as_of is not None:
            rows["at_ms"] = of_values([as_of] * len(wanted), pa.int64())
        log = logs.get(key)
        # Commits are newer than the list of segments.
        log = None if log is None else with_segments_of_now(log)
        table = with_accounts(
            pa.table(rows),
            log,
            read_committed=read_committed,
            now_ms=now_ms,
            at=None if as_of is None else "at_ms",
        )
        of_now = log if as_of is None else None
        table = with_resumes(table, of_now, read_committed=read_committed, now_ms=now_ms)
        ends = table["high_watermark"].to_pylist()
        statuses = [
            NO_COMMIT
            if commit is None
            else sources.judge.status(commit, place[0], high_watermark, at_ms)
            for place, commit, high_watermark in zip(wanted, commits, ends, strict=True)
        ]
        # Columns: to pickle, they are a fraction of what rows are.
        columns = {name: table[name].to_pylist() for name in (*ACCOUNT_COLUMNS, *RESUME_COLUMNS)}
        for number, place in enumerate(wanted):
            share = sources.shares.get(place)
            if share is not None:
                _deliver(columns, number, share.delivery_complete)
        columns["time_lag_ms"] = _time_lags(columns, at_ms)
        yield list(columns), list(columns.values()), statuses

    items = list(by_log.items())
    for (key, wanted), (names, columns, statuses) in zip(
        items, in_order(accounts, items, processes=processes), strict=True
    ):
        for place, status, *values in zip(wanted, statuses, *columns, strict=True):
            account = dict(zip(names, values, strict=True))
            commit = sources.commits.get(place)
            member = sources.assigned.get(place)
            yield LagRow(place[0], *key, commit, account, status, member, at_ms)


def _deliver(columns: dict[str, list[Any]], number: int, complete: int | None) -> None:
    """Take off a lag the records that a share group needs no more. F780"""
    lag, readable = columns["lag"][number], columns["readable_records"][number]
    if lag is None:
        return
    columns["lag"][number] = None if complete is None else lag - complete
    if complete is not None:
        columns["readable_records"][number] = max(readable - complete, 0)


def _time_lags(columns: Mapping[str, list[Any]], at_ms: int) -> list[int | None]:
    arrays = {name: of_values(columns[name], pa.int64()) for name in _TIMED}
    rows = len(columns["lag"])
    arrays["at_ms"] = of_values([at_ms] * rows, pa.int64())
    arrays["commit_timestamp_ms"] = pa.nulls(rows, pa.int64())
    found: list[int | None] = lag_times(arrays)["time_lag_ms"].to_pylist()
    return found
