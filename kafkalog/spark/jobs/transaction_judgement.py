"""Transactions with what their coordinators know, judged in the tasks that read them. Rule:
docs/format.md F216."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import of_values
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.transactional_ids import (
    OpenTransaction,
    OpenTransactionRule,
    State,
)

REPORT = "transaction_report"
_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def stable_offset_holders(
    stable_offsets: Iterable[Mapping[str, Any]],
) -> dict[tuple[object, ...], int | None]:
    """Return by log which producer holds the last stable offset, from rows of view
    `stable_offsets`."""
    return {_log(row): row["holder_producer_id"] for row in stable_offsets}


@dataclass(frozen=True, slots=True)
class TransactionJudging:
    """Makes rows of schemas/tables/transaction_report.json of a task's rows of view `transactions`:
    adds what coordinators know of their producers (`TransactionalIds.by_producer`), and decides on
    open ones; `holders` are those of last stable offsets."""

    rule: OpenTransactionRule
    by_producer: Mapping[tuple[str | None, int], State]
    holders: Mapping[tuple[object, ...], int | None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        schema = arrow_schema(REPORT)
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns |= self._added(batch, schema)
            yield pa.RecordBatch.from_arrays(
                [columns[name] for name in schema.names], schema=schema
            )

    def _added(self, batch: pa.RecordBatch, schema: pa.Schema) -> dict[str, pa.Array]:
        """Return the columns that the view lacks, and those that the rule decides."""
        clusters, producers = batch["cluster_id"].to_pylist(), batch["producer_id"].to_pylist()
        states = [self.by_producer.get(key) for key in zip(clusters, producers, strict=True)]
        is_open = pc.equal(batch["outcome"], "open")
        open_rows = batch.filter(is_open).to_pylist()
        judged = [
            self.rule.judge(row, state, self.holders.get(_log(row)))
            for row, state in zip(open_rows, compress(states, is_open.to_pylist()), strict=True)
        ]
        columns: dict[str, Sequence[object]] = {
            "transactional_id": [state and state["transactional_id"] for state in states],
            "transaction_state": [state and state["state"] for state in states],
            "at_ms": [self.rule.at_ms] * len(states),
            "is_stable_offset_holder": [False] * len(states),
            **dict.fromkeys(("reason", "started_ms"), [None] * len(states)),
        }
        arrays = {
            name: of_values(values, schema.field(name).type) for name, values in columns.items()
        }
        for number, name in enumerate(OpenTransaction._fields):
            decided = of_values([row[number] for row in judged], schema.field(name).type)
            before = arrays[name] if name in arrays else batch[name]
            arrays[name] = pc.replace_with_mask(before, is_open, decided)
        return arrays


def _log(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in _LOG)
