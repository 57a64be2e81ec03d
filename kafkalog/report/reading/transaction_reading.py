"""How transactions ended, and which of them hold last stable offsets. Rule: docs/format.md F216."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.transactional_ids import TransactionalIds
from kafkalog.inspection.groups.transaction_states import open_transaction_rule
from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.report.contents import Row, TransactionsSection
from kafkalog.report.reading.views import Batches, Views, as_rows, rows
from kafkalog.storage.names import TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_COLUMNS = (
    *_LOG,
    *("producer_id", "outcome", "first_timestamp_ms", "last_timestamp_ms", "duration_ms"),
)
_SCHEMA = arrow_schema("transactions", _COLUMNS).append(pa.field("transactions", pa.int64()))
_STABLE = (*_LOG, "offsets_held_back", "last_stable_offset", "holder_producer_id")
_STATES = (
    *("cluster_id", "record_offset", "is_tombstone", "transactional_id", "state"),
    *("producer_id", "partitions", "started_ms"),
)
# `transaction.max.timeout.ms` of a broker, by default.
_LONGEST_MS = 15 * 60_000


def read_transactions(
    views: Views,
    topics: Sequence[str | None],
    logs: Sequence[PartitionLog],
    *,
    at_ms: int,
    most: int,
) -> TransactionsSection:
    """Return outcomes by topic, and the first `most` partitions that an open transaction holds
    back. `logs` are those of the views."""
    as_of = {"asOf": str(at_ms)}
    ids = TransactionalIds()
    if any(log.topic == TRANSACTION_STATE for log in logs):
        of_states = {"subscribe": TRANSACTION_STATE, **as_of}
        for record in rows(views, "transaction_states", _STATES, **of_states):
            ids.add(vars(record))
    by_producer = ids.by_producer()
    stable = rows(views, "stable_offsets", _STABLE, **as_of)
    holders = {_log(row): row.holder_producer_id for row in stable}
    rule, missing = open_transaction_rule(logs, at_ms, _LONGEST_MS)
    outcomes: Counter[tuple[str | None, str]] = Counter()
    holding: dict[tuple[object, ...], Row] = {}
    for row in as_rows(views.table("transactions", _COLUMNS, _ended_counted, _SCHEMA, **as_of)):
        state = by_producer.get((row.cluster_id, row.producer_id))
        if row.outcome == "open":
            judged = rule.judge(vars(row), state, holders.get(_log(row)))._asdict()
            row = Row(**(vars(row) | judged), transactional_id=state and state["transactional_id"])
            if row.is_stable_offset_holder:
                holding[_log(row)] = row
        outcomes[row.topic if row.topic in topics else None, row.outcome] += row.transactions
    held = sorted(
        (row for row in stable if (row.offsets_held_back or 0) > 0),
        key=lambda row: (-row.offsets_held_back, row.topic or "", row.partition),
    )
    return TransactionsSection(
        [
            Row(shown_topic=topic, outcome=outcome, transactions=outcomes[topic, outcome])
            for topic, outcome in sorted(outcomes, key=lambda key: (key[0] or "", key[1]))
        ],
        [_holder(row, holding.get(_log(row))) for row in held[:most]],
        len(held),
        missing_words(missing) if missing else "",
    )


def _log(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _LOG)


def _ended_counted(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the open transactions, and by topic and outcome how many have ended."""
    ended: Counter[tuple[str | None, str]] = Counter()
    for batch in batches:
        is_open = pc.equal(batch.column("outcome"), "open")
        found = batch.filter(is_open)
        if len(found):
            counts = pa.array([1] * len(found), pa.int64())
            yield pa.RecordBatch.from_arrays([*found.columns, counts], schema=_SCHEMA)
        rest = batch.filter(pc.invert(is_open))
        ended.update(
            zip(rest.column("topic").to_pylist(), rest.column("outcome").to_pylist(), strict=True)
        )
    counted = [
        dict.fromkeys(_SCHEMA.names)
        | {"topic": topic, "outcome": outcome, "transactions": ended[topic, outcome]}
        for topic, outcome in ended
    ]
    if counted:
        yield pa.RecordBatch.from_pylist(counted, schema=_SCHEMA)


def _holder(stable: Row, transaction: Row | None) -> Row:
    """Return a partition that is held back, with the transaction that does it."""
    names = ("transactional_id", "outcome", "reason", "started_ms", "first_timestamp_ms")
    of_transaction = {name: transaction and transaction[name] for name in names}
    producer_id = transaction.producer_id if transaction else stable.holder_producer_id
    return Row(**(vars(stable) | of_transaction), producer_id=producer_id)
