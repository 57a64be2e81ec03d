"""What tasks return beside the history that they make."""

from typing import Any

import pyarrow as pa
import pytest

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.group_generations import GENERATION_COLUMNS, GroupGenerations
from kafkalog.coordination.groups.lag_question import ChosenNames
from kafkalog.inspection.groups.commit_reach import LogReach
from kafkalog.questions.groups import history_summary
from kafkalog.questions.groups.history_summary import HistorySummary, ReadSummary, RowsSeen, summed
from tests.support.messages.group_records import group_record

REACH = LogReach(7, None, 0)
CHOSEN = ChosenNames(topics=frozenset({"orders", "missing"}))


def history(*events: str, topic: str = "orders") -> pa.RecordBatch:
    rows: list[dict[str, Any]] = [
        {"group_id": "g", "topic": topic, "partition": number, "event": event}
        for number, event in enumerate(events)
    ]
    return pa.RecordBatch.from_pylist(rows, arrow_schema("lag_history"))


def read(generations: int, tasks: int) -> ReadSummary:
    group = GroupGenerations()
    for offset in range(generations):
        record = group_record(2, offset, epoch=offset)
        group.add({name: record.get(name) for name in GENERATION_COLUMNS})
    return ReadSummary.of([REACH], [group], tasks)


def seen(*batches: pa.RecordBatch, reads: list[ReadSummary]) -> HistorySummary:
    rows = RowsSeen(CHOSEN)
    for batch in batches:
        rows.add(batch)
    return rows.summary(reads)


def test_rows_at_the_end_are_returned() -> None:
    first = seen(history("commit", "end"), history("tick", topic="t"), reads=[read(3, 1)])
    found = summed([first, seen(reads=[])])
    assert found.names.topics == {"orders"}
    assert found.ends is not None
    assert found.ends["partition"].to_pylist() == [1]
    assert found.reaches == [REACH]
    assert found.generations is not None
    assert len(found.generations) == 3


def test_many_generations_are_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_summary, "_FEW_ROWS", 4)
    assert read(4, tasks=1).generations is not None
    assert read(3, tasks=2).generations is None
    assert read(3, tasks=2).reaches == (REACH,)
    # Some rows say nothing about all.
    assert summed([seen(reads=[read(3, 2)]), seen(reads=[read(1, 2)])]).generations is None
