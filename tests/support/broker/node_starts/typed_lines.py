"""The lines that `kafkalog recover` shows for a node, typed as an operator would."""

import json
import subprocess
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog

# Cases whose lines were typed, and a broker of 4.4.0 started with all it had.
MENDED = (
    *("01-lost-and-found", "02a-meta-missing-d2", "02d-cluster-id-d2", "02f-directory-id-twice"),
    *("02g-directory-id-none", "03a-partition-metadata-missing", "03b-partition-metadata-empty"),
    *("04a-double", "09e-leader-epochs-garbage-in-d1", "17a-foo-checkpoint"),
    *("19a-recovery-point-version-7", "23-log-dirs-swapped", "43a-log-name"),
    *("25-node-id-config", "33a-log-start-beyond-end", "51a-newest-checkpoint-torn"),
)
_COMMANDS = ("mv ", "printf ", "echo ", "chmod ", "chown ", "sed ")


def recovered(folder: Path, *more: object) -> str:
    """Return what the command prints of a folder with d1, d2 and server.properties."""
    given = ["recover", folder / "d1", folder / "d2", *more, "--processes", "1"]
    given += ["--server-properties", folder / "server.properties", "--kafka", "4.4.0"]
    return CliRunner().invoke(kafkalog, list(map(str, given))).stdout


def type_lines(folder: Path) -> int:
    """Type each line once that begins with a command; return how many there were."""
    lines = [line.strip() for line in recovered(folder).splitlines() if line.startswith("    ")]
    typed = [line for line in dict.fromkeys(lines) if line.startswith(_COMMANDS)]
    for line in typed:
        subprocess.run(line, shell=True, cwd=folder, check=True)
    return len(typed)


def partitions(folder: Path) -> list[dict[str, Any]]:
    """Return the rows about all partitions."""
    said = recovered(folder, "--all", "--format", "json")
    return [json.loads(line) for line in said.splitlines()]
