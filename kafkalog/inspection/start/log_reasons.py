"""Why a broker does not load a log, by view `recovery_plan`, and what mends it.

Rules: docs/format.md F960 to F966.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafkalog.format.side_files.quorum_state import QUORUM_STATE
from kafkalog.inspection.metadata.metadata_start import MISNAMED, MOVABLE, UNNAMED, UNUSUAL
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.names import CLUSTER_METADATA, broker_partition_name
from kafkalog.storage.partition_log import LEADER_EPOCHS
from kafkalog.storage.recovery.recovery import IS_DIRECTORY
from kafkalog.storage.recovery.temporary_files import REFUSED_NAME

Row = Mapping[str, Any]


def log_reasons(rows: Iterable[Row], known: Sequence[Reason]) -> Iterator[Reason]:
    """Yield what a broker meets in a log that it cannot load, but for what is known already."""
    unusable = {each.file for each in known}
    for row in rows:
        if row["start_error"] is None:
            continue
        folder = row["directory"]
        log_dir = os.path.dirname(folder)
        if any(path == folder or path.startswith(f"{folder}/") for path in unusable):
            continue
        line = _mending_line(row, folder, log_dir)
        # What is in the way of the metadata ends the process before a directory can go offline.
        ends = bool(row["ends_process"]) or row["topic"] == CLUSTER_METADATA
        yield Reason(folder, row["start_error"], line, log_dir, ends)


# Files that a broker does without: it makes them again, or has no use for them.
_DISPENSABLE = (LEADER_EPOCHS, QUORUM_STATE)
_MOVED = (REFUSED_NAME, MISNAMED, UNUSUAL, UNNAMED, MOVABLE, IS_DIRECTORY)


def _mending_line(row: Row, folder: str, log_dir: str) -> str:
    movable = [_movable(part, folder) for part in re.split(r"; (?=\S+: )", row["start_error"])]
    if movable and all(movable):
        paths = [path for paths in movable for path in paths]
        return " && ".join(move_away(path, log_dir) for path in paths)
    name = broker_partition_name(os.path.basename(folder))
    if name is not None and name.mark is not None:
        return move_away(folder, log_dir)
    if row["topic"] == CLUSTER_METADATA:
        return "kafkalog quorum rebuild --help, or copy the directory of another controller"
    return f"kafkalog salvage {log_dir} --to DIR, or {move_away(folder, log_dir)}"


def _movable(detail: str, folder: str) -> list[str]:
    """Return the files at the beginning of a reason that can be moved away, and nothing is lost:
    those of names that a broker does not take, a snapshot that it does without, and those that it
    makes again."""
    names = detail.split(": ")[0].split(", ")
    is_name = any(each in detail for each in _MOVED)
    paths = [os.path.join(folder, name) for name in names]
    if not (is_name or names[0] in _DISPENSABLE) or not all(map(os.path.exists, paths)):
        return []
    return paths
