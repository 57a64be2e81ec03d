"""What tasks keep of the records of `__transaction_state`. Rule: docs/format.md F216."""

from typing import Any

import pyarrow as pa

from kafkalog.columns.table_rows import table_batch
from kafkalog.coordination.groups.transactional_ids import TransactionalIds
from kafkalog.inspection.groups.transaction_states import TRANSACTION_STATE_COLUMNS, NewestStates


def state(offset: int, name: str, producer_id: int | None, said: str | None) -> dict[str, Any]:
    known = {"cluster_id": "c", "transactional_id": name, "producer_id": producer_id}
    taking = None if said is None else [{"topic": "orders", "partitions": [0]}]
    return {**known, "record_offset": offset, "state": said, "partitions": taking}


RECORDS = [
    state(0, "billing", 1, "Ongoing"),
    state(1, "orders", 2, "Ongoing"),
    state(2, "billing", 1, "CompleteCommit"),
    state(3, "billing", 7, "Empty"),
    state(4, "orders", 2, "PrepareAbort"),
    state(5, "gone", 3, "Ongoing"),
    state(6, "gone", None, None),
]


def batch(*records: dict[str, Any]) -> pa.RecordBatch:
    return table_batch("transaction_states", list(records), {}, TRANSACTION_STATE_COLUMNS)


def test_the_last_record_of_each_id_and_producer_is_kept() -> None:
    for order in (RECORDS, RECORDS[::-1]):
        batches = [batch(*order[:3]), batch(*order[3:5]), batch(*order[5:])]
        kept = [row for found in NewestStates()(iter(batches)) for row in found.to_pylist()]
        assert sorted(row["record_offset"] for row in kept) == [2, 3, 4, 5, 6]
        ids = TransactionalIds()
        for row in kept:
            ids.add(row)
        by_producer = {key[1]: row["state"] for key, row in ids.by_producer().items()}
        assert by_producer == {1: "Empty", 7: "Empty", 2: "PrepareAbort", 3: None}


def test_what_was_known_at_a_time_is_kept_beside_the_last_record() -> None:
    records = [
        {**state(offset, "billing", 1, name), "record_timestamp_ms": 100 + offset}
        for offset, name in enumerate(["Ongoing", "PrepareCommit", "CompleteCommit"])
    ]
    (found,) = NewestStates(101)(iter([batch(*records)]))
    kept = found.to_pylist()
    assert sorted(row["state"] for row in kept) == ["CompleteCommit", "PrepareCommit"]


def test_many_batches_are_compared_in_turn() -> None:
    batches = [batch(state(offset, "billing", 1, str(offset))) for offset in range(200)]
    (kept,) = NewestStates()(iter(batches))
    assert kept.column("state").to_pylist() == ["199"]
    assert list(NewestStates()(iter([]))) == []
