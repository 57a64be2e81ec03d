"""Commits to ZooKeeper of real consumers are those that ZooKeeper's own log formatter and Kafka's
offset checker printed_commits. Rules: F448, F490 to F492."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.inspection.zookeeper.zookeeper_commits import commit_rows, history_begin
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFinding
from tests.support.golden.printed_commits import Commit, printed_commits
from tests.support.repository import Unpack
from tests.support.zookeeper.zookeeper_files import create, log_bytes, transaction, write_data_dir

SETS = ("kafka08", "kafka010")


def checked(golden: Path) -> dict[tuple[str, str, int], int]:
    """The offsets that the tool has from ZooKeeper, of groups that do not commit to Kafka."""
    found = {}
    for path in golden.glob("tools/offset_checker_*.txt"):
        if path.stem.endswith("-kafka"):
            continue
        for line in path.read_text().splitlines()[1:]:
            group, topic, partition, offset, *_ = line.split()
            found[group, topic, int(partition)] = int(offset)
    return found


def live(folder: Path) -> DataDir:
    (data_dir,) = find_data_dirs([str(folder / "zookeeper-live")])
    return data_dir


def rows(data_dir: DataDir, until: int | None = None, subtree: bytes = b"") -> list[dict[str, Any]]:
    findings: list[ZooKeeperFinding] = []
    found = [dict(row) for row in commit_rows(data_dir, until, subtree, findings.append)]
    assert [finding for finding in findings if finding.fault.is_damage] == []
    return found


def commits(found: list[dict[str, Any]]) -> set[Commit]:
    return {
        (
            row["record_offset"],
            row["group_id"],
            row["topic"],
            row["partition"],
            row["committed_offset"],
        )
        for row in found
    }


@pytest.mark.parametrize("name", SETS)
def test_every_write_of_the_logs_is_a_commit(unpacked: Unpack, name: str) -> None:
    folder = unpacked(f"{name}.zookeeper")
    found = rows(live(folder))
    assert commits(found) == printed_commits(folder)
    assert len(found) == len(printed_commits(folder)) > 15
    assert {row["effective_offset"] == row["record_offset"] for row in found} == {True}
    assert {row["commit_timestamp_ms"] == row["record_timestamp_ms"] for row in found} == {True}
    assert history_begin(live(folder)) == (0, None)


@pytest.mark.parametrize("name", SETS)
def test_the_last_commits_are_what_the_offset_checker_printed(unpacked: Unpack, name: str) -> None:
    found = sorted(commits(rows(live(unpacked(f"{name}.zookeeper")))))
    last = {(group, topic, partition): offset for _, group, topic, partition, offset in found}
    assert last == checked(unpacked(f"{name}.golden"))


@pytest.mark.parametrize("name", SETS)
def test_what_the_logs_have_lost_is_in_the_oldest_snapshot(
    unpacked: Unpack, tmp_path: Path, name: str
) -> None:
    # F491: as autopurge leaves it, the last two snapshots and what came after them.
    folder = unpacked(f"{name}.zookeeper")
    kept = Path(shutil.copytree(folder / "zookeeper-live", tmp_path / "kept"))
    snapshots = sorted(int(each.suffix[1:], 16) for each in kept.glob("version-2/snapshot.*"))
    oldest = snapshots[-2]
    for path in kept.glob("version-2/*"):
        if int(path.suffix[1:], 16) < oldest:
            path.unlink()
    (data_dir,) = find_data_dirs([str(kept)])
    found, whole = commits(rows(data_dir)), printed_commits(folder)
    before: dict[tuple[str, str, int], Commit] = {}
    for commit in sorted(commit for commit in whole if commit[0] <= oldest):
        before[commit[1:4]] = commit
    assert found == set(before.values()) | {commit for commit in whole if commit[0] > oldest}
    assert history_begin(data_dir).zxid == oldest + 1


def test_a_past_transaction_ends_the_commits_and_a_subtree_has_its_own(unpacked: Unpack) -> None:
    folder = unpacked("kafka08.zookeeper")
    until = sorted(printed_commits(folder))[9][0]
    whole = {commit for commit in printed_commits(folder) if commit[0] <= until}
    assert commits(rows(live(folder), until)) == whole
    group = "o8.g-old-zk"
    one = rows(live(folder), subtree=f"/consumers/{group}".encode())
    assert commits(one) == {commit for commit in printed_commits(folder) if commit[1] == group}


def test_a_commit_that_damage_hides_in_the_logs_is_reported_by_the_tree(
    unpacked: Unpack, tmp_path: Path
) -> None:
    # F491: the log between the last two snapshots is missing.
    folder = unpacked("kafka08.zookeeper")
    kept = Path(shutil.copytree(folder / "zookeeper-live", tmp_path / "kept"))
    (kept / "version-2" / "log.126").unlink()
    (data_dir,) = find_data_dirs([str(kept)])
    findings: list[ZooKeeperFinding] = []
    found = commits([dict(row) for row in commit_rows(data_dir, None, b"", findings.append)])
    last: dict[tuple[str, str, int], Commit] = {}
    for commit in sorted(printed_commits(folder)):
        last[commit[1:4]] = commit
    in_tree = {commit for commit in last.values() if commit[0] <= 0x13A}
    assert in_tree <= found < printed_commits(folder)


def test_commits_are_of_the_cluster_whose_id_is_beside_them(tmp_path: Path) -> None:
    # F431, F467: a group and a topic of the same name in two clusters; neither's offset moves.
    below = "consumers/g/offsets/orders/0"
    made = [
        (f"/{root}/{path}", data)
        for root, offset in (("east", b"40"), ("west", b"7"))
        for path, data in (
            ("cluster/id", b'{"version":"1","id":"%s"}' % root.encode()),
            (below, offset),
        )
    ]
    paths = dict.fromkeys(
        "/".join(path.split("/")[:end]) for path, _ in made for end in range(2, path.count("/") + 2)
    )
    log = [
        transaction(zxid, create(path, -1, dict(made).get(path, b"")))
        for zxid, path in enumerate(paths, 1)
    ]
    folder = write_data_dir(tmp_path, logs={1: log_bytes(log)})
    (data_dir,) = find_data_dirs([str(folder)])
    assert {(row["cluster_id"], row["committed_offset"]) for row in rows(data_dir)} == {
        ("east", 40),
        ("west", 7),
    }
