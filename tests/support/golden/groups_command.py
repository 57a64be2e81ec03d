"""`kafkalog groups` as tests run it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog

Unpacked = Callable[[str], Path]


def log_dirs(logs: Path) -> list[str]:
    """The log directories of an unpacked set of fixtures."""
    return sorted(str(path.parent) for path in logs.rglob("meta.properties"))


def run(*arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of `kafkalog groups`."""
    result = CliRunner().invoke(kafkalog, ["groups", *arguments, "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: str) -> list[dict[str, Any]]:
    """The rows that `kafkalog groups` prints as JSON."""
    code, out, _ = run(*arguments, "--format", "json")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]
