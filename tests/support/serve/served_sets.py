"""The fixtures that servers serve in tests."""

from collections.abc import Callable
from pathlib import Path

Unpacked = Callable[[str], Path]

LEVELS = ("read_uncommitted", "read_committed")
SETS = ("kafka44", "kafka39zk", "kafka010", "kafka08", "tiered43")


def log_dirs(logs: Path) -> list[str]:
    """The log directories below a folder."""
    found = sorted(str(path.parent) for path in logs.rglob("meta.properties"))
    return found or [str(logs / "log-dirs")]


def served_paths(unpacked: Unpacked, name: str) -> list[str]:
    """The log directories of a set, with its tiered storage."""
    paths = log_dirs(unpacked(f"{name}.logs"))
    if name == "tiered43":
        paths.append(str(unpacked("tiered43.tiered") / "kafka-tiered-storage"))
    return paths
