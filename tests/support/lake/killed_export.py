"""A run of an export in a process of its own, which is killed at one point.

    python -m tests.support.lake.killed_export TABLE POINT OPTIONS PATH...

OPTIONS are those of the run as JSON. Without a point of that name the run ends as usual.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafkalog.lake.export_task import ExportTask
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet.parquet_table import ParquetTable
from tests.support.lake.exports import exported
from tests.support.repository import ROOT

# Where the process is killed: before a call of a method, and before which one of its calls.
POINTS: dict[str, tuple[type, str, int]] = {
    "planned": (ParquetTable, "prepare", 1),
    "one of several tasks is done": (ExportTask, "written_files", 2),
    "a file is begun": (OutputDirectory, "create", 2),
    "all tasks are done": (ParquetTable, "commit", 1),
    "files are on disk": (OutputDirectory, "locked", 1),
    "locked": (OutputDirectory, "replace", 1),
    "committed": (ParquetTable, "_finish", 1),
    "old files are removed": (ParquetTable, "_waiting", 1),
    "one of several files is moved": (ParquetTable, "_move", 2),
    "all files are moved": (ParquetTable, "_report", 2),
    "about to report": (OutputDirectory, "replace", 2),
}


def killed_run(table: Path, point: str, options: dict[str, Any], paths: Sequence[Path]) -> None:
    """Start such a process, and wait until it is killed."""
    arguments = [str(table), point, json.dumps(options), *map(str, paths)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.lake.killed_export", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def _kill_at(owner: type, name: str, number: int) -> None:
    calls = 0
    usual: Callable[..., Any] = getattr(owner, name)

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(*arguments, **named)

    setattr(owner, name, counted)


if __name__ == "__main__":
    given_table, given_point, given_options, *given_paths = sys.argv[1:]
    if given_point in POINTS:
        _kill_at(*POINTS[given_point])
    exported(
        ParquetTable(given_table), [Path(each) for each in given_paths], **json.loads(given_options)
    )
