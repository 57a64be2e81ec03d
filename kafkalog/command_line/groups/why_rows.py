"""What `kafkalog groups --why` shows: why groups do not read on. Rule: docs/format.md F781."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.command_line.groups.group_sources import GroupSources
from kafkalog.command_line.groups.lag_rows import LagRow
from kafkalog.coordination.groups.group_records import GroupKey, GroupPartition, group_key
from kafkalog.coordination.groups.stuck_partitions import (
    HoldingTransaction,
    PartitionOfGroup,
    why_without_partitions,
)
from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.questions.transactions import Transactions, TransactionSettings, transactions
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import AskedView, Batches, LocalViews

_COMMIT_COLUMNS = (
    *("cluster_id", "internal_partition", "group_id", "topic", "partition", "committed_offset"),
    *("commit_timestamp_ms", "effective_offset", "effective_timestamp_ms", "effect"),
    *("record_timestamp_ms", "is_transactional", "producer_id"),
)
WHY_COLUMNS = (
    *("group", "topic", "partition", "reason", "to_read", "lag", "current_offset"),
    *("committed_at_ms", "stuck_since_ms", "transactional_id", "producer_id"),
    *("transaction_started_ms", "transaction_timeout_ms", "ends_by_itself_ms"),
    *("state", "members", "consumer_id", "host", "what_to_do"),
)
_Place = tuple[GroupKey, GroupPartition]


class PendingCommit(NamedTuple):
    """A commit that waits for the end of its transaction."""

    committed_offset: int | None
    producer_id: int | None
    written_ms: int | None


@dataclass
class CommitHistory:
    """Since when the committed offset of a group's partition is the same, as far as its records are
    there, and the commit that waits for the end of its transaction."""

    moved_ms: int | None = None
    pending: PendingCommit | None = None


def commit_histories(
    log_dirs: Sequence[str],
    sources: GroupSources,
    groups: Collection[GroupKey],
    *,
    at_ms: int,
    processes: int,
) -> dict[_Place, CommitHistory]:
    """Return the histories of the commits of some groups, as of a time."""
    names = pa.array(sorted({key.group_id for key in groups}), pa.string())

    def of_groups(batches: Batches) -> Batches:
        for batch in batches:
            yield batch.filter(pc.is_in(batch["group_id"], names))

    schema = arrow_schema("offset_commits", _COMMIT_COLUMNS)
    of_topic = {"subscribe": CONSUMER_OFFSETS}
    (rows,) = LocalViews(log_dirs, sources.logs, processes).rows(
        AskedView("offset_commits", _COMMIT_COLUMNS, of_groups, schema, of_topic)
    )
    applied: dict[_Place, dict[int, Mapping[str, Any]]] = {}
    found: dict[_Place, CommitHistory] = {}
    for row in rows:
        place = group_key(row), (row["topic"], row["partition"])
        written_ms = row["record_timestamp_ms"] or row["commit_timestamp_ms"]
        if place[0] not in groups or (written_ms is not None and written_ms > at_ms):
            continue
        moment_ms = row["effective_timestamp_ms"] or row["commit_timestamp_ms"]
        is_later = moment_ms is not None and moment_ms > at_ms
        if row["effect"] == "open" or (row["effect"] == "applied" and is_later):
            pending = PendingCommit(row["committed_offset"], row["producer_id"], written_ms)
            found.setdefault(place, CommitHistory()).pending = pending
        elif row["effect"] == "applied":
            applied.setdefault(place, {})[row["effective_offset"]] = row
    for place, by_offset in applied.items():
        newest_first = [by_offset[offset] for offset in sorted(by_offset, reverse=True)]
        for each in newest_first:
            if each["committed_offset"] != newest_first[0]["committed_offset"]:
                break
            moved_ms = each["effective_timestamp_ms"] or each["commit_timestamp_ms"]
            found.setdefault(place, CommitHistory()).moved_ms = moved_ms
    return found


def open_transactions(
    log_dirs: Sequence[str],
    sources: GroupSources,
    places: Collection[GroupPartition],
    *,
    at_ms: int,
    longest_ms: int,
    processes: int,
) -> list[HoldingTransaction]:
    """Return the open transactions in some partitions, the oldest of each first."""
    logs = [log for log in sources.logs if log.topic_partition in places]
    settings = TransactionSettings(at_ms, None, longest_ms, logs, has_ended_rows=False)
    return holding_transactions(
        transactions(LocalViews(log_dirs, sources.logs, processes), settings)
    )


def holding_transactions(found: Transactions) -> list[HoldingTransaction]:
    """Return the open transactions, the oldest first."""
    states = {state["transactional_id"]: state for state in found.ids.states()}
    return [
        HoldingTransaction(
            *(row["topic"], row["partition"], row["producer_id"], row["first_offset"]),
            row["outcome"] == "hanging",
            row["transactional_id"],
            *(state.get(name) for name in ("state", "started_ms", "timeout_ms")),
        )
        for row in sorted(found.open(), key=lambda row: int(row["first_offset"] or 0))
        for state in (states.get(row["transactional_id"], {}),)
    ]


def why_rows(
    sources: GroupSources,
    groups: Collection[GroupKey],
    rows: Sequence[LagRow],
    histories: Mapping[_Place, CommitHistory],
    transactions: Sequence[HoldingTransaction],
) -> Iterator[tuple[object, ...]]:
    """Yield the values of WHY_COLUMNS, a row per partition of each group. `rows` have the lag of
    readers of committed records."""
    by_producer = {(each.topic, each.partition, each.producer_id): each for each in transactions}
    by_partition = {(each.topic, each.partition): each for each in reversed(transactions)}
    for row in rows:
        place = row.group, (row.topic, row.partition)
        history = histories.get(place, CommitHistory())
        share = sources.shares.get(place)
        moved_ms = history.moved_ms if share is None else share.written_ms
        pending = history.pending
        holder = by_partition.get(place[1])
        if pending is not None:
            internal = row.group.internal_partition or 0
            holder = by_producer.get((CONSUMER_OFFSETS, internal, pending.producer_id or 0))
        found = _partition_of_group(sources, row, moved_ms, pending, holder)
        reason, words = found.why(row.at_ms)
        is_waiting = bool(found.to_read or is_held(row) or pending)
        since = [moved_ms, None if row.is_ahead_of_time else row.behind_since_ms]
        if pending is not None:
            since = [pending.written_ms]
        elif is_held(row) and holder is not None:
            since.append(holder.started_ms)
        known = [each for each in since if each is not None]
        shown = holder if pending is not None or is_held(row) else None
        member = row.member
        yield (
            *(row.group.group_id, row.topic, row.partition, reason, found.to_read),
            *(row.account["lag"], row.committed_offset),
            row.commit and row.commit["commit_timestamp_ms"],
            max(known) if known and is_waiting else None,
            *((shown.transactional_id, shown.producer_id) if shown else (None, None)),
            *((shown.started_ms, shown.timeout_ms, shown.ends_ms) if shown else (None,) * 3),
            *(found.group_state, found.members),
            *((member.member_id, member.client_host) if member else (None, None)),
            words,
        )
    for key in sorted(set(groups) - {row.group for row in rows}):
        group = sources.groups[key]
        nothing = [None] * (len(WHY_COLUMNS) - 7)
        reason, words = why_without_partitions(group.protocol_type, group.members)
        if sources.missing:
            words = f"Commits may be missing: {missing_words(sources.missing)}."
        yield (
            *(key.group_id, None, None, reason, *nothing[:-2]),
            *(group.state, group.members, None, None, words),
        )


def is_held(row: LagRow) -> bool:
    """Return whether readers of committed records have nothing left to read but what is behind an
    open transaction."""
    account = row.account
    return (
        row.committed_offset is not None
        and not account["readable_records"]
        and bool(account["beyond_last_stable"])
        and row.committed_offset <= account["last_stable_offset"]
    )


def _partition_of_group(
    sources: GroupSources,
    row: LagRow,
    moved_ms: int | None,
    pending: PendingCommit | None,
    holder: HoldingTransaction | None,
) -> PartitionOfGroup:
    account, group = row.account, sources.groups[row.group]
    to_read, behind = account["readable_records"], account["beyond_last_stable"] or 0
    stable = account["last_stable_offset"]
    if to_read is not None and behind and (row.committed_offset or 0) > (stable or 0):
        # It has read beyond the last stable offset: it does not wait there.
        to_read += behind
    return PartitionOfGroup(
        row.topic,
        row.partition,
        group.group_type,
        group.state,
        group.members,
        row.status,
        row.committed_offset,
        stable,
        to_read,
        is_held(row),
        account["below_log_start"] or 0,
        account["ahead_of_log"] or 0,
        account["damaged"] or 0,
        account["next_offset"],
        moved_ms,
        row.member and row.member.member_id,
        (pending.committed_offset or 0) if pending else None,
        holder,
    )
