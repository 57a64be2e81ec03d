"""How transactions ended, and which of them hold last stable offsets. Rule: docs/format.md F216."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kafkalog.inspection.logs.missing_records import missing_words
from kafkalog.questions.transactions import TransactionSettings, transactions
from kafkalog.report.contents import ReportMoment, Row, TransactionsSection
from kafkalog.views.engine import Views

_OF_HOLDER = ("transactional_id", "outcome", "reason", "started_ms", "first_timestamp_ms")


def read_transactions(
    views: Views, topics: Sequence[str | None], at: ReportMoment, *, most: int
) -> TransactionsSection:
    """Return outcomes by topic, and the first `most` partitions that an open transaction holds
    back."""
    settings = TransactionSettings(at.now_ms, at.as_of_ms, has_ended_rows=False)
    found = transactions(views, settings)
    outcomes: Counter[tuple[str | None, str]] = Counter()
    for (topic, outcome), count in found.outcomes.items():
        outcomes[topic if topic in topics else None, outcome] += count
    holding = {_log(row): row for row in found.report if row["is_stable_offset_holder"]}
    held = sorted(
        (row for row in found.stable_offsets if (row["offsets_held_back"] or 0) > 0),
        key=lambda row: (-row["offsets_held_back"], row["topic"] or "", row["partition"]),
    )
    return TransactionsSection(
        [
            Row(shown_topic=topic, outcome=outcome, transactions=outcomes[topic, outcome])
            for topic, outcome in sorted(outcomes, key=lambda key: (key[0] or "", key[1]))
        ],
        [_holder(row, holding.get(_log(row), {})) for row in held[:most]],
        len(held),
        missing_words(found.missing) if found.missing else "",
        found.notes,
    )


def _log(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["cluster_id"], row["broker_id"], row["input_path"], row["topic"], row["partition"]


def _holder(stable: Mapping[str, Any], transaction: Mapping[str, Any]) -> Row:
    """Return a partition that is held back, with the transaction that does it."""
    producer_id = transaction.get("producer_id", stable["holder_producer_id"])
    of_transaction = {name: transaction.get(name) for name in _OF_HOLDER}
    return Row(**{**stable, **of_transaction, "producer_id": producer_id})
