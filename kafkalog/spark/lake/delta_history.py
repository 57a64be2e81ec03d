"""What the commits of a Delta table say of what it holds, and conditions on its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pyspark.sql import Row

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.delta.delta_positions import RESTORE, DeltaCommit, Parse, positions_at
from kafkalog.spark.delta_commit import newest_commits

if TYPE_CHECKING:
    from delta.tables import DeltaTable

# Commits to look at before all that there are: each is a file.
_NEWEST = 20

_Positions = TypeVar("_Positions")


class History(NamedTuple):
    """What was looked at of a table's history."""

    commits: Sequence[Row]

    @property
    def was_restored(self) -> bool:
        """Whether a RESTORE is among them."""
        return any(commit.operation == RESTORE for commit in self.commits)


def newest_positions(
    table: DeltaTable, parse: Parse[_Positions]
) -> tuple[_Positions | None, History]:
    """Return the newest positions, those that a RESTORE took back left out; None without any."""
    newest = _newest(table, parse)
    positions = _in_history(newest.commits, parse)
    if positions is not None:
        return positions, newest
    everything = History(table.history().collect())
    return _in_history(everything.commits, parse), everything


def _newest(table: DeltaTable, parse: Parse[_Positions]) -> History:
    """Return the newest commits down to one with positions; more of them if there is a RESTORE, for
    what it restored is further back."""
    commits: list[Row] = []
    for commit in newest_commits(table, _NEWEST):
        commits.append(commit)
        if parse(commit.userMetadata) is not None and not History(commits).was_restored:
            break
    return History(commits)


def last_written(history: History, parse: Parse[_Positions]) -> _Positions | None:
    """Return the positions that were written last, whether or not they were taken back."""
    found = (parse(commit.userMetadata) for commit in history.commits)
    return next((positions for positions in found if positions is not None), None)


def _in_history(commits: Sequence[Row], parse: Parse[_Positions]) -> _Positions | None:
    versions = {
        commit.version: DeltaCommit(
            commit.operation, commit.operationParameters, commit.userMetadata
        )
        for commit in commits
    }
    return positions_at(commits[0].version, versions.get, parse)


def any_of(keys: Iterable[TopicPartition]) -> str:
    """Return the condition that a row is of one of the partitions."""
    # Topics have no character that SQL would take for its own.
    numbers: dict[str, list[str]] = {}
    for topic, partition in sorted(keys):
        numbers.setdefault(topic, []).append(str(partition))
    partitions = [
        f"(topic = '{topic}' AND partition IN ({', '.join(found)}))"
        for topic, found in numbers.items()
    ]
    return " OR ".join(partitions) or "false"
