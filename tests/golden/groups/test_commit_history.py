"""`kafkalog groups --history` against the ledger of what consumers and tools did on a broker 4.4.0:
F1230 to F1234."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.questions.positions.commit_history import commit_history
from kafkalog.schemas import table_fields
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import LocalViews
from tests.support.repository import Unpack

Row = dict[str, Any]
ORDERS = "orders"


@pytest.fixture(scope="module")
def log_dir(unpacked: Unpack) -> str:
    return str(unpacked("positions44.logs") / "log-dirs")


@pytest.fixture(scope="module")
def deeds(unpacked: Unpack) -> Callable[[str], list[Row]]:
    ledger = json.loads((unpacked("positions44.golden") / "deeds.json").read_text())
    return lambda group: [deed for deed in ledger if deed["group"] == group]


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["groups", *arguments, "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def history(log_dir: str, group: str) -> list[Row]:
    """The rows about the topic that the ledger is about."""
    code, out, _ = run(log_dir, "--history", group, "--format", "json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    return [row for row in rows if row["topic"] == ORDERS]


def findings(rows: list[Row]) -> list[tuple[str, int | None]]:
    return [(row["finding"], row["committed_offset"]) for row in rows if row["finding"]]


@pytest.mark.parametrize("group", ["steady", "lost", "reset", "skips", "two", "dropped"])
def test_each_commit_of_a_consumer_is_a_row(
    log_dir: str, deeds: Callable[[str], list[Row]], group: str
) -> None:
    committed = [deed for deed in deeds(group) if "committed" in deed]
    rows = [row for row in history(log_dir, group) if row["event"] == "commit"]
    by_tool = [row for row in rows if row["finding"] == "set_from_outside"]
    by_clients = [row for row in rows if row not in by_tool]
    assert [row["committed_offset"] for row in by_clients] == [
        deed["committed"] for deed in committed
    ]
    for row, deed in zip(by_clients, committed, strict=True):
        # The client notes its deed when the coordinator has answered.
        assert 0 <= deed["at_ms"] - row["at_ms"] < 2000


def test_who_only_reads_on_has_no_finding(log_dir: str) -> None:
    rows = history(log_dir, "steady")
    assert findings(rows) == []
    assert {row["jump"] for row in rows[1:-1]} == {50}
    # F1231: what is left of the log begins at 290.
    passed = [row["records_between"] + row["deleted_between"] for row in rows[1:-1]]
    assert passed == [50] * (len(rows) - 2)


def test_records_that_retention_deleted_before_the_commit_are_lost(
    log_dir: str, deeds: Callable[[str], list[Row]]
) -> None:
    # F1230: the consumer was at 100, the log began at 290 when it came back.
    (retention,) = [deed for deed in deeds("") if deed["deed"] == "retention"]
    first_after = next(deed for deed in deeds("lost") if deed["first"] >= retention["log_start"])
    (row,) = [row for row in history(log_dir, "lost") if row["finding"]]
    assert row["finding"] == "lost"
    assert row["committed_offset"] == first_after["committed"]
    assert row["deleted_between"] == first_after["first"] - 100 == retention["log_start"] - 100
    assert f"{row['deleted_between']} messages lost between" in row["words"]


def test_a_copy_with_other_times_does_not_say_when_the_log_lost_its_beginning(
    unpacked: Unpack, tmp_path: Path
) -> None:
    # F1230: a copy made without the times of the files.
    source = unpacked("positions44.logs") / "log-dirs"
    copied = tmp_path / "log-dirs"
    for path in source.rglob("*"):
        if path.is_file():
            target = copied / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (row,) = [row for row in history(str(copied), "lost") if row["finding"]]
    assert row["finding"] == "perhaps_lost"
    assert row["deleted_between"] == 190
    assert "lost if that was before" in row["words"]
    # A time that is before the commit below the log start says nothing either.
    os.utime(copied / "orders-0" / "leader-epoch-checkpoint", (0, 0))
    assert findings(history(str(copied), "lost")) == [("perhaps_lost", 315)]


def test_a_tool_sets_a_commit_while_the_group_has_no_member(log_dir: str) -> None:
    # F1232
    (forward,) = [row for row in history(log_dir, "reset") if row["finding"]]
    assert (forward["finding"], forward["committed_offset"]) == ("set_from_outside", 500)
    assert (forward["jump"], forward["members"]) == (400, 0)
    assert forward["records_between"] + forward["deleted_between"] == 400
    assert "were not read" in forward["words"]
    back, now = [row for row in history(log_dir, "rewound") if row["finding"]]
    assert (back["finding"], back["jump"]) == ("set_from_outside", -80)
    # Records from 20 on were deleted, and the group has not come back.
    assert (now["event"], now["finding"], now["deleted_between"]) == ("end", "lost", 270)


def test_a_seek_to_the_end_is_a_leap(log_dir: str, deeds: Callable[[str], list[Row]]) -> None:
    # F1234
    (deed,) = [deed for deed in deeds("skips") if deed["deed"] == "skipped"]
    assert findings(history(log_dir, "skips")) == [("leap", deed["committed"])]


def test_two_committers_alternate(log_dir: str) -> None:
    # F1233: each went forward from its own place, six times.
    rows = history(log_dir, "two")
    found = [row for row in rows if row["finding"]]
    assert {row["finding"] for row in found} == {"alternates"}
    assert [row["committed_offset"] for row in found][:2] == [20, 320]
    assert len(found) == 10
    (words,) = [row["words"] for row in found if row["words"]]
    assert "5 times" in words


def test_a_deleted_commit_and_the_log_after_the_last_one(log_dir: str) -> None:
    assert findings(history(log_dir, "dropped")) == [("deleted", None)]
    assert findings(history(log_dir, "behind")) == [("lost", 50)]
    (end,) = [row for row in history(log_dir, "ahead") if row["event"] == "end"]
    assert (end["finding"], end["committed_offset"]) == ("ahead", 5000)
    assert "4,280 offsets beyond the end" in end["words"]


@pytest.mark.parametrize(
    ("name", "deleted"),
    [
        ("kafka44", 9),
        ("kafka39zk", 5),
        # Groups of all kinds that were never reset, of which the disks of three nodes have parts.
        ("restore44", 0),
    ],
)
def test_groups_of_other_brokers_have_no_other_findings(
    unpacked: Unpack, name: str, deleted: int
) -> None:
    # The groups of these sets whose commits were deleted, or expired, are called so.
    disks = sorted(str(path.parent) for path in unpacked(f"{name}.logs").rglob("meta.properties"))
    views = LocalViews(disks, find_partitions(disks, strict=False), 1)
    rows = [*commit_history(views, LagQuestion(2**41)).rows]
    found = [row for row in rows if row["finding"]]
    assert {row["finding"] for row in found} == ({"deleted"} if deleted else set())
    assert len(found) == deleted
    assert all("delete" in row["group_id"] or "expiring" in row["group_id"] for row in found)
    assert len(rows) > 50


def test_as_text_commits_that_read_on_are_one_row(log_dir: str) -> None:
    code, out, _ = run(log_dir, "--history", "lost", "--columns", "at_ms,committed_offset,finding")
    assert code == 0
    lines = [line.split()[1:3] for line in out.splitlines() if line.startswith("20")]
    assert lines[2:] == [["25", "-"], ["100", "-"], ["315", "lost"], ["365", "-"], ["365", "end"]]
    assert "190 messages lost between" in out
    _, every, _ = run(log_dir, "--history", "lost", "--verbose")
    assert every.count(" commit ") == 7 + 1  # one is of MirrorMaker's copy


def test_as_of_a_time_later_commits_do_not_count(log_dir: str) -> None:
    rows = history(log_dir, "two")
    _, out, _ = run(
        *(log_dir, "--history", "two", "--as-of", "2026-11-26T04:04:38Z", "--format", "json")
    )
    found = [json.loads(line) for line in out.splitlines()]
    earlier = [row for row in found if row["event"] == "commit" and row["topic"] == ORDERS]
    offsets = [row["committed_offset"] for row in earlier]
    assert offsets == [row["committed_offset"] for row in rows][: len(offsets)]
    assert 0 < len(offsets) < 12


def test_the_table_has_the_columns_of_its_schema(log_dir: str, tmp_path: Path) -> None:
    code, out, _ = run(log_dir, "--history", "lost", "--output-dir", str(tmp_path / "out"))
    assert code == 0
    assert "commit_history" in out
    names = [field["name"] for field in table_fields("commit_history")]
    assert list(history(log_dir, "lost")[0]) == names


def test_a_group_without_commits_is_refused_by_the_names_there_are(log_dir: str) -> None:
    code, _, err = run(log_dir, "--history", "stead")
    assert code == 2
    assert "steady" in err
    code, _, err = run(log_dir, "--history", "lost", "--why", "lost")
    assert code == 2


def test_the_commits_of_all_copies_count(unpacked: Unpack) -> None:
    """F1360: three nodes were copied at three moments, and the cleaner had removed other commits
    from each."""
    nodes = [str(unpacked("restore44.logs") / f"snapshots/node{node}/data") for node in (1, 2, 3)]

    def commits(*paths: str) -> set[tuple[int, int]]:
        code, out, _ = run(*paths, "--history", "g-cpp", "--format", "json")
        assert code == 0
        rows = [json.loads(line) for line in out.splitlines()]
        return {
            (row["partition"], row["committed_offset"]) for row in rows if row["event"] == "commit"
        }

    ledger = (unpacked("restore44.golden") / "ledgers/commits.jsonl").read_text().splitlines()
    deeds = [json.loads(line) for line in ledger]
    by_client = {(deed["partition"], deed["offset"]) for deed in deeds if deed["group"] == "g-cpp"}
    alone = [commits(node) for node in nodes]
    together = commits(*nodes)
    assert together == set.union(*alone)
    assert all(len(of_one) < len(together) for of_one in alone)
    assert together <= by_client

    _, out, _ = run(*nodes, "--history", "g-cpp")
    since = next(line for line in out.splitlines() if line.startswith("commits: ")).split()[3]
    assert f"no commit from {since} on jumped over records" in out
    _, _, notes = run(*nodes, "--group", "g-cpp", "--as-of", "2026-11-25T19:48:40Z")
    assert f"read from the copies in {nodes[0]}, which have more from then" in notes
    # F1294: those copies were taken before this moment.
    _, _, notes = run(*nodes, "--group", "g-cpp", "--as-of", "2026-11-25T19:48:50Z")
    assert "older ones that were replaced since can be missing" in notes
    assert "copies that were cleaned less" not in notes
