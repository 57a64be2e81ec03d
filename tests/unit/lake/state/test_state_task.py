"""The tasks that build state, one after another in this process, against a plain replay.

Rules: F270, F271, F272.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.columns.keys.key_offsets import KeyOffsets
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.state import state_task
from kafkalog.lake.state.state_plan import StatePlan, plan_state
from kafkalog.lake.state.state_task import KeyPart, ReadAgainError, StateFiles, StateTask, divided
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.state_positions import StateRun, StateSettings, full_run
from kafkalog.views.planning.state_sources import found_sources
from tests.support.jobs.state_runs import State
from tests.support.logs.growing_logs import GrowingLog, write_logs
from tests.support.spark.kafka_logs import write_log

LEVEL = "read_committed"


def planned(
    logs: Path, *, keep: bool = False, most_keys: int = 10**6, least_bytes: int = 10**6
) -> StatePlan:
    given = {"path": str(logs), "isolationLevel": LEVEL, "mode": "FAILFAST"}
    sources = found_sources(read_options(given))
    run: StateRun = full_run(None, StateSettings(LEVEL, keep), sources)
    return plan_state(
        [str(logs)],
        "FAILFAST",
        run,
        sources,
        processes=6,
        most_keys=most_keys,
        least_bytes=least_bytes,
    )


def task_of(plan: StatePlan, output: Path, *, keep: bool = False) -> StateTask:
    return StateTask(plan.options, TableOutput(str(output), 0), keep, bytes(SECRET_BYTES))


def done(plan: StatePlan, task: StateTask) -> StateFiles:
    """What Spark's tasks do, and what it passes on between them."""
    files, keyless = [], 0
    for group in plan.whole:
        written = task.whole_partitions(group)
        files += written.files
        keyless += written.keyless
    for partition in plan.spread:
        buckets: defaultdict[int, KeyOffsets] = defaultdict(lambda: KeyOffsets(task.secret))
        for part in partition.parts:
            for found in task.key_parts(part, partition.buckets):
                if isinstance(found, KeyPart):
                    buckets[found.bucket].merge_bytes(found.entries)
                else:
                    keyless += found
        offsets: defaultdict[int, list[np.ndarray]] = defaultdict(list)
        for keys in buckets.values():
            for number, own in enumerate(divided(keys.offsets(), partition.firsts)):
                offsets[number].append(own)
        for number, found_offsets in offsets.items():
            files += task.surviving_files(
                [(partition.parts[number], np.sort(np.concatenate(found_offsets)))]
            )
    return StateFiles(files, keyless)


def state_in(output: Path, files: StateFiles) -> State:
    rows = [row for file in files.files for row in pq.read_table(output / file.path).to_pylist()]
    state = {
        (row["topic"], row["partition"], row["key"]): (row["offset"], row["value"]) for row in rows
    }
    assert len(state) == len(rows)
    return state


def expected(logs: Sequence[GrowingLog], *, keep: bool) -> State:
    state: State = {}
    for log in logs:
        state |= log.state(LEVEL, deletes=keep)
    return state


# Limits that give whole partitions, partitions in parts, and keys in many buckets.
LIMITS: Mapping[str, dict[str, int]] = {
    "whole": {},
    "in parts": {"least_bytes": 200},
    "in buckets": {"least_bytes": 200, "most_keys": 9},
}


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(4))
def test_state_is_that_of_a_plain_replay(
    seed: int, limits: str, keep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [GrowingLog("orders", number, seed) for number in range(3)]
    for log in logs:
        log.grow(60)
    write_logs(tmp_path / "logs", logs)
    plan = planned(tmp_path / "logs", keep=keep, **LIMITS[limits])
    if limits == "whole":
        assert not plan.spread
    else:
        assert any(len(each.parts) > 1 for each in plan.spread)
    if limits == "in buckets":
        # Keys are passed on again and again.
        monkeypatch.setattr(state_task, "MOST_KEYS", 2)
        assert max(each.buckets for each in plan.spread) > 3
    files = done(plan, task_of(plan, tmp_path / "state", keep=keep))
    assert state_in(tmp_path / "state", files) == expected(logs, keep=keep)
    assert files.keyless > 0


def test_a_partition_has_no_more_records_than_bytes(tmp_path: Path) -> None:
    # A cleaner has left two batches of a billion offsets.
    batches = [write_batch([Record(offset, 0, 0, b"k", b"v")]) for offset in (0, 10**9)]
    write_log(tmp_path / "logs", "orders-0", {0: batches})
    (partition,) = planned(tmp_path / "logs", most_keys=100, least_bytes=1).spread
    assert sum(part.offsets > 10**9 for part in partition.parts) == len(partition.parts)
    # A quarter of the keys each.
    assert partition.buckets <= -(-sum(map(len, batches)) // 25)


def test_a_record_that_is_gone_when_it_is_read_again_ends_the_run(tmp_path: Path) -> None:
    records = [Record(offset, 0, 0, b"k%d" % offset, b"v") for offset in range(4)]
    write_log(tmp_path / "logs", "orders-0", {0: [write_batch(records[:2])]})
    plan = planned(tmp_path / "logs")
    ((partition,),) = plan.whole
    task = task_of(plan, tmp_path / "state")
    with pytest.raises(ReadAgainError, match="2 records were found where 3 were"):
        task.surviving_files([(partition, np.array([0, 1, 2]))])
    assert not [*(tmp_path / "state").glob("*")]


def test_segments_without_a_surviving_record_are_not_opened_again(tmp_path: Path) -> None:
    segments = {
        base: [
            write_batch([Record(base + place, 0, 0, b"k%d" % place, b"v") for place in range(3)])
        ]
        for base in (0, 3, 6)
    }
    write_log(tmp_path / "logs", "orders-0", segments)
    plan = planned(tmp_path / "logs")
    ((partition,),) = plan.whole
    task = task_of(plan, tmp_path / "state")
    moved = [replace(read, path=f"{read.path}.gone") for read in partition.reads[:2]]
    partition = replace(partition, reads=(*moved, partition.reads[2]))
    (file,) = task.surviving_files([(partition, np.array([6, 7, 8]))])
    assert file.rows == 3
