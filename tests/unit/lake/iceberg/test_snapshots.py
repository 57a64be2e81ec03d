"""Commits to an Iceberg table that others write to, and runs that are killed. Rules: F530, F661."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitStateUnknownException

from kafkalog.errors import StatePositionError
from kafkalog.lake.iceberg import iceberg_table, snapshots
from kafkalog.lake.iceberg.iceberg_maintenance import leftover_files
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from tests.support.forks import killed_at
from tests.support.lake.exports import exported, planned_run, sorted_rows, view_rows, written_files
from tests.support.lake.iceberg_tables import (
    committed_at_once,
    data_files,
    manifest_ranges,
    rewritten_by_another_engine,
    scanned,
)
from tests.support.repository import SHOP

FIRST_OFFSETS: dict[str, Any] = {
    "subscribe": "orders",
    "endingOffsets": json.dumps({"orders": {"0": 50, "1": 7, "2": 8}}),
}
_AFTER_ALL_MS = 4_102_444_800_000


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    tables: list[IcebergTable] = []

    def table() -> IcebergTable:
        tables.append(IcebergTable(output_dir=str(tmp_path)))
        return tables[-1]

    yield table
    for each in tables:
        each.catalog.close()


Opened = Callable[[], IcebergTable]


@pytest.mark.parametrize("is_new", [True, False])
def test_of_two_runs_one_after_another_from_the_same_positions_the_second_changes_nothing(
    is_new: bool, opened: Opened, tmp_path: Path
) -> None:
    if not is_new:
        exported(opened(), [SHOP], **FIRST_OFFSETS)
    late = opened()
    run = planned_run(late, [SHOP])
    files = written_files(late, [SHOP], run)
    exported(opened(), [SHOP])
    with pytest.raises(StatePositionError, match=r"kafkalog.ingested_records: another run has wri"):
        late.commit(files, run)
    assert sorted_rows(scanned(late)) == view_rows([SHOP])
    assert leftover_files(late, _AFTER_ALL_MS) == []
    assert {row["ingest_run"] for row in manifest_ranges(late)} == {1} if is_new else {1, 2}


@pytest.mark.parametrize("is_new", [True, False])
def test_of_commits_at_once_exactly_one_is_done(
    is_new: bool, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_new:
        exported(opened(), [SHOP], **FIRST_OFFSETS)
    tables = [opened() for _ in range(4)]
    outcomes = committed_at_once(tables, [SHOP], monkeypatch)
    refused = "another run has written meanwhile, this one has written nothing: run it again"
    assert sorted(outcomes) == [refused, refused, refused, "done"]
    assert sorted_rows(scanned(tables[0])) == view_rows([SHOP])
    assert leftover_files(tables[0], _AFTER_ALL_MS) == []
    assert len(manifest_ranges(tables[0])) == len(
        {_place(row) for row in manifest_ranges(tables[0])}
    )


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["ingest_run"], row["topic"], row["partition"]


def test_a_compaction_of_another_engine_meanwhile_is_no_obstacle(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(opened(), [SHOP], **FIRST_OFFSETS)
    table = opened()
    run = planned_run(table, [SHOP])
    files = written_files(table, [SHOP], run)
    commit, times = snapshots.commit, []

    def after_another(loaded: Any, *rest: Any) -> None:
        times.append(loaded.current_snapshot().snapshot_id)
        if len(times) == 1:
            rewritten_by_another_engine(opened().existing())
        commit(loaded, *rest)

    monkeypatch.setattr(iceberg_table, "commit", after_another)
    table.commit(files, run)
    # The first attempt was made on the snapshot from before the compaction.
    assert len(set(times)) == 2
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    assert planned_run(opened(), [SHOP]).has_work is False


def test_a_commit_that_may_have_been_done_leaves_its_files(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened()
    run = planned_run(table, [SHOP])
    files = written_files(table, [SHOP], run)
    commit = snapshots.commit

    def without_answer(*given: Any) -> None:
        commit(*given)
        raise CommitStateUnknownException("gateway timeout")

    monkeypatch.setattr(iceberg_table, "commit", without_answer)
    with pytest.raises(StatePositionError, match="it is not known whether the run was committed"):
        table.commit(files, run)
    table.discard(files)
    assert planned_run(opened(), [SHOP]).has_work is False
    assert sorted_rows(scanned(table)) == view_rows([SHOP])


def test_a_full_disk_while_tasks_write_leaves_the_table_as_it_was(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(opened(), [SHOP], **FIRST_OFFSETS)
    before = data_files(tmp_path)

    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("kafkalog.lake.output_directory.OutputDirectory.create", full)
        with pytest.raises(OSError, match="No space left"):
            exported(opened(), [SHOP])
    assert data_files(tmp_path) == before
    exported(opened(), [SHOP])
    assert sorted_rows(scanned(opened())) == view_rows([SHOP])


DEEP = pytest.mark.deep


@pytest.mark.parametrize(
    ("place", "has_rows", "has_leftovers"),
    [
        pytest.param(
            "kafkalog.lake.iceberg.iceberg_table IcebergTable prepare after",
            False,
            False,
            marks=DEEP,
        ),
        ("kafkalog.lake.export_task ExportTask written_files after", False, True),
        pytest.param(
            "pyiceberg.table.update.snapshot _MergeAppendFiles _commit after",
            False,
            True,
            marks=DEEP,
        ),
        pytest.param(
            "kafkalog.lake.iceberg.iceberg_table IcebergTable _write_manifest before",
            True,
            False,
            marks=DEEP,
        ),
        pytest.param("pyiceberg.table Table append before", True, False, marks=DEEP),
    ],
)
def test_after_a_run_that_was_killed_the_next_one_makes_the_table_of_an_undisturbed_run(
    place: str, has_rows: bool, has_leftovers: bool, opened: Opened, tmp_path: Path
) -> None:
    name, _, when = place.rpartition(" ")

    def run() -> None:
        exported(IcebergTable(output_dir=str(tmp_path)), [SHOP])

    killed_at(name.replace(" ", "."), run, is_after=when == "after")
    table = opened()
    assert (scanned(table).num_rows > 0) == has_rows
    exported(table, [SHOP])
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    ranges = manifest_ranges(table)
    assert len(ranges) == len({_place(row) for row in ranges})
    assert sum(row["rows"] for row in ranges) == len(view_rows([SHOP]))
    assert bool(leftover_files(table, _AFTER_ALL_MS)) == has_leftovers
    assert leftover_files(table, 0) == []
