"""Commits and the moments of a plot as events. Rules: docs/format.md F324, docs/report.md F604."""

from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.commit_events import EventKind, HistoryMoments
from kafkalog.inspection.lag.lag_events import EVENT_COLUMNS, LOG_PATH, lag_events

COMMIT, TICK, DELETION = EventKind.COMMIT, EventKind.TICK, EventKind.DELETION


def commit(group: str, place: int, at_ms: int, offset: int | None, **more: Any) -> dict[str, Any]:
    key = {"internal_partition": 0, "group_id": group, "topic": "a", "partition": 0}
    when = {"effect": "applied", "effective_offset": place, "commit_timestamp_ms": at_ms}
    return {**key, **when, "committed_offset": offset, "is_tombstone": offset is None, **more}


def test_a_commit_has_ticks_until_the_next_one_and_the_last_one_until_the_end() -> None:
    rows = [
        *(commit("g", 9, 250, 70), commit("g", 3, 100, 7), commit("g", 4, 120, 8)),
        *(commit("gone", 5, 190, 1), commit("gone", 6, 210, None), commit("g", 10, 1000, 99)),
        *(commit("g", 7, 130, 5, effect="aborted"), commit("none", 8, 290, -1)),
    ]
    commits = pa.Table.from_pylist(rows, schema=arrow_schema("offset_commits", EVENT_COLUMNS))
    moments = HistoryMoments(0, 300, ends_now=True, every_ms=100)
    found = lag_events(commits, moments, {("a", 0): "/logs/a-0"}).to_pylist()
    events = {
        group: [
            (row["kind"], row["moment_ms"], row["committed_offset"], row["is_now"])
            for row in found
            if row["group_id"] == group
        ]
        for group in ("g", "gone", "none")
    }
    assert events == {
        # A multiple of 100 belongs to the commit in effect then; the end is one of its own.
        "g": [
            *((COMMIT, 100, 7, False), (TICK, 100, 7, False), (COMMIT, 120, 8, False)),
            *((TICK, 200, 8, False), (COMMIT, 250, 70, False), (TICK, 300, 70, True)),
        ],
        "gone": [(COMMIT, 190, 1, False), (TICK, 200, 1, False), (DELETION, 210, None, False)],
        "none": [(DELETION, 290, None, False)],
    }
    assert {row[LOG_PATH] for row in found} == {"/logs/a-0"}
