"""What `kafkalog recover` says of a node's directories, in the words of what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.storage.names import CLUSTER_METADATA
from tests.support.broker.node_starts.started_node import Outcome

Row = dict[str, Any]


def told(folder: Path, kafka: str, by: str, *more: object) -> list[Row]:
    """Return the rows about the directories d1 and d2 of a folder, by its server.properties."""
    dirs = [path for path in (folder / "d1", folder / "d2") if path.exists()]
    given = ["recover", *dirs, "--by", by, "--all", "--format", "json", "--kafka", kafka, *more]
    given += ["--server-properties", folder / "server.properties", "--processes", "1"]
    result = CliRunner().invoke(kafkalog, list(map(str, given)))
    assert result.exit_code in (0, 1), result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def foretold_start(folder: Path, kafka: str, *more: object) -> Row:
    """Return whether the node starts, the directories that go offline, and, if it starts, the
    partitions that are set aside or have no leader, and where the others begin and end."""
    (node,) = told(folder, kafka, "node", *more)
    offline = [row for row in told(folder, kafka, "directory", *more) if not row["is_online"]]
    said: Row = {
        "starts": node["broker_starts"],
        "offline": {Path(row["log_dir"]).name for row in offline},
    }
    if not node["broker_starts"]:
        return said
    rows = told(folder, kafka, "partition", *more)
    return said | {
        "set_aside": {_name(row) for row in rows if row["is_set_aside"]},
        "leaderless": {_name(row) for row in rows if row["has_leader"] is False},
        # The row of what is in use comes after the one of what is set aside.
        "bounds": {
            _name(row): (row["log_start_offset"], row["log_end_offset"])
            for row in rows
            if row["has_leader"] and row["topic"] != CLUSTER_METADATA
        },
    }


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"


def outcome(found: Outcome) -> Row:
    """Return what became of the node, in the form of what was said of it."""
    became: Row = {"starts": found.started, "offline": found.offline}
    if found.started:
        became |= {
            "set_aside": found.set_aside,
            "leaderless": found.leaderless,
            "bounds": found.bounds,
        }
    return became
