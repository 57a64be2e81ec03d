"""`kafkalog.scan` gives the rows that the command of the same question prints (docs/sql.md)."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kafkalog
from kafkalog.command_line.main import kafkalog as command_line
from tests.support.repository import Unpack


@pytest.fixture
def logs(unpacked: Unpack) -> Path:
    return unpacked("positions44.logs") / "log-dirs"


def printed(*arguments: object) -> list[dict[str, Any]]:
    given = [*map(str, arguments), "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(command_line, given)
    return [json.loads(line) for line in result.stdout.splitlines()]


def scanned(logs: Path, table: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        kafkalog.scan(str(logs), table, processes=1, **options).to_table().to_pylist()
    )
    return found


def test_where_groups_resume(logs: Path) -> None:
    rows = scanned(logs, "group_resume")
    as_printed = [
        {("group" if name == "group_id" else name): value for name, value in row.items()}
        for row in rows
    ]
    assert as_printed
    assert as_printed == printed("groups", logs, "--resume", "--auto-offset-reset", "latest")


def test_the_history_of_commits(logs: Path) -> None:
    history = scanned(logs, "commit_history", as_of="2026-11-27")
    lost = [row for row in history if row["group_id"] == "lost"]
    command = printed("groups", logs, "--history", "lost", "--as-of", "2026-11-27")
    assert [row["committed_offset"] for row in lost] == [row["committed_offset"] for row in command]
    assert [row["words"] for row in lost] == [row["words"] for row in command]


def test_positions_in_topics(logs: Path) -> None:
    rows = scanned(logs, "kept_positions")
    assert rows == printed("positions", logs)
    assert {row["keeper"] for row in rows} == {"connect", "mirror_checkpoint", "mirror_sync"}
