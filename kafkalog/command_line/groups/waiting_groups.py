"""Groups that wait for the end of a transaction: by a commit in it, or at the last stable offset
that it holds. Rule: docs/format.md F781."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kafkalog.command_line.groups.group_sources import Reading, group_sources
from kafkalog.command_line.groups.lag_rows import lag_rows
from kafkalog.command_line.groups.why_rows import commit_histories, is_held
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog


def waiting_groups(
    log_dirs: Sequence[str],
    logs: list[PartitionLog],
    transactions: Collection[Mapping[str, Any]],
    *,
    as_of: int | None,
    now_ms: int,
    processes: int,
) -> dict[tuple[str, int, int], list[str]]:
    """Return the ids of the groups that wait for open transactions, by topic, partition and
    producer id; `transactions` are open ones, rows of table `transaction_report`."""
    if not transactions or not any(log.topic == CONSUMER_OFFSETS for log in logs):
        return {}
    found: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    reading = Reading(log_dirs, processes)
    sources = group_sources(reading, logs, at_ms=as_of, retention_ms=0, with_reaches=False)
    at_ms = now_ms if as_of is None else as_of
    groups = {key for (key, _), commit in sources.commits.items() if commit["has_open_commit"]}
    histories = commit_histories(log_dirs, sources, groups, at_ms=at_ms, processes=processes)
    for (key, _), history in histories.items():
        if history.pending is not None:
            place = CONSUMER_OFFSETS, key.internal_partition or 0
            found[*place, history.pending.producer_id or 0].add(key.group_id)
    holders = {
        (row["topic"], row["partition"]): row["producer_id"]
        for row in transactions
        if row["is_stable_offset_holder"]
    }
    rows = lag_rows(
        sources,
        [place for place in sources.commits if place[1] in holders],
        as_of=as_of,
        now_ms=now_ms,
        read_committed=True,
        processes=processes,
    )
    for row in rows:
        if is_held(row):
            partition = row.topic, row.partition
            found[*partition, holders[partition]].add(row.group.group_id)
    return {place: sorted(names) for place, names in found.items()}
