"""What has MirrorMaker copied, how far are groups there, and when did it last run?

By the topics that it keeps itself: offset syncs, checkpoints and heartbeats. Rule: docs/format.md
F1253.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.messages.clients.connect_records import TopicRecord
from kafkalog.messages.clients.mirror_records import (
    CHECKPOINT,
    HEARTBEAT,
    OFFSET_SYNC,
    Values,
    mirror_kind,
    read_mirror_record,
)
from kafkalog.questions.topics.last_records import last_records, topics_of
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Rows, RowsInMemory, Views
from kafkalog.words import counted, time_text

TABLES = {
    OFFSET_SYNC: "mirror_offset_syncs",
    CHECKPOINT: "mirror_checkpoints",
    HEARTBEAT: "mirror_heartbeats",
}


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Rows of each table by what its topics keep; the topics that were read, and how many of their
    records are not of MirrorMaker's form."""

    rows: dict[str, Rows]
    topics: Sequence[str]
    others: int

    def words(self) -> list[str]:
        """Return lines: what was copied, from where, and when MirrorMaker last wrote."""
        return [*self._lines()]

    def _lines(self) -> Iterator[str]:
        if not self.topics:
            yield from self.notes()
            return
        syncs, checkpoints, beats = (self.rows[kind] for kind in TABLES)
        groups = len({row["group_id"] for row in checkpoints})
        yield (
            f"{counted(len(syncs.table), 'partition')} copied, "
            f"checkpoints of {counted(groups, 'group')}, "
            f"heartbeats of {counted(len(beats.table), 'flow')}, by {', '.join(self.topics)}"
        )
        times = [row["heartbeat_ms"] for row in beats if row["heartbeat_ms"] is not None]
        if times:
            yield f"last heartbeat: {time_text(max(times))}"
        yield from self.notes()

    def notes(self) -> Iterator[str]:
        """Yield lines about what the rows do not show: that no topic has such a name, and records
        that were not read."""
        if not self.topics:
            yield (
                "no topic here has a name of MirrorMaker's: mm2-offset-syncs.CLUSTER.internal, "
                "CLUSTER.checkpoints.internal or heartbeats"
            )
        if self.others:
            yield f"not read: {counted(self.others, 'record')} that MirrorMaker did not write"


def mirrors(views: Views, logs: Sequence[PartitionLog] | None = None) -> Mirrors:
    """Return what MirrorMaker's topics say, by the last record of each key and the best replica of
    each partition; only those among `logs`, if these are given."""
    given = views.logs if logs is None else logs
    chosen = [log for log in given if log.topic is not None and mirror_kind(log.topic) is not None]
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in TABLES}
    others = 0
    for record in last_records(views, chosen):
        values = read_mirror_record(record.topic, record.key, record.value)
        kind = mirror_kind(record.topic)
        if values is None or kind is None:
            others += 1
        elif values[1] is not None:
            found[kind].append(_row(kind, record, *values))
    rows: dict[str, Rows] = {
        kind: RowsInMemory.of(TABLES[kind], each) for kind, each in found.items()
    }
    return Mirrors(rows, topics_of(chosen), others)


def _row(kind: str, record: TopicRecord, key: Values, value: Values | None) -> dict[str, Any]:
    value = value or {}
    written = {
        "mirror_topic": record.topic,
        "written_ms": record.timestamp_ms,
        "offset": record.offset,
    }
    if kind == HEARTBEAT:
        return {
            "source_cluster": key["sourceClusterAlias"],
            "target_cluster": key["targetClusterAlias"],
            "heartbeat_ms": value["timestamp"],
            **written,
        }
    offsets = {"source_offset": value["upstreamOffset"], "target_offset": value["offset"]}
    place = {"topic": key["topic"], "partition": key["partition"]}
    if kind == OFFSET_SYNC:
        return {**place, **offsets, **written}
    source = record.topic.removesuffix(".checkpoints.internal")
    return {
        "group_id": key["group"],
        **place,
        **offsets,
        "source_cluster": source,
        "metadata": value["metadata"],
        **written,
    }
