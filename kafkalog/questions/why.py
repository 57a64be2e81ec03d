"""Why do groups not read on, since when, and what helps? Rule: docs/format.md F781."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.group_records import Group, GroupKey, GroupPartition, group_key
from kafkalog.coordination.groups.lag_question import ChosenNames, LagQuestion
from kafkalog.coordination.groups.stuck_partitions import (
    HoldingTransaction,
    PartitionOfGroup,
    why_without_partitions,
)
from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.questions.groups.lag_row import LagRow, lag_rows_of
from kafkalog.questions.transactions import TransactionSettings, transactions
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import AskedView, Batches, RowsInMemory, Views

_COMMIT_COLUMNS = (
    *("cluster_id", "internal_partition", "group_id", "topic", "partition", "committed_offset"),
    *("commit_timestamp_ms", "effective_offset", "effective_timestamp_ms", "effect"),
    *("record_timestamp_ms", "is_transactional", "producer_id"),
)
TABLE = "group_reasons"
_OF_LAG = (
    *("cluster_id", "input_path", "at_ms", "group_id", "topic", "partition", "lag"),
    *("committed_offset", "commit_timestamp_ms", "member_id", "client_host"),
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
    views: Views, groups: Collection[GroupKey], lag: ConsumerLag
) -> dict[_Place, CommitHistory]:
    """Return the histories of the commits of some groups, as of the time of a lag, of the copies
    that it has read."""
    at_ms = lag.question.at_ms
    copies = {log.name: log.path for log in lag.rows.past_copies}
    logs = [log for log in views.logs if copies.get(log.name, log.path) == log.path]
    names = pa.array(sorted({key.group_id for key in groups}), pa.string())

    def of_groups(batches: Batches) -> Batches:
        for batch in batches:
            yield batch.filter(pc.is_in(batch["group_id"], names))

    schema = arrow_schema("offset_commits", _COMMIT_COLUMNS)
    of_topic = {"subscribe": CONSUMER_OFFSETS}
    asked = AskedView("offset_commits", _COMMIT_COLUMNS, of_groups, schema, of_topic, logs)
    (rows,) = views.rows(asked)
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
    views: Views, places: Collection[GroupPartition], question: LagQuestion
) -> list[HoldingTransaction]:
    """Return the transactions in some partitions that are open, or at a past time were, the oldest
    of each first."""
    if not places:
        return []
    logs = [log for log in views.logs if log.topic_partition in places]
    settings = TransactionSettings(
        question.now_ms, question.as_of_ms, logs=logs, has_ended_rows=False
    )
    found = transactions(views, settings)
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


def group_reasons(views: Views, question: LagQuestion) -> RowsInMemory:
    """Return the rows of table `group_reasons`, of the chosen groups: why each does not read on, as
    a reader of committed records."""
    lag = ConsumerLag(views, replace(question, read_committed=True), with_groups=True)
    rows = lag_rows_of(lag.rows.rows().table)
    chosen = {key for key in lag.groups if question.chosen.has(key.group_id, None)}
    living = {key for key in chosen if lag.groups[key].state != "Dead"}
    return RowsInMemory.of(TABLE, why_rows(views, lag, living, rows))


def why_rows(
    views: Views, lag: ConsumerLag, groups: Collection[GroupKey], rows: Sequence[LagRow]
) -> Iterator[dict[str, Any]]:
    """Yield rows of table `group_reasons`, one per partition of each group. `rows` have the lag of
    readers of committed records."""
    at_ms = lag.question.at_ms
    histories = commit_histories(views, groups, lag)
    places = {row.place for row in rows if row["beyond_last_stable"]}
    places |= {
        (CONSUMER_OFFSETS, key.internal_partition or 0)
        for (key, _), history in histories.items()
        if history.pending is not None
    }
    transactions = open_transactions(views, places, lag.question)
    by_producer = {(each.topic, each.partition, each.producer_id): each for each in transactions}
    by_partition = {(each.topic, each.partition): each for each in reversed(transactions)}
    paths = {(log.topic_partition, log.log_dir.broker_id): log.path for log in views.logs}
    newest_ms = max((each.newest_ms or 0 for each in lag.rows.known.reaches), default=0)
    for row in rows:
        history = histories.get((row.group, row.place), CommitHistory())
        is_share = row["group_type"] == "share"
        moved_ms = row["commit_timestamp_ms"] if is_share else history.moved_ms
        pending = history.pending
        holder = by_partition.get(row.place)
        if pending is not None:
            internal = row.group.internal_partition or 0
            holder = by_producer.get((CONSUMER_OFFSETS, internal, pending.producer_id or 0))
        found = _partition_of_group(lag.groups[row.group], row, moved_ms, pending, holder)
        found = found._replace(
            log_path=paths.get((row.place, row["log_broker_id"])),
            known_until_ms=min(max(newest_ms, row["newest_timestamp_ms"] or 0), at_ms),
        )
        reason, words = found.why(at_ms)
        is_waiting = bool(found.to_read or row.is_held or pending)
        since = [moved_ms, None if row.is_ahead_of_time else row["next_timestamp_ms"]]
        if pending is not None:
            since = [pending.written_ms]
        elif row.is_held and holder is not None:
            since.append(holder.started_ms)
        known = [each for each in since if each is not None]
        shown = holder if pending is not None or row.is_held else None
        yield {
            **{name: row[name] for name in _OF_LAG},
            "reason": reason,
            "readable_records": found.to_read,
            "stuck_since_ms": max(known) if known and is_waiting else None,
            "transactional_id": shown and shown.transactional_id,
            "producer_id": shown and shown.producer_id,
            "transaction_started_ms": shown and shown.started_ms,
            "transaction_timeout_ms": shown and shown.timeout_ms,
            "ends_by_itself_ms": shown and shown.ends_ms,
            "group_state": found.group_state,
            "member_count": found.members,
            "what_to_do": words,
        }
    places_of = {log.partition: log for log in views.logs if log.topic == CONSUMER_OFFSETS}
    nothing = dict.fromkeys(arrow_schema(TABLE).names)
    for key in sorted(set(groups) - {row.group for row in rows}):
        group = lag.groups[key]
        reason, words = why_without_partitions(group.protocol_type, group.members)
        if lag.missing:
            words = f"Commits may be missing: {missing_words(lag.missing)}."
        log = places_of.get(key.internal_partition)
        yield {
            **nothing,
            "cluster_id": key.cluster_id,
            "input_path": None if log is None else log.log_dir.path,
            "at_ms": lag.question.at_ms,
            "group_id": key.group_id,
            "reason": reason,
            "group_state": group.state,
            "member_count": group.members,
            "what_to_do": words,
        }


def _partition_of_group(
    group: Group,
    row: LagRow,
    moved_ms: int | None,
    pending: PendingCommit | None,
    holder: HoldingTransaction | None,
) -> PartitionOfGroup:
    to_read, behind = row["readable_records"], row["beyond_last_stable"] or 0
    stable = row["last_stable_offset"]
    if to_read is not None and behind and (row["committed_offset"] or 0) > (stable or 0):
        # It has read beyond the last stable offset: it does not wait there.
        to_read += behind
    return PartitionOfGroup(
        *row.place,
        group.group_type,
        group.state,
        group.members,
        row["commit_status"],
        row["committed_offset"],
        stable,
        to_read,
        row.is_held,
        row["below_log_start"] or 0,
        row["ahead_of_log"] or 0,
        row["damaged"] or 0,
        row["next_offset"],
        moved_ms,
        row["member_id"],
        (pending.committed_offset or 0) if pending else None,
        holder,
    )


def waiting_groups(
    views: Views, transactions: Collection[Mapping[str, Any]], as_of_ms: int | None, now_ms: int
) -> dict[tuple[str, int, int], list[str]]:
    """Return the ids of the groups that wait for open transactions, by topic, partition and
    producer id: by a commit in it, or at the last stable offset that it holds. `transactions` are
    open ones, rows of table `transaction_report`."""
    if not transactions or not any(log.topic == CONSUMER_OFFSETS for log in views.logs):
        return {}
    holders = {
        (row["topic"], row["partition"]): row["producer_id"]
        for row in transactions
        if row["is_stable_offset_holder"]
    }
    topics = frozenset(topic for topic, _ in holders)
    question = LagQuestion(
        now_ms, as_of_ms, read_committed=True, retention_ms=0, chosen=ChosenNames(topics=topics)
    )
    lag = ConsumerLag(views, question)
    rows = lag_rows_of(lag.rows.rows().table) if holders else []
    waiting = lag.rows.known.waiting if holders else lag.rows.groups_alone().waiting
    found: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for (key, _), history in commit_histories(views, waiting, lag).items():
        if history.pending is not None:
            place = CONSUMER_OFFSETS, key.internal_partition or 0
            found[*place, history.pending.producer_id or 0].add(key.group_id)
    for row in rows:
        if row.place in holders and row.is_held:
            found[*row.place, holders[row.place]].add(row.group.group_id)
    return {place: sorted(names) for place, names in found.items()}
