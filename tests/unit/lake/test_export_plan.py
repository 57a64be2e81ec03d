"""What an export reads for which table, run after run, and what is left when a commit fails.
Rules: F530 to F536; what a run reads of a partition: test_ingest_positions.py."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafkalog.errors import OptionError, StatePositionError
from kafkalog.lake.export_plan import (
    ExportPlan,
    PartlyCommittedError,
    plan_export,
    starting_offsets,
)
from kafkalog.lake.export_report import TopicRow, topic_rows, verdict
from kafkalog.lake.table_names import table_of, tables_of
from kafkalog.storage.reading.read_plan import LEAST_PART_BYTES
from kafkalog.testing import LogDirectory
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.options import Isolation
from kafkalog.views.planning.ingest_positions import IngestRun
from tests.support.lake.ingest_requests import EVERY_RECORD
from tests.support.lake.kept_target import KeptTarget

NOW_MS = 1_795_000_000_000
Rows = list[tuple[str, int, int]]


class Tables:
    """The targets of an output directory, each made when it is first named."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.targets: dict[str, KeptTarget] = {}

    def __call__(self, name: str) -> KeptTarget:
        return self.targets.setdefault(name, KeptTarget(self.path / name))

    def rows(self, name: str) -> Rows:
        """Topic, partition and offset of what is committed, sorted."""
        tables = [pq.read_table(self.targets[name].path / file.path) for file in self(name).files]
        rows = [row for table in tables for row in table.to_pylist()]
        return sorted((row["topic"], row["partition"], row["offset"]) for row in rows)

    def files(self) -> int:
        """How many files there are, committed or not."""
        return len([*self.path.rglob("*.parquet")])


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "tables")


@pytest.fixture
def logs(tmp_path: Path) -> LogDirectory:
    made = LogDirectory(tmp_path / "logs")
    for name in ("orders.eu", "users"):
        made.topic(name, partitions=2)
        send(made, name, 3)
    return made


def send(logs: LogDirectory, topic: str, count: int) -> None:
    for partition in (0, 1):
        logs._topics[topic].records([(b"k", b"v")] * count, partition=partition)


def planned(
    logs: LogDirectory,
    tables: Callable[[str], KeptTarget],
    request: IngestRequest = EVERY_RECORD,
    *,
    table_per_topic: bool = False,
    processes: int = 1,
) -> ExportPlan:
    options = request.options([logs.write()], "FAILFAST", "tables", now_ms=NOW_MS)
    return plan_export(
        options, request, tables, table_per_topic=table_per_topic, processes=processes
    )


def exported(plan: ExportPlan) -> tuple[IngestRun, ...]:
    return plan.commit([file for reads in plan.groups for file in plan.task.written_files(reads)])


def offsets(topic: str, *numbers: int) -> Rows:
    return [(topic, partition, offset) for partition in (0, 1) for offset in numbers]


def test_each_run_adds_what_is_new_to_one_table_of_all_topics(
    logs: LogDirectory, tables: Tables
) -> None:
    runs = exported(planned(logs, tables))
    first = [*offsets("orders.eu", 0, 1, 2), *offsets("users", 0, 1, 2)]
    assert tables.rows("ingested_records") == first
    assert topic_rows(runs) == [
        TopicRow("orders.eu", partitions=2, rows=6, offsets=6, findings=0),
        TopicRow("users", partitions=2, rows=6, offsets=6, findings=0),
    ]
    send(logs, "users", 2)
    runs = exported(planned(logs, tables))
    assert tables.rows("ingested_records") == sorted([*first, *offsets("users", 3, 4)])
    assert verdict(runs) == ["read 4 offsets of 2 partitions"]
    assert json.loads(starting_offsets(runs)) == {
        "orders.eu": {"0": 3, "1": 3},
        "users": {"0": 5, "1": 5},
    }


def test_where_nothing_is_new_nothing_is_read_or_committed(
    logs: LogDirectory, tables: Tables
) -> None:
    exported(planned(logs, tables))
    tables("ingested_records").error = AssertionError("a commit without a change")
    plan = planned(logs, tables)
    assert plan.groups == ()
    assert verdict(exported(plan)) == ["nothing is new"]


def test_a_table_for_each_topic_has_positions_of_its_own(
    logs: LogDirectory, tables: Tables
) -> None:
    exported(planned(logs, tables, replace(EVERY_RECORD, topics=("users",)), table_per_topic=True))
    assert [*tables.targets] == ["users"]
    runs = exported(planned(logs, tables, table_per_topic=True))
    assert tables.rows("orders_eu") == offsets("orders.eu", 0, 1, 2)
    assert tables.rows("users") == offsets("users", 0, 1, 2)
    assert verdict(runs) == ["read 6 offsets of 2 partitions"]
    assert {run.positions.run for run in runs} == {1, 2}
    assert {*json.loads(starting_offsets(runs))} == {"orders.eu", "users"}


def test_records_that_are_missing_before_they_are_read_are_a_finding(
    logs: LogDirectory, tables: Tables
) -> None:
    # F531
    exported(planned(logs, tables))
    send(logs, "users", 3)
    logs._topics["users"].delete_records(5, partition=0)
    runs = exported(planned(logs, tables))
    new, finding = verdict(runs)
    assert new == "read 4 offsets of 2 partitions"
    assert finding.startswith("GAP: users-0: offsets 3 to 4 were deleted before they were read")
    assert topic_rows(runs) == [TopicRow("users", partitions=2, rows=4, offsets=4, findings=1)]


def test_another_isolation_level_than_the_tables_is_refused(
    logs: LogDirectory, tables: Tables
) -> None:
    exported(planned(logs, tables))
    other = replace(EVERY_RECORD, isolation_level=Isolation.READ_UNCOMMITTED.value)
    with pytest.raises(StatePositionError, match="written with --isolation-level read_committed"):
        planned(logs, tables, other)


def test_topics_that_would_share_a_table_are_refused() -> None:
    # Kafka, too, warns of topics whose names differ in dots and underscores only.
    assert table_of("eu.page-views_2") == "eu_page_views_2"
    with pytest.raises(OptionError, match=r"--table-per-topic.*'a\.b, a_b'"):
        tables_of(["a.b", "c", "a_b"])
    with pytest.raises(OptionError, match="Orders, orders"):
        tables_of(["orders", "Orders"])
    with pytest.raises(OptionError, match="ingest-manifest"):
        tables_of(["ingest-manifest"])
    with pytest.raises(OptionError, match="orders_manifest reports the runs"):
        tables_of(["orders", "orders-manifest"])
    assert set(tables_of(["a_manifest", "_manifest"])) == {"a_manifest", "_manifest"}


def test_a_topic_is_not_added_to_the_table_of_another(logs: LogDirectory, tables: Tables) -> None:
    exported(planned(logs, tables, table_per_topic=True))
    logs.topic("orders-eu", partitions=2)
    request = replace(EVERY_RECORD, topics=("orders-eu",))
    with pytest.raises(StatePositionError, match=r"table orders_eu holds topic orders\.eu"):
        planned(logs, tables, request, table_per_topic=True)


def test_where_a_commit_fails_the_tables_after_it_stay_as_they_were(
    logs: LogDirectory, tables: Tables
) -> None:
    plan = planned(logs, tables, table_per_topic=True)
    tables("users").error = StatePositionError("another run has written meanwhile")
    with pytest.raises(PartlyCommittedError, match=r"users: another run.*before it: orders_eu"):
        exported(plan)
    assert tables.files() == len(tables("orders_eu").files)
    tables("users").error = None
    exported(planned(logs, tables, table_per_topic=True))
    assert tables.rows("orders_eu") == offsets("orders.eu", 0, 1, 2)
    assert tables.rows("users") == offsets("users", 0, 1, 2)


def test_files_of_a_commit_with_an_unknown_outcome_stay(logs: LogDirectory, tables: Tables) -> None:
    plan = planned(logs, tables, table_per_topic=True)
    tables("orders_eu").error = OSError("the connection was lost")
    with pytest.raises(OSError, match="connection was lost"):
        exported(plan)
    assert tables.files() == 1
    assert not [*tables("users").path.rglob("*.parquet")]


def test_a_large_topic_is_divided_between_processes(tmp_path: Path, tables: Tables) -> None:
    logs = LogDirectory(tmp_path / "large")
    topic, value = logs.topic("large"), bytes(1024 * 1024)
    for _ in range(5 * LEAST_PART_BYTES // len(value)):
        topic.records([(None, value)])
    assert len(planned(logs, tables, processes=4).groups) == 4
    # A part of a segment is not smaller than it is worth a task.
    assert len(planned(logs, tables, processes=64).groups) == 5


def test_few_bytes_are_one_task_and_one_file(logs: LogDirectory, tables: Tables) -> None:
    exported(planned(logs, tables, processes=8))
    assert tables.files() == 1


def test_tasks_have_one_topic_after_another(tmp_path: Path, tables: Tables) -> None:
    logs = LogDirectory(tmp_path / "logs")
    for name in ("users", "orders"):
        logs.topic(name, partitions=3).records([(b"k", b"v")], partition=2)
        logs._topics[name].records([(b"k", b"v")], partition=0)
    reads = [read for group in planned(logs, tables).groups for read in group]
    assert [(read.topic, read.partition) for read in reads] == [
        ("orders", 0), ("orders", 2), ("users", 0), ("users", 2)]  # fmt: skip
