"""The file `quorum-state` beside a log of `__cluster_metadata`: whom a node follows or voted for.

Rule: docs/format.md F767.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import CorruptDataError

QUORUM_STATE = "quorum-state"
_NONE = -1


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The file's fields. `version` is 0 with static voters, whose ids are `voters`, and 1 with
    dynamic ones, which are not in the file. Ids are None where there is none."""

    version: int
    leader_id: int | None
    leader_epoch: int
    voted_id: int | None
    voted_directory_id: str | None
    voters: tuple[int, ...]


# Fields that a broker misses in a version, beside those of all.
_NEEDED = {0: ("clusterId", "appliedOffset", "currentVoters"), 1: ("votedDirectoryId",)}


def read_quorum_state(text: str) -> QuorumState:
    """Return the file's fields: as a broker does, of the first line, and of what begins there.
    Raises CorruptDataError, its position the line."""
    try:
        line, *_ = text.splitlines() or [""]
        content, _ = json.JSONDecoder().raw_decode(line.lstrip())
        version = content["data_version"]
        if isinstance(version, (str, bool)) or version is None:
            # A broker takes everything but a number for 0.
            version = 0
        if version not in (0, 1):
            raise CorruptDataError(
                "version", f"version {str(version)[:80]!r}, not 0 or 1", position=1
            )
        for name in _NEEDED[version]:
            content[name]
        voters = content.get("currentVoters") or ()
        return QuorumState(
            version,
            _id(content["leaderId"]),
            int(content["leaderEpoch"]),
            _id(content["votedId"]),
            content.get("votedDirectoryId"),
            tuple(sorted(int(each["voterId"]) for each in voters)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        detail = f"{text[:80]!r} is not a quorum's state"
        raise CorruptDataError("malformed", detail, position=1) from None


def write_quorum_state(state: QuorumState) -> str:
    """Return the file's text."""
    content: dict[str, Any] = {
        "leaderId": _number(state.leader_id),
        "leaderEpoch": state.leader_epoch,
        "votedId": _number(state.voted_id),
    }
    if state.version == 0:
        voters = [{"voterId": each} for each in state.voters]
        content = {"clusterId": "", **content, "appliedOffset": 0, "currentVoters": voters}
    else:
        content["votedDirectoryId"] = state.voted_directory_id
    return json.dumps({**content, "data_version": state.version}, separators=(",", ":"))


def _number(node_id: int | None) -> int:
    return _NONE if node_id is None else node_id


def _id(value: Any) -> int | None:
    number = int(value)
    return None if number == _NONE else number
