"""Transactions in logs, with the names and states that their coordinators have for them.

Rule: docs/format.md F216.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.command_line.terminal import print_note
from kafkalog.command_line.views import plain_rows, reduced_view
from kafkalog.coordination.groups.transactional_ids import (
    State,
    TransactionalIds,
    transaction_words,
)
from kafkalog.inspection.groups.transaction_states import open_transaction_rule
from kafkalog.storage.log_dir.absent_coordinators import absent_coordinators
from kafkalog.storage.names import TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.local_views import cluster_metadata, view_options
from kafkalog.words import first_names

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_TRANSACTION_COLUMNS = (
    *_LOG,
    *("producer_id", "producer_epoch", "outcome", "first_offset", "last_offset", "records"),
    *("first_timestamp_ms", "last_timestamp_ms", "duration_ms", "coordinator_epoch"),
)
_STABLE_COLUMNS = (
    *_LOG,
    *("last_stable_offset", "high_watermark", "end_offset", "offsets_held_back"),
    *("open_transactions", "holder_producer_id", "holder_first_offset"),
    "holder_last_timestamp_ms",
)
_STATE_COLUMNS = (
    *("cluster_id", "internal_partition", "record_offset", "is_tombstone", "transactional_id"),
    *("state", "producer_id", "producer_epoch", "timeout_ms", "partitions", "started_ms"),
)
# The most absent partitions that are named.
_MOST_ABSENT = 5
_NOT_KNOWN = "transactions unknown to the coordinators here are not called hanging"

TransactionRow = dict[str, Any]


@dataclass(frozen=True)
class TransactionRows:
    """Transactions as rows of view `transactions` with transactional_id, transaction_state, reason,
    started_ms and is_stable_offset_holder, an open one's outcome being hanging where no coordinator
    will end it; rows of view `stable_offsets` with holder_transactional_id; what coordinators know
    of transactional ids; and who they are, by the partition of `__transaction_state`."""

    transactions: list[TransactionRow] = field(default_factory=list)
    stable_offsets: list[TransactionRow] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    coordinators: dict[int, int] = field(default_factory=dict)

    def words(self) -> str:
        """Return one line that sums them up."""
        held_back = sum(row["offsets_held_back"] > 0 for row in self.stable_offsets)
        return transaction_words(Counter(row["outcome"] for row in self.transactions), held_back)


def transaction_rows(
    log_dirs: Sequence[str],
    logs: list[PartitionLog],
    others: list[PartitionLog],
    *,
    at_ms: int,
    longest_ms: int,
    processes: int,
) -> TransactionRows:
    """Return the transactions of these logs, judged by what coordinators' logs say, which are among
    the `others` under the paths: if not all of their partitions are, none is called hanging because
    no coordinator knows it. What they lack is noted for the end of the run."""
    states_logs = [log for log in others if log.topic == TRANSACTION_STATE]

    def rows(
        view: str, columns: tuple[str, ...], found: list[PartitionLog]
    ) -> list[TransactionRow]:
        options = view_options(log_dirs, view, asOf=str(at_ms))
        return list(reduced_view(options, columns, plain_rows, processes=processes, found=found))

    stable_offsets = rows("stable_offsets", _STABLE_COLUMNS, logs)
    ids = _transactional_ids(log_dirs, states_logs, processes)
    by_producer = ids.by_producer()
    for row in stable_offsets:
        holder = by_producer.get((row["cluster_id"], row["holder_producer_id"]))
        row["holder_transactional_id"] = holder and holder["transactional_id"]
    rule, _ = open_transaction_rule(others, at_ms, longest_ms)
    holders = {_log(row): row["holder_producer_id"] for row in stable_offsets}
    transactions = rows("transactions", _TRANSACTION_COLUMNS, logs)
    for row in transactions:
        state = by_producer.get((row["cluster_id"], row["producer_id"]))
        row["transactional_id"] = state and state["transactional_id"]
        row["transaction_state"] = state and state["state"]
        row["reason"], row["started_ms"], row["is_stable_offset_holder"] = None, None, False
        if row["outcome"] == "open":
            row |= rule.judge(row, state, holders.get(_log(row)))._asdict()
    if logs:
        _tell_absent(absent_coordinators(others))
    metadata = cluster_metadata(log_dirs, others, None)
    return TransactionRows(
        transactions, stable_offsets, ids.states(), metadata.leaders_of(TRANSACTION_STATE)
    )


def _tell_absent(absent: Mapping[str | None, Sequence[int]]) -> None:
    if None in absent and len(absent) > 1:
        print_note(f"not all log directories name their cluster, in meta.properties: {_NOT_KNOWN}")
    elif absent:
        found = [f"{TRANSACTION_STATE}-{each}" for numbers in absent.values() for each in numbers]
        print_note(f"missing: {first_names(found, _MOST_ABSENT)}: {_NOT_KNOWN}")


def _transactional_ids(
    log_dirs: Sequence[str], logs: list[PartitionLog], processes: int
) -> TransactionalIds:
    ids = TransactionalIds()
    if logs:
        options = view_options(log_dirs, "transaction_states", subscribe=TRANSACTION_STATE)
        found = reduced_view(options, _STATE_COLUMNS, plain_rows, processes=processes, found=logs)
        for record in found:
            ids.add(record)
    return ids


def _log(row: TransactionRow) -> tuple[object, ...]:
    return tuple(row[name] for name in _LOG)
