"""Commits of real brokers' groups: what is in effect is what the Admin client told of each."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.schemas import table_fields
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.commit_reading import CommitsRead, read_commits
from tests.support.repository import Unpack

COLUMNS = tuple(field["name"] for field in table_fields("offset_commits"))


def commits(*log_dirs: Path, **given: str) -> Iterator[dict[str, Any]]:
    """Return the rows of view `offset_commits`, task by task."""
    paths = json.dumps([str(path) for path in log_dirs])
    options = read_options({"paths": paths, "view": "offset_commits", **given})
    for group in planned_groups(options):
        for read in group:
            assert isinstance(read, CommitsRead)
            for batch in read_commits(read, options, COLUMNS):
                yield from batch.to_pylist()


def in_effect(rows: Iterator[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """By group, then by topic and partition, what was applied last and not deleted."""
    applied = [row for row in rows if row["effect"] == "applied"]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in sorted(
        applied, key=lambda row: (row["internal_partition"], row["effective_offset"])
    ):
        offsets = found.setdefault(row["group_id"], {})
        name = f"{row['topic']}-{row['partition']}"
        if row["is_tombstone"]:
            offsets.pop(name, None)
        else:
            offsets[name] = {
                "offset": row["committed_offset"],
                "leaderEpoch": row["leader_epoch"],
                "metadata": row["metadata"],
            }
    return {group: offsets for group, offsets in found.items() if offsets}


@pytest.mark.parametrize("latest", ["false", "true"])
@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_commits_in_effect_are_those_that_the_admin_client_listed(
    name: str, latest: str, unpacked: Unpack
) -> None:
    # F300 to F302; T35, T36 on what real brokers wrote.
    groups = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())["groups"]
    told = {group: facts["offsets"] for group, facts in groups.items() if facts.get("offsets")}
    logs = unpacked(f"{name}.logs")
    log_dirs = sorted(path.parent for path in logs.rglob("meta.properties"))
    found = in_effect(commits(*log_dirs, latest=latest))
    assert {group: found.get(group) for group in told} == told
    assert len(told) > 5


def test_option_latest_leaves_out_what_another_commit_replaced(unpacked: Unpack) -> None:
    # F300, F301: one commit that counts for each key, and one that waits for its transaction.
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    every, decisive = list(commits(log_dir)), list(commits(log_dir, latest="true"))
    keys = [(row["group_id"], row["topic"], row["partition"], row["effect"]) for row in decisive]
    assert len(set(keys)) == len(keys) < len(every) / 2
    assert {row["effect"] for row in decisive} == {"applied", "open"}
    assert [row for row in decisive if row not in every] == []
    # As of a time, later commits are left out; those in transactions wait for their markers.
    plain = [row for row in every if not row["is_transactional"] and row["effect"] == "applied"]
    moments = sorted({row["effective_timestamp_ms"] for row in plain})
    middle = moments[len(moments) // 2]
    found = commits(log_dir, latest="true", asOf=str(middle))
    times = [row["effective_timestamp_ms"] for row in found if not row["is_transactional"]]
    assert max(times) == middle < moments[-1]


def test_an_aborted_and_an_open_commit_are_told_apart(unpacked: Unpack) -> None:
    # F300: group txn committed in transactions, one of them aborted; txn-pending in an open one.
    rows = list(commits(unpacked("kafka44.logs") / "log-dirs"))
    transactional = [row for row in rows if row["is_transactional"]]
    effects = sorted({row["effect"] for row in transactional})
    assert effects == ["aborted", "applied", "open"]
    applied = [row for row in transactional if row["effect"] == "applied"]
    assert all(row["effective_offset"] > row["record_offset"] for row in applied)
    assert all(row["effective_timestamp_ms"] > row["record_timestamp_ms"] for row in applied)
    assert all(
        row["effective_timestamp_ms"] == row["record_timestamp_ms"]
        for row in rows
        if row["effect"] == "applied" and not row["is_transactional"]
    )


def test_a_commit_above_the_high_watermark_is_not_confirmed(
    unpacked: Unpack, tmp_path: Path
) -> None:
    # F303, F433: a commit without an answer is above the high watermark
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    checkpoint = logs / "replication-offset-checkpoint"
    lines = checkpoint.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("__consumer_offsets 4 "))
    lines[place] = "__consumer_offsets 4 100"
    checkpoint.write_text("\n".join(lines) + "\n")
    rows = [row for row in commits(logs) if row["internal_partition"] == 4]
    assert {row["is_confirmed"] for row in rows if row["record_offset"] >= 100} == {False}
    assert {row["is_confirmed"] for row in rows if row["record_offset"] < 100} == {True}
    (logs / ".kafka_cleanshutdown").unlink()
    assert {row["is_confirmed"] for row in commits(logs)} == {None}
