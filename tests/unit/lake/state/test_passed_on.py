"""What tasks leave in files for later ones, and partitions that several tasks write, against a
plain replay. Rules: F270, F271, F272."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.state.passed_on import PassingFolder
from kafkalog.lake.state.state_plan import StatePlan, in_shares, plan_state
from kafkalog.lake.state.state_task import PartitionReads, StateTask
from kafkalog.lake.written_file import Report, WrittenFile
from kafkalog.questions.state_files import written_state
from kafkalog.views.engine import LocalViews
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.state_positions import StateSettings, full_run
from kafkalog.views.planning.state_sources import found_sources
from tests.support.logs.growing_logs import GrowingLog, write_logs

LEVEL = "read_committed"


def planned(logs: Path) -> StatePlan:
    sources = found_sources(read_options({"path": str(logs), "isolationLevel": LEVEL}))
    run = full_run(None, StateSettings(LEVEL, keep_tombstones=False), sources)
    limits = {"most_keys": 9, "least_bytes": 200}
    return plan_state([str(logs)], "FAILFAST", run, sources, processes=2, **limits)


def task_of(plan: StatePlan, output: Path) -> StateTask:
    return StateTask(plan.options, TableOutput(str(output), 0), False, bytes(SECRET_BYTES))


@pytest.fixture
def logs(tmp_path: Path) -> list[GrowingLog]:
    made = [GrowingLog("orders", number, number) for number in range(3)]
    for log in made:
        log.grow(60)
    write_logs(tmp_path / "logs", made)
    return made


def test_bytes_come_back_by_their_places(tmp_path: Path) -> None:
    folder = PassingFolder.of_run(str(tmp_path))
    first = folder.pass_on([(1, b"one"), (2, b"two"), (1, b"more")])
    second = folder.pass_on(iter([(1, b"again")]))
    assert [place for place, _ in first] == [1, 2, 1]
    own = [piece for place, piece in [*first, *second] if place == 1]
    assert [*folder.passed(own)] == [b"one", b"more", b"again"]
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    folder.remove()
    folder.remove()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("costs", "most", "expected"),
    [
        ([1, 1, 1, 1], 2, [(0, 1), (2, 3)]),
        ([9, 1, 1, 1], 2, [(0,), (1, 2, 3)]),
        ([1, 1, 1, 9], 2, [(0, 1, 2), (3,)]),
        ([0, 0], 2, [(0, 1)]),
        ([5], 3, [(0,)]),
        ([], 3, []),
    ],
)
def test_shares_have_about_the_same_cost(
    costs: Sequence[int], most: int, expected: list[tuple[int, ...]]
) -> None:
    assert in_shares(range(len(costs)), costs, most) == expected


def test_tasks_that_pass_keys_on_write_the_state_of_a_plain_replay(
    logs: list[GrowingLog], tmp_path: Path
) -> None:
    plan = planned(tmp_path / "logs")
    assert any(len(each.shares) > 1 and each.buckets > 1 for each in plan.spread)
    output = tmp_path / "state"
    reported: list[WrittenFile] = []

    def report(done: Report) -> None:
        reported.extend(done.files)

    views = LocalViews([str(tmp_path / "logs")], (), 1)
    done = written_state(views, task_of(plan, output), plan, report)
    rows = [row for file in done.files for row in pq.read_table(output / file.path).to_pylist()]
    state = {(each["topic"], each["partition"], each["key"]): each["offset"] for each in rows}
    expected = {key: row[0] for log in logs for key, row in log.state(LEVEL).items()}
    assert state == expected
    assert len(state) == len(rows)
    assert done.keyless > 0
    assert sorted(map(str, reported)) == sorted(map(str, done.files))
    assert {path.name for path in output.iterdir()} == {file.path for file in done.files}


def test_nothing_that_was_passed_on_stays_after_an_error(
    logs: list[GrowingLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path / "logs")
    output = tmp_path / "state"
    seen: list[list[str]] = []

    def files(self: StateTask, partitions: Iterator[tuple[PartitionReads, object]]) -> None:
        seen.append([path.name for path in output.iterdir() if path.is_dir()])
        raise OSError("the disk is full")

    monkeypatch.setattr(StateTask, "surviving_files", files)
    views = LocalViews([str(tmp_path / "logs")], (), 1)
    with pytest.raises(OSError, match="the disk is full"):
        written_state(views, task_of(plan, output), plan, lambda report: None)
    assert len(seen[0]) == 1
    assert [path for path in output.iterdir() if path.is_dir()] == []
