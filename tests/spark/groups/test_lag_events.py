"""Which moments are asked about a group's commits: of every commit, every tick, and the end."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalog.analysis.lag.lag_history import lag_events
from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.commit_events import EventKind, HistoryMoments
from tests.support.messages.group_records import commit, frame

DELETION, SAMPLE, COMMIT, TICK = EventKind
# Ten ends, ten seconds apart.
HELD_MS = 90_000
Event = tuple[EventKind, str | None, int, int, int | None]


def events(
    spark: SparkSession,
    moments: HistoryMoments,
    *rows: dict[str, Any],
    burrow: BurrowSettings | None = None,
) -> list[Event]:
    """Kind, event, moment, the moment that is asked about, committed offset."""
    found = lag_events(frame(spark, "offset_commits", *rows), moments, burrow or BurrowSettings())
    ordered = found.orderBy("effective_offset", "moment_ms", "kind").collect()
    return [
        (EventKind(row.kind), row.event, row.moment_ms, row.question_ms, row.committed_offset)
        for row in ordered
    ]


def test_a_row_for_each_commit_and_one_for_the_end(spark: SparkSession) -> None:
    # F330: the sample is a question about an older moment, and not about the commit.
    moments = HistoryMoments(0, 500_000, ends_now=False)
    assert events(spark, moments, commit(100, 5), commit(101, 6)) == [
        (COMMIT, "commit", 100_000, 100_000, 5),
        (COMMIT, "commit", 101_000, 101_000, 6),
        (SAMPLE, None, 500_000, 500_000 - HELD_MS, None),
        (TICK, "end", 500_000, 500_000, 6),
    ]


@pytest.mark.deep
def test_what_came_after_the_end_and_what_had_no_effect_is_left_out(spark: SparkSession) -> None:
    # F300
    moments = HistoryMoments(0, 100_500, ends_now=False)
    aborted = commit(99, 4, effect="aborted", effective_offset=None, effective_timestamp_ms=None)
    found = events(spark, moments, aborted, commit(100, 5), commit(101, 6))
    assert [row for row in found if row[0] is not SAMPLE] == [
        (COMMIT, "commit", 100_000, 100_000, 5),
        (TICK, "end", 100_500, 100_500, 5),
    ]


@pytest.mark.deep
@pytest.mark.parametrize("offset", [None, -1])
def test_a_deleted_commit_has_no_end(spark: SparkSession, offset: int | None) -> None:
    # F302, F324
    moments = HistoryMoments(0, 500_000, ends_now=False)
    assert events(spark, moments, commit(100, 5), commit(101, offset)) == [
        (COMMIT, "commit", 100_000, 100_000, 5),
        (DELETION, None, 101_000, 101_000, None),
    ]


@pytest.mark.deep
def test_ticks_are_multiples_with_the_commit_in_effect(spark: SparkSession) -> None:
    moments = HistoryMoments(110_000, 140_000, ends_now=False, every_ms=10_000)
    found = events(spark, moments, commit(100, 5), commit(120, 6), commit(125, 7))
    ticks = [(event, moment, offset) for kind, event, moment, _, offset in found if kind is TICK]
    assert ticks == [
        ("tick", 110_000, 5),
        ("tick", 120_000, 6),
        ("tick", 130_000, 7),
        ("end", 140_000, 7),
    ]
    assert [row[1] for row in found if row[0] is COMMIT] == [None] * 3


@pytest.mark.deep
def test_a_commit_that_took_effect_later_is_compared_with_older_ends(spark: SparkSession) -> None:
    # F300, F331: a transaction's marker came ten seconds after the commit.
    moments = HistoryMoments(0, 500_000, ends_now=False)
    late = commit(100, 5, effective_offset=103, effective_timestamp_ms=110_000)
    assert events(spark, moments, late)[:2] == [
        (SAMPLE, None, 110_000, 110_000 - HELD_MS, None),
        (COMMIT, "commit", 110_000, 110_000, 5),
    ]


@pytest.mark.deep
def test_with_a_least_distance_all_commits_are(spark: SparkSession) -> None:
    # F330: then the time of a commit held can be older than the commit.
    moments = HistoryMoments(0, 100_000, ends_now=True)
    burrow = BurrowSettings(min_distance_s=5)
    found = events(spark, moments, commit(100, 5), burrow=burrow)
    assert [row[0] for row in found] == [SAMPLE, SAMPLE, COMMIT, TICK]
