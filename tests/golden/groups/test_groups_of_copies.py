"""Groups by several brokers' copies, made at different seconds, against what the clients wrote
down: set restore44 of tests/golden/README.md."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import Unpack

# Before node 1 was copied, at 19:48:42: no client committed within a tenth of a second of it.
MOMENT, MOMENT_MS = "2026-11-25T19:48:41Z", 1_795_636_121_000
Place = tuple[str, str, int]


@pytest.fixture
def nodes(unpacked: Unpack) -> list[Path]:
    return sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))


def run(*given: object) -> tuple[list[dict[str, Any]], str]:
    arguments = ["groups", *map(str, given), "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(kafkalog, arguments)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def committed(unpacked: Unpack) -> dict[Place, int]:
    """The last commits that were confirmed by the moment."""
    text = (unpacked("restore44.golden") / "ledgers/commits.jsonl").read_text()
    found: dict[Place, int] = {}
    for deed in map(json.loads, text.splitlines()):
        if deed.get("ok", True) and deed["after"] * 1000 <= MOMENT_MS:
            found[deed["group"], deed["topic"], deed["partition"]] = deed["offset"]
    return found


def test_the_commits_of_a_past_time_are_read_from_the_copy_that_was_cleaned_least(
    nodes: list[Path], unpacked: Unpack
) -> None:
    # F1294: the best replica, of node 3, has lost most of them.
    rows, notes = run(*nodes, "--as-of", MOMENT)
    found = {
        (row["group"], row["topic"], row["partition"]): row["current_offset"]
        for row in rows
        if row["group"] != "g-share"
    }
    assert found == committed(unpacked)
    assert f"read from the copies in {nodes[0]}, which have more from then" in notes
    assert "older ones that were replaced since can be missing" not in notes
    alone, _ = run(nodes[2], "--as-of", MOMENT)
    assert sum(row["current_offset"] is not None for row in alone) < len(found)


def test_the_lag_of_a_past_time_is_known_by_the_log_that_still_has_it(
    nodes: list[Path], tmp_path: Path
) -> None:
    # F1294: retention has deleted the beginning of the best replica since.
    later = Path(shutil.copytree(nodes[2], tmp_path / "node3"))
    for path in sorted((later / "events-0").glob("*.log"))[:7]:
        path.unlink()
    given = ("--group", "g-classic", "--as-of", MOMENT)
    (expected, *_), _ = run(*nodes, *given)
    assert expected["lag"] == 11
    (row, *_), _ = run(*nodes[:2], later, *given)
    assert row == expected
    (row, *_), _ = run(later, *given)
    assert row["log_end_offset"] is None


def test_the_reasons_of_a_past_time_are_of_the_same_copy(nodes: list[Path]) -> None:
    (row, *_), _ = run(*nodes, "--why", "g-simple", "--as-of", MOMENT)
    assert (row["topic"], row["partition"], row["current_offset"]) == ("state", 0, 182)
    assert row["reason"] == "no_members"


def test_a_share_group_that_is_ahead_of_a_log_is_named(nodes: list[Path]) -> None:
    # F780, F1427: of node 3 the log of events-2 was copied before __share_group_state.
    rows, notes = run(*nodes, "--group", "g-share", "--verbose")
    ahead = [row for row in rows if row["lag"] < 0]
    assert [(row["partition"], row["lag"], row["ahead_of_log"]) for row in ahead] == [(2, -1, 1)]
    assert all(row["ahead_of_log"] == 0 for row in rows if row["lag"] >= 0)
    assert "in 1 partition the group is ahead of the log that is here, and LAG is below 0" in notes
    # The last ShareUpdate: startOffset 780, deliveryCompleteCount 6, 780 to 785 acknowledged.
    assert (
        "g-share in events-2: 1 offset ahead: it needs no delivery of 6 offsets from 780 on, and "
        "the log ends at 785" in notes
    )
    # Where nothing is left to read, there is no next record that it could be behind since.
    done = [row for row in rows if not row["readable_records"]]
    assert {row["partition"] for row in done} == {2, 3}
    assert all(row["behind_since_ms"] is None and row["time_lag_ms"] == 0 for row in done)


def test_a_group_that_moved_just_before_the_copy_is_not_called_stuck(nodes: list[Path]) -> None:
    # F1427: it read until the brokers were copied; events-3 it had left for seven seconds.
    rows, _ = run(*nodes, "--why", "g-cpp")
    words = {row["partition"]: row["what_to_do"] for row in rows}
    assert words[0].startswith("It moved at 2026-11-25T19:49:00.630Z, ")
    assert "nothing shows that it has stopped" in words[0]
    assert words[3].startswith("Nothing moved since 2026-11-25T19:48:54.997Z: ")


def test_groups_without_a_member_are_named(nodes: list[Path]) -> None:
    rows, notes = run(*nodes, "--members")
    assert {row["group"] for row in rows} == {"g-classic", "g-consumer", "g-cpp", "g-share"}
    assert "without a member: g-early, g-simple" in notes
