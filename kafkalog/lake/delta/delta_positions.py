"""Up to which offsets a Delta table holds topics, by the texts of its commits.

Delta's log is a file of JSON for each commit, `_delta_log/00000000000000000007.json`; its action
`commitInfo` has the text, `userMetadata` (PROTOCOL.md, "Commit Provenance Information").
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kafkalog.errors import StatePositionError
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.storage.log_dir.table_formats import DELTA_LOG

RESTORE = "RESTORE"
_COMMIT = re.compile(rf"{DELTA_LOG}/([0-9]{{20}})\.json")

_Positions = TypeVar("_Positions")
# The positions in a commit's text, None where it has none.
Parse = Callable[[str | None], _Positions | None]


class DeltaCommit(NamedTuple):
    """What a commit says of itself."""

    operation: str | None
    parameters: dict[str, Any]
    text: str | None


def positions_at(
    version: int, commit_of: Callable[[int], DeltaCommit | None], parse: Parse[_Positions]
) -> _Positions | None:
    """Return the newest positions at a version, those that a RESTORE took back left out; None where
    `commit_of` has no commit with positions that counts."""
    while (commit := commit_of(version)) is not None:
        positions = parse(commit.text)
        if positions is not None:
            return positions
        if commit.operation == RESTORE:
            # One to a time names no version, and what it restored is not known here.
            restored = commit.parameters.get("version")
            version = -1 if restored is None else int(restored)
        else:
            version -= 1
    return None


def read_positions(directory: OutputDirectory, parse: Parse[_Positions]) -> _Positions:
    """Return the positions of the table in a directory, without Spark.

    Raises StatePositionError where no commit that is still there has any.
    """
    paths = [directory.relative(each) for each in directory.files(DELTA_LOG)]
    versions = [int(match[1]) for path in paths if (match := _COMMIT.fullmatch(path))]
    found = positions_at(
        max(versions, default=-1), lambda version: _read_commit(directory, version), parse
    )
    if found is None:
        raise StatePositionError(
            f"{directory.path}: no commit in its {DELTA_LOG} has the offsets that the table holds: "
            "Delta has removed it, or kafkalog does not write this table. The next run of the job "
            "that writes it commits them again if it finds something new"
        )
    return found


def _read_commit(directory: OutputDirectory, version: int) -> DeltaCommit | None:
    path = f"{DELTA_LOG}/{version:020d}.json"
    data = directory.read(path) if version >= 0 else None
    if data is None:
        return None
    try:
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
        info: dict[str, Any] = next(
            (each["commitInfo"] for each in actions if "commitInfo" in each), {}
        )
        return DeltaCommit(
            info.get("operation"), info.get("operationParameters") or {}, info.get("userMetadata")
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise StatePositionError(
            f"{directory.location(path)} is damaged ({type(error).__name__}: {error}): restore it "
            "from a copy"
        ) from None
