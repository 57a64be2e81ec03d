"""Increments of a table of state, its tasks one after another in this process, against a replay.

Rules: F270, F271, F272, F276.
"""

import datetime as dt
import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.columns.keys.key_offsets import KeyOffsets
from kafkalog.errors import StatePositionError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.delta.delta_actions import add_action, file_in_log
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.state import outdated_rows
from kafkalog.lake.state.outdated_rows import (
    FoundRows,
    Outdated,
    OutdatedRows,
    changed,
    file_parts,
    overtaken,
    written_without,
)
from kafkalog.lake.state.state_plan import StatePlan, plan_state
from kafkalog.lake.state.state_task import KeyPart, StateTask
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.file_access import file_access
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.state_positions import (
    StatePositions,
    StateRun,
    StateSettings,
    incremental_run,
)
from kafkalog.views.planning.state_sources import found_sources
from tests.support.jobs.state_runs import State
from tests.support.logs.growing_logs import GrowingLog, write_logs

SECRET = bytes(SECRET_BYTES)


class FilesWithout(NamedTuple):
    """Paths of files that had outdated rows, those that have their other rows, and what was
    found."""

    removed: set[str]
    written: list[WrittenFile]
    found: list[FoundRows]

    @property
    def overtaken(self) -> bool:
        return any(each.overtaken for each in self.found)


class Table:
    """A table of state in a directory, its files as Delta's log has them."""

    def __init__(self, path: Path, level: str, *, keep: bool) -> None:
        self.path, self.level, self.settings = path, level, StateSettings(level, keep)
        self.files: list[WrittenFile] = []
        self.positions = StatePositions(*self.settings)

    def grow(self, logs: Path) -> FilesWithout:
        """What a run does that adds what is new."""
        options = read_options({"path": str(logs), "isolationLevel": self.level})
        sources = found_sources(options)
        run = incremental_run(self.positions, self.settings, sources)
        plan = plan_state([str(logs)], "FAILFAST", run, sources, processes=2, least_bytes=300)
        output = TableOutput(str(self.path), 0)
        task = StateTask(plan.options, output, self.settings.keep_tombstones, SECRET)
        without = self._grow(run, plan, task)
        self.positions = run.positions
        return without

    def _grow(self, run: StateRun, plan: StatePlan, task: StateTask) -> FilesWithout:
        keys: dict[TopicPartition, KeyOffsets] = {}
        for part in (part for group in plan.groups for part in group):
            own = keys.setdefault(part.key, KeyOffsets(SECRET))
            for found in task.key_parts(part, 1):
                if isinstance(found, KeyPart):
                    own.merge_bytes(found.entries)
        below = run.raised_log_starts
        without = self.without(
            {key: Outdated(below.get(key, 0), keys.get(key)) for key in {*keys, *below}}
        )
        survivors = {
            key: np.setdiff1d(own.offsets(), overtaken(without.found, key))
            for key, own in keys.items()
        }
        for group in plan.with_survivors(survivors):
            self.add(task.surviving_files(group))
        return without

    def without(self, outdated: dict[TopicPartition, Outdated]) -> FilesWithout:
        """Leave rows out of all files at once."""
        output = TableOutput(str(self.path), 0)
        rows = OutdatedRows(output, file_access(), outdated)
        files = [file for file in self.files if rows.may_be_in(file)]
        found = [rows.found_in(part) for part in file_parts(files, cores=2)]
        parts = changed(found)
        removed = {each.part.file.path for each in parts}
        written = written_without(output, file_access(), parts)
        self.files = [file for file in self.files if file.path not in removed]
        self.add(written)
        return FilesWithout(removed, written, found)

    def add(self, files: Sequence[WrittenFile]) -> None:
        for file in files:
            action = json.loads(add_action(file, 0))["add"]
            self.files.append(file_in_log(action["path"], action["size"], action["stats"]))

    def state(self) -> State:
        rows = [row for file in self.files for row in self.rows(file)]
        state = {
            (row["topic"], row["partition"], row["key"]): (row["offset"], row["value"])
            for row in rows
        }
        assert len(state) == len(rows), "a key is there twice"
        return state

    def rows(self, file: WrittenFile) -> list[dict[str, Any]]:
        return list(pq.read_table(self.path / file.path).to_pylist())


def replayed(logs: Sequence[GrowingLog], table: Table) -> State:
    state: State = {}
    for log in logs:
        state |= log.state(table.level, deletes=table.settings.keep_tombstones)
    return state


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("seed", range(3))
def test_after_each_increment_the_table_is_that_of_a_replay(
    seed: int, level: str, keep: bool, tmp_path: Path
) -> None:
    logs = [GrowingLog("orders", number, seed) for number in range(2)]
    table = Table(tmp_path / "state", level, keep=keep)
    kept = removed = 0
    for step in range(8):
        for log in logs:
            log.grow(random.Random(f"{seed} {step} {log.partition}").randrange(8))
        write_logs(tmp_path / "logs", logs)
        before = len(table.files)
        try:
            done = table.grow(tmp_path / "logs")
        except StatePositionError:
            # The log start has passed the table's end.
            table = Table(tmp_path / f"again {step}", level, keep=keep)
            before, done = 0, table.grow(tmp_path / "logs")
        removed += len(done.removed)
        kept += before - len(done.removed)
        assert table.state() == replayed(logs, table)
        assert not done.overtaken
    assert removed > 0
    assert kept > 0


@pytest.mark.parametrize("keep", [True, False])
def test_what_was_read_before_changes_nothing(keep: bool, tmp_path: Path) -> None:
    log = GrowingLog("orders", 0, 6)
    table = Table(tmp_path / "state", "read_uncommitted", keep=keep)
    for _ in range(2):
        log.grow(20)
        write_logs(tmp_path / "logs", [log])
        table.grow(tmp_path / "logs")
    files = table.files
    table.positions = StatePositions(*table.settings)
    done = table.grow(tmp_path / "logs")
    assert done.overtaken
    assert table.files == files
    assert table.state() == replayed([log], table)


def test_only_files_with_outdated_rows_are_written_again(tmp_path: Path) -> None:
    logs = [GrowingLog("orders", number, 4) for number in range(3)]
    table = Table(tmp_path / "state", "read_uncommitted", keep=False)
    for log in logs:
        log.grow(30)
        write_logs(tmp_path / "logs", [log])
        table.grow(tmp_path / "logs")
        shutil.rmtree(tmp_path / "logs")
    rows = {file.path: table.rows(file) for file in table.files}
    own = {path: found for path, found in rows.items() if found[0]["partition"] == 1}
    ((path, found),) = own.items()
    # Statistics leave the other files out, which could not be opened.
    for file in table.files:
        if file.path != path:
            (tmp_path / "state" / file.path).rename(tmp_path / file.path)
    middle = found[len(found) // 2]["offset"]
    done = table.without({("orders", 1): Outdated(middle)})
    (written,) = done.written
    assert table.rows(written) == [row for row in found if row["offset"] >= middle]
    # None is outdated.
    assert not table.without({("orders", 1): Outdated(middle)}).removed
    # Without a row there is no file.
    assert not table.without({("orders", 1): Outdated(LARGEST_OFFSET)}).written
    assert len(table.files) == len(rows) - 1


def test_all_parts_of_a_file_are_written_again_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog("orders", 0, 4)
    log.grow(60)
    write_logs(tmp_path / "logs", [log])
    table = Table(tmp_path / "state", "read_uncommitted", keep=True)
    table.grow(tmp_path / "logs")
    file = max(table.files, key=lambda each: each.rows)
    table.files = [file]
    rows = table.rows(file)
    # Of a row each, and one more part than there are row groups.
    pq.write_table(pq.read_table(tmp_path / "state" / file.path), tmp_path / "groups", 1)
    shutil.move(tmp_path / "groups", tmp_path / "state" / file.path)
    parts = len(rows) + 1
    monkeypatch.setattr(outdated_rows, "_LEAST_PART_BYTES", -(-file.size // parts))
    assert len(file_parts([file], cores=10**6)) == parts > 3
    done = table.without({("orders", 0): Outdated(rows[1]["offset"])})
    assert sum(any(each.bits) for each in done.found) == 1
    (written,) = done.written
    assert table.rows(written) == rows[1:]
    assert not table.without({("orders", 0): Outdated(rows[1]["offset"])}).removed


def test_a_file_that_spark_wrote_keeps_its_rows_and_their_times(tmp_path: Path) -> None:
    # Rows of partitions in turn, times in 96 bits, in a year that nanoseconds do not reach.
    log = GrowingLog("orders", 0, 5)
    log.grow(20)
    write_logs(tmp_path / "logs", [log])
    table = Table(tmp_path / "state", "read_uncommitted", keep=True)
    table.grow(tmp_path / "logs")
    file = table.files[0]
    rows = pa.concat_tables([pq.read_table(tmp_path / "state" / file.path)] * 3)
    rows = rows.set_column(
        rows.schema.get_field_index("timestamp"),
        "timestamp",
        pa.array([dt.datetime(2500, 1, 1, tzinfo=dt.UTC)] * len(rows), pa.timestamp("us", "UTC")),
    )
    partitions = [(number * 7) % 3 for number in range(len(rows))]
    rows = rows.set_column(
        rows.schema.get_field_index("partition"), "partition", pa.array(partitions, pa.int32())
    )
    pq.write_table(
        rows, tmp_path / "state" / "part-0.parquet", use_deprecated_int96_timestamps=True
    )
    table.files = [replace(file, path="part-0.parquet", least={}, greatest={})]
    done = table.without({("orders", 1): Outdated(LARGEST_OFFSET)})
    (written,) = done.written
    stay = [row for row in rows.to_pylist() if row["partition"] != 1]
    assert table.rows(written) == sorted(stay, key=lambda row: row["partition"])
    assert (written.least["partition"], written.greatest["partition"]) == (0, 2)
