"""What `kafkalog groups --resume` says about partition 0 of topic orders."""

import json
from typing import Any

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog

Row = dict[str, Any]
_RETENTION = "--offsets-retention"


def run_resume(*arguments: object) -> tuple[int, str, str]:
    """The exit code, stdout and stderr. Unless a retention is given, it is a hundred years: no
    commit of a copy is too old then, whenever the tests run."""
    given = ["groups", *map(str, arguments), "--resume", "--processes", "1"]
    given += [] if _RETENTION in given else [_RETENTION, "52560000"]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def resumes(*arguments: object) -> dict[str, Row]:
    """The rows by group."""
    code, out, _ = run_resume(*arguments, "--format", "json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    return {row["group"]: row for row in rows if (row["topic"], row["partition"]) == ("orders", 0)}
