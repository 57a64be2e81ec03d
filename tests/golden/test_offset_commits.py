"""Commits of real brokers' groups: what is in effect is what the Admin client told of each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.schemas import table_fields
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.commit_reading import CommitsRead, read_commits

COLUMNS = tuple(field["name"] for field in table_fields("offset_commits"))


def commits(*log_dirs: Path) -> Iterator[dict[str, Any]]:
    """The rows of view `offset_commits`, task by task."""
    paths = json.dumps([str(path) for path in log_dirs])
    options = read_options({"paths": paths, "view": "offset_commits"})
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


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_commits_in_effect_are_those_the_admin_client_told(
    name: str, unpacked: Callable[[str], Path]
) -> None:
    # F300 to F302; T35, T36 on what real brokers wrote.
    groups = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())["groups"]
    told = {group: facts["offsets"] for group, facts in groups.items() if facts.get("offsets")}
    logs = unpacked(f"{name}.logs")
    found = in_effect(commits(*sorted(path.parent for path in logs.rglob("meta.properties"))))
    assert {group: found.get(group) for group in told} == told
    assert len(told) > 5


def test_an_aborted_and_an_open_commit_are_told_apart(unpacked: Callable[[str], Path]) -> None:
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
    unpacked: Callable[[str], Path], tmp_path: Path
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
