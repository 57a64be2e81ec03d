"""Commits and the moments of a plot as events. Rules: docs/format.md F324, docs/report.md F604."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.lag_status import EventKind, HistoryMoments
from kafkalog.inspection.lag.history_commits import (
    COMMIT_MS,
    COMMITTED_OFFSET,
    EVENT_MS,
    HISTORY_COLUMNS,
    IS_DELETION,
    KEY,
    CommitBlocks,
    commits_by_log,
)
from kafkalog.inspection.lag.lag_events import EventPlan, OrderedCommits

DELETION, SAMPLE, COMMIT, TICK = EventKind
# Ten ends, ten seconds apart.
HELD_MS = 90_000
# Kind, moment and the moment that is asked about, in seconds; the number of the commit.
Event = tuple[EventKind, float, float, int]
# When a commit took effect and its own time in seconds, and whether it is a deletion.
GivenCommit = tuple[float, float, bool]


def commit(group: str, place: int, at_ms: int, offset: int | None, **more: Any) -> dict[str, Any]:
    key = {"internal_partition": 0, "group_id": group, "topic": "a", "partition": 0}
    when = {"effect": "applied", "effective_offset": place, "commit_timestamp_ms": at_ms}
    return {**key, **when, "committed_offset": offset, "is_tombstone": offset is None, **more}


def events_of(rows: list[dict[str, Any]], moments: HistoryMoments) -> dict[str, list[Any]]:
    """The kind, moment, offset and whether it is the end, of the events of each group but for
    samples."""
    commits = pa.RecordBatch.from_pylist(
        rows, schema=arrow_schema("offset_commits", HISTORY_COLUMNS)
    )
    blocks = CommitBlocks(moments.until_ms, 1)
    given = [block for _, block in (*blocks.add(commits), *blocks.last())]
    (log,) = commits_by_log(given)
    numbers, keys = log.commits.numbers, log.commits.keys["group_id"].to_pylist()
    ordered = OrderedCommits(
        log.is_last, numbers[IS_DELETION] != 0, numbers[EVENT_MS], numbers[COMMIT_MS]
    )
    plan = EventPlan(ordered, moments, BurrowSettings())
    made = plan.events(0, plan.count)
    found = defaultdict(list)
    for row, kind, moment, _, is_end in zip(*(column.tolist() for column in made), strict=True):
        if kind != SAMPLE:
            offset = None if kind == DELETION else int(numbers[COMMITTED_OFFSET, row])
            found[keys[numbers[KEY, row]]].append((kind, moment, offset, is_end))
    return found


def test_a_commit_has_ticks_until_the_next_one_and_the_last_one_until_the_end() -> None:
    rows = [
        *(commit("g", 9, 250, 70), commit("g", 3, 100, 7), commit("g", 4, 120, 8)),
        *(commit("gone", 5, 190, 1), commit("gone", 6, 210, None), commit("g", 10, 1000, 99)),
        *(commit("g", 7, 130, 5, effect="aborted"), commit("none", 8, 290, -1)),
    ]
    assert events_of(rows, HistoryMoments(0, 300, ends_now=True, every_ms=100)) == {
        # A multiple of 100 belongs to the commit in effect then; the end is one of its own.
        "g": [
            *((COMMIT, 100, 7, False), (TICK, 100, 7, False), (COMMIT, 120, 8, False)),
            *((TICK, 200, 8, False), (COMMIT, 250, 70, False), (TICK, 300, 70, True)),
        ],
        "gone": [(COMMIT, 190, 1, False), (TICK, 200, 1, False), (DELETION, 210, None, False)],
        "none": [(DELETION, 290, None, False)],
    }


def events(
    moments: HistoryMoments, *commits: GivenCommit, burrow: BurrowSettings | None = None
) -> list[Event]:
    """The events of one partition's commits, made three at a time."""
    effect, own, deleted = zip(*commits, strict=True)
    ordered = OrderedCommits(
        np.arange(1, len(commits) + 1) == len(commits),
        np.array(deleted),
        np.array([round(second * 1000) for second in effect]),
        np.array([round(second * 1000) for second in own]),
    )
    plan = EventPlan(ordered, moments, burrow or BurrowSettings())
    found = [plan.events(begin, begin + 3) for begin in range(0, plan.count, 3)]
    return [
        (EventKind(kind), moment / 1000, question / 1000, row)
        for each in found
        for row, kind, moment, question in zip(
            *(column.tolist() for column in each[:4]), strict=True
        )
    ]


def at(*seconds: float, deleted: float | None = None) -> list[GivenCommit]:
    return [(second, second, second == deleted) for second in seconds]


def test_a_row_for_each_commit_and_one_for_the_end() -> None:
    # F330: the sample is a question about an older moment, and not about the commit.
    assert events(HistoryMoments(0, 500_000, ends_now=False), *at(100, 101)) == [
        (COMMIT, 100, 100, 0),
        (COMMIT, 101, 101, 1),
        (SAMPLE, 500, 410, 1),
        (TICK, 500, 500, 1),
    ]


def test_a_deleted_commit_has_no_end() -> None:
    # F302, F324
    moments = HistoryMoments(0, 500_000, ends_now=False)
    assert events(moments, *at(100, 101, deleted=101)) == [
        (COMMIT, 100, 100, 0),
        (DELETION, 101, 101, 1),
    ]


def test_ticks_are_multiples_with_the_commit_in_effect() -> None:
    moments = HistoryMoments(110_000, 140_000, ends_now=False, every_ms=10_000)
    found = events(moments, *at(100, 120, 125))
    ticks = [(moment, row) for kind, moment, _, row in found if kind is TICK]
    assert ticks == [(110, 0), (120, 1), (130, 2), (140, 2)]
    # The sample of a moment comes before a commit of the same moment.
    assert [kind for kind, moment, _, _ in found if moment == 120] == [SAMPLE, COMMIT, TICK]


def test_a_commit_that_took_effect_later_is_compared_with_older_ends() -> None:
    # F300, F331: a transaction's marker came ten seconds after the commit.
    found = events(HistoryMoments(0, 500_000, ends_now=False), (110, 100, False))
    assert found[:2] == [(SAMPLE, 110, 110 - HELD_MS / 1000, 0), (COMMIT, 110, 110, 0)]


@pytest.mark.parametrize("until_ms", [100_000, 200_000])
def test_with_a_least_distance_all_commits_are(until_ms: int) -> None:
    # F330: then the time of a commit held can be older than the commit.
    moments = HistoryMoments(0, until_ms, ends_now=True)
    found = events(moments, *at(100), burrow=BurrowSettings(min_distance_s=5))
    kinds = [kind for kind, *_ in found]
    in_order = (
        [SAMPLE, SAMPLE, COMMIT, TICK] if until_ms == 100_000 else [SAMPLE, COMMIT, SAMPLE, TICK]
    )
    assert kinds == in_order
