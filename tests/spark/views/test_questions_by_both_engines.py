"""Each question, asked by the processes of a machine and by Spark's tasks: the same tables."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalog.coordination.groups.lag_question import LagHistoryQuestion, LagQuestion
from kafkalog.coordination.groups.lag_status import HistoryMoments
from kafkalog.lake.state.state_plan import plan_state
from kafkalog.questions.checks import checks
from kafkalog.questions.compaction import CompactionRequest, compaction
from kafkalog.questions.groups.history_summary import HistorySummary, ReadSummary
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.questions.groups.lag_history import LagHistory
from kafkalog.questions.recovery import RecoveryRequest, recovery
from kafkalog.questions.retention import RetentionRequest, retention
from kafkalog.questions.state import State
from kafkalog.questions.transactions import TransactionSettings, transactions
from kafkalog.spark.jobs import spark_views
from kafkalog.spark.jobs.spark_views import SparkViews
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import LocalViews, Views
from kafkalog.views.options.state_options import StateRequest
from kafkalog.views.planning import shared_reads
from kafkalog.views.planning.state_sources import found_sources
from kafkalog.views.shared_views import JoinedParts, Numbered, PartRows
from tests.support.repository import EXAMPLES, ROOT, Unpack

AT_MS = 1_795_000_000_000
# A millisecond before a marker of shop.tx-0.
PAST_MS = 1_795_246_867_192
# After the groups' last commits.
NEXT_WEEK_MS = AT_MS + 7 * 86_400_000
PATHS = [str(ROOT / "examples" / "log-dirs" / "kafka-4.4")]


def of_transactions(views: Views) -> dict[str, Any]:
    found = transactions(views, TransactionSettings(AT_MS))
    counted = transactions(views, TransactionSettings(AT_MS, has_ended_rows=False))
    assert found.outcomes == counted.outcomes
    tables = {"report": found.report, "stable": found.stable_offsets, "counted": counted.report}
    return {**{name: in_order(rows) for name, rows in tables.items()}, "words": found.words()}


def of_past_transactions(views: Views) -> dict[str, Any]:
    settings = TransactionSettings(AT_MS, PAST_MS)
    found = transactions(views, settings)
    assert found.totals["open"] > 0
    tables = {"report": found.report, "stable": found.stable_offsets}
    return {**{name: in_order(rows) for name, rows in tables.items()}, "words": found.words()}


def of_compaction(views: Views) -> dict[str, Any]:
    found = compaction(views, CompactionRequest(AT_MS))
    assert not found.report.is_empty
    tables = {"report": found.report, "findings": found.findings}
    return {**{name: in_order(rows) for name, rows in tables.items()}, "words": found.words()}


def of_checks(views: Views) -> dict[str, Any]:
    found = checks(views, with_indexes=True)
    tables = {"report": found.report, "faults": found.faults}
    findings = sorted(found.findings, key=str)
    return {**{name: in_order(rows) for name, rows in tables.items()}, "findings": findings}


def of_recovery(views: Views) -> dict[str, Any]:
    found, sequences = recovery(views, RecoveryRequest("unclean", 4096, AT_MS))
    assert found.plan
    plan = in_order(found.plan)
    return {"plan": plan, "sequences": in_order(sequences), "words": found.totals.words()}


def of_retention(views: Views) -> dict[str, Any]:
    found = retention(views, RetentionRequest(AT_MS))
    assert not found.rows.is_empty
    return {"rows": in_order(found.rows), "topics": found.topics, "words": found.words()}


def of_lag_history(views: Views) -> dict[str, Any]:
    settings = LagHistoryQuestion(NEXT_WEEK_MS, HistoryMoments(0, NEXT_WEEK_MS, True, None))
    history = LagHistory(views, settings)
    rows = history.rows.rows()
    assert not rows.is_empty
    counted = LagHistory(views, settings)
    counted.rows.counted()
    assert counted.words() == history.words()
    tables = {"rows": rows, "generations": history.rows.generations()}
    found = {name: in_order(each) for name, each in tables.items()}
    return {**found, "statuses": history.statuses, "words": history.words()}


def of_many_generations(views: Views) -> dict[str, Any]:
    """As where there are too many for tasks to return them."""
    history = LagHistory(
        views, LagHistoryQuestion(NEXT_WEEK_MS, HistoryMoments(0, NEXT_WEEK_MS, True, None))
    )
    history.rows.counted()
    few = in_order(history.rows.generations())
    assert few
    history.rows.summary = HistorySummary(reads=[ReadSummary((), None)])
    assert in_order(history.rows.generations()) == few
    return {"generations": few}


def of_lag(views: Views) -> dict[str, Any]:
    settings = LagQuestion(NEXT_WEEK_MS, read_committed=True)
    lag = ConsumerLag(views, settings, show=5, with_groups=True)
    rows = in_order(lag.rows.rows())
    assert rows
    assert lag.groups
    alone = lag.rows.groups_alone()
    assert {group.key: group for group in alone.groups} == lag.groups
    return {
        "rows": rows,
        "groups": lag.groups,
        "totals": lag.totals,
        "reach": lag.reaches,
        "words": lag.words(),
        "most": lag.most_behind,
    }


def of_state(views: Views) -> dict[str, Any]:
    rows, partitions, words = state_of(views)
    assert rows
    with pytest.MonkeyPatch.context() as patch:
        # Several tasks read a partition, and pass its keys on by buckets.
        small = partial(plan_state, most_keys=100, least_bytes=1)
        patch.setattr("kafkalog.questions.state.plan_state", small)
        assert state_of(views) == (rows, partitions, words)
    return {"rows": rows, "partitions": partitions, "words": words}


def state_of(views: Views) -> tuple[list[Any], list[Any], list[str]]:
    request = StateRequest((), "shop.compact", "read_committed", "highWatermark", None, (), True)
    options = request.options(views.log_dirs, "PERMISSIVE", now_ms=NEXT_WEEK_MS)
    found = State(views, request, "PERMISSIVE", found_sources(options))
    return in_order(found.rows()), in_order(found.partitions), found.words()


def in_order(rows: Any) -> list[dict[str, Any]]:
    """Tasks of Spark end in any order."""
    return sorted(rows, key=lambda row: str([*row.values()]))


@pytest.mark.parametrize(
    "question",
    [
        of_transactions,
        of_past_transactions,
        of_compaction,
        of_retention,
        of_checks,
        of_recovery,
        of_lag_history,
        of_many_generations,
        of_lag,
        of_state,
    ],
)
def test_both_engines_give_the_same_tables(
    spark: SparkSession, question: Callable[[Views], dict[str, Any]]
) -> None:
    logs = find_partitions(PATHS, strict=False)
    by_tasks = question(SparkViews(spark, PATHS, logs, {"mode": "PERMISSIVE"}))
    assert by_tasks == question(LocalViews(PATHS, logs, 2))


@pytest.mark.parametrize(("example", "is_sound"), [("kafka-4.4", True), ("damaged", False)])
def test_tasks_divide_segments_as_processes_do(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, example: str, *, is_sound: bool
) -> None:
    # F1323: rows are those of one process, which divides nothing.
    found: list[PartRows] = []

    def noted(joined: JoinedParts, part: PartRows) -> Iterator[Numbered]:
        found.append(part)
        return add(joined, part)

    add = JoinedParts.add
    monkeypatch.setattr(JoinedParts, "add", noted)
    monkeypatch.setattr(shared_reads, "LEAST_PART_BYTES", 1)
    monkeypatch.setattr(spark_views, "_PARTS_EACH", 50)
    paths = [str(EXAMPLES / example)]
    logs = find_partitions(paths, strict=False)
    undivided = of_checks(LocalViews(paths, logs, 1))
    assert not found
    assert of_checks(SparkViews(spark, paths, logs, {"mode": "PERMISSIVE"})) == undivided
    assert any((part.sound is not None) is is_sound for part in found)
    assert len({part.place for part in found}) == len(found)


@pytest.mark.deep
def test_both_engines_read_the_copies_that_know_most_of_a_past_time(
    spark: SparkSession, unpacked: Unpack
) -> None:
    # F1294
    nodes = sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("node*/data")))
    logs, settings = find_partitions(nodes), TransactionSettings(NEXT_WEEK_MS, 1_795_636_121_000)

    def asked(views: Views) -> dict[str, Any]:
        found = transactions(views, settings)
        assert any("read from the copies" in note for note in found.notes)
        return {"report": in_order(found.report), "notes": [*found.notes]}

    assert asked(SparkViews(spark, nodes, logs)) == asked(LocalViews(nodes, logs, 2))
