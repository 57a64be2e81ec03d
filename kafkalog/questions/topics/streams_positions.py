"""How far are applications of Kafka Streams, by offsets and by the time of records?

By what they commit with their offsets. Rule: docs/format.md F1254.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.inspection.logs.missing_records import note_missing_records
from kafkalog.messages.clients.streams_commits import read_streams_commit
from kafkalog.questions.groups.group_parts import refuse_unknown_groups
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import Batches, Rows, RowsInMemory, Views, rows_of_view
from kafkalog.words import counted, time_text

TABLE = "streams_positions"
_VIEW = "offset_commits"
_COLUMNS = (
    *("group_id", "topic", "partition", "committed_offset", "commit_timestamp_ms", "metadata"),
    *("is_tombstone", "internal_partition", "effective_offset"),
)


@dataclass(frozen=True, slots=True)
class StreamsPositions:
    """Rows of the table, and whether `__consumer_offsets` was there."""

    rows: Rows
    has_commits: bool

    def words(self) -> list[str]:
        """Return a line: how many applications there are, and up to when the first has read."""
        if not self.has_commits:
            return [f"{CONSUMER_OFFSETS} is not here: applications of Kafka Streams commit there"]
        rows = [*self.rows]
        applications = len({row["application_id"] for row in rows})
        line = (
            f"{counted(applications, 'application')} of Kafka Streams with "
            f"{counted(len(rows), 'partition')}"
        )
        times = [row["stream_time_ms"] for row in rows if row["stream_time_ms"] is not None]
        last = f", the least far at {time_text(min(times))} in the time of records" if times else ""
        return [line + last]


def streams_positions(views: Views, groups: Sequence[str] = ()) -> StreamsPositions:
    """Return how far applications are, those with these ids if any are given, by the last commit in
    force of each partition. Raises OptionError for one without commits, LogDirError
    where records are missing that may be about it."""
    if not any(log.topic == CONSUMER_OFFSETS for log in views.logs):
        return StreamsPositions(RowsInMemory.of(TABLE, []), has_commits=False)
    note_missing_records(views.logs, CONSUMER_OFFSETS)
    found = rows_of_view(views, _VIEW, _COLUMNS, _of_streams, arrow_schema(_VIEW, _COLUMNS))
    last: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in found:
        _keep(last, row)
    refuse_unknown_groups(views, "--group", {*groups} - {place[0] for place in last})
    rows = [_row(last[place]) for place in sorted(last) if not groups or place[0] in groups]
    return StreamsPositions(
        RowsInMemory.of(TABLE, [row for row in rows if row is not None]), has_commits=True
    )


def _of_streams(batches: Batches) -> Batches:
    """Yield the last commit in force of each partition that a task reads."""
    last: dict[tuple[str, str, int], dict[str, Any]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            if row["effective_offset"] is not None and row["topic"] is not None:
                _keep(last, row)
    if last:
        schema = arrow_schema(_VIEW, _COLUMNS)
        yield pa.RecordBatch.from_pylist([*last.values()], schema=schema)


def _keep(last: dict[tuple[str, str, int], dict[str, Any]], row: dict[str, Any]) -> None:
    place = row["group_id"], row["topic"], row["partition"]
    if place not in last or last[place]["effective_offset"] <= row["effective_offset"]:
        last[place] = row


def _row(commit: dict[str, Any]) -> dict[str, Any] | None:
    read = None if commit["is_tombstone"] else read_streams_commit(commit["metadata"])
    if read is None:
        return None
    return {
        "application_id": commit["group_id"],
        "topic": commit["topic"],
        "partition": commit["partition"],
        "committed_offset": commit["committed_offset"],
        "stream_time_ms": read.stream_time_ms,
        "processor_times_ms": read.processor_times,
        "committed_ms": commit["commit_timestamp_ms"],
    }
