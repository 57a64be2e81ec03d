"""How far the commits in the input tell what was, and in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import DataFrame

from kafkalog.storage.names import CONSUMER_OFFSETS


class CommitReach(NamedTuple):
    """From when on the commits of all groups are there, None for at all times; how many damaged
    places hide some; which partitions of `__consumer_offsets` the input lacks, as far as it shows.
    """

    complete_from_ms: int | None
    damaged_ranges: int
    missing: tuple[int, ...]


def commit_reach(complete_from: DataFrame) -> CommitReach:
    """Of all logs that commits_complete_from has rows of."""
    rows = complete_from.collect()
    times = [row.complete_from_ms for row in rows if row.complete_from_ms is not None]
    found = {row.internal_partition for row in rows}
    missing = sorted(set(range(max(found, default=-1) + 1)) - found)
    damaged = sum(row.damaged_ranges for row in rows)
    return CommitReach(max(times, default=None), damaged, tuple(missing))


def reach_words(reach: CommitReach, moment: int | None) -> str:
    """The same as lines, for an answer about a moment, None for what is there now."""
    lines = [_completeness(reach.complete_from_ms, moment)]
    if reach.damaged_ranges:
        lines.append(
            f"commits: {reach.damaged_ranges} damaged places in {CONSUMER_OFFSETS} hide some, and "
            "with them whole groups perhaps: see jobs/validate_checksums.py"
        )
    if reach.missing:
        numbers = ", ".join(map(str, reach.missing))
        lines.append(
            f"commits: partitions {numbers} of {CONSUMER_OFFSETS} are not in the input, nor are "
            "the groups in them: give the log directories of all brokers"
        )
    return "\n".join(lines)


def _completeness(complete_from_ms: int | None, moment: int | None) -> str:
    if complete_from_ms is None:
        return "commits: none has been removed by cleaning"
    begin = f"commits: complete from {_time(complete_from_ms)} on"
    if moment is None or moment >= complete_from_ms:
        return begin
    return f"{begin}: of {_time(moment)} older ones that were replaced since can be missing"


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
