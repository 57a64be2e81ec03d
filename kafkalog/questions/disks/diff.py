"""What changed between two copies of a cluster's disks: logs, the metadata, and groups' commits?

Rules: docs/command-line.md F1150 to F1153.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkalog.columns.table_rows import table_batch
from kafkalog.coordination.metadata.cluster_rows import change_rows
from kafkalog.coordination.metadata.image import MetadataImage, differences
from kafkalog.inspection.logs.missing_records import missing_records, missing_words
from kafkalog.inspection.metadata.assigned_partitions import Images, cluster_images
from kafkalog.questions.disks.log_changes import (
    NOT_CONTINUED,
    TABLE,
    LogChange,
    LogPair,
    log_change,
    log_pairs,
)
from kafkalog.questions.groups.lag import CommittedOffsets, committed_offsets
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Rows, RowsInMemory, Views
from kafkalog.words import counted, first_names

_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """The logs of both copies that are compared, where these are not all; and whether the metadata
    and the commits of groups are compared too."""

    before: Sequence[PartitionLog] | None = None
    after: Sequence[PartitionLog] | None = None
    with_cluster: bool = True


@dataclass
class TopicChange:
    """What came and went in a topic: partitions, bytes, records, and which of its logs changed in
    which way. Records are None where old compressed messages hide their number."""

    topic: str | None
    partitions_before: int = 0
    partitions: int = 0
    bytes_before: int = 0
    bytes: int = 0
    records_added: int | None = 0
    records_removed: int | None = 0
    changes: dict[str, int] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a partition, a row of table `log_changes`."""
        self.partitions_before += row["replicas_before"] > 0
        self.partitions += row["replicas"] > 0
        self.bytes_before += row["bytes_before"] or 0
        self.bytes += row["bytes"] or 0
        for name in ("records_added", "records_removed"):
            known, more = getattr(self, name), row[name]
            setattr(self, name, None if None in (known, more) else known + more)
        self.changes[row["change"]] = self.changes.get(row["change"], 0) + 1

    @property
    def is_same(self) -> bool:
        """Whether all logs are the same in both copies."""
        return self.changes.keys() <= {LogChange.SAME.value}


@dataclass(frozen=True, slots=True)
class Diff:
    """Rows of table `log_changes`; what they come to by topic; the changes of the metadata, and the
    commits that moved, came or went, as dictionaries; sentences about what could not be compared;
    and the topics of the later copy's metadata, None without it."""

    logs: Rows
    topics: list[TopicChange]
    metadata: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    not_compared: list[str]
    topics_after: frozenset[str] | None

    @property
    def has_findings(self) -> bool:
        """Whether logs of the later copy do not continue those of the earlier one, or are not
        there although their topics were not deleted. Rule: F1152."""
        return any(map(self._is_finding, self.logs))

    def _is_finding(self, row: Mapping[str, Any]) -> bool:
        change = LogChange(row["change"])
        is_gone = change is LogChange.GONE
        return change in NOT_CONTINUED or (is_gone and not self._is_deleted(row["topic"]))

    def _is_deleted(self, topic: str | None) -> bool:
        return self.topics_after is not None and topic not in self.topics_after

    def words(self, hints: Sequence[str] = ()) -> list[str]:
        """Return lines: what changed in all, which logs do not continue, and what was not compared.
        `hints` are the levels of --by that show more than what is shown already."""
        return [*self._lines(hints)]

    def _lines(self, hints: Sequence[str]) -> Iterator[str]:
        sizes = [sum(getattr(each, name) for each in self.topics) for name in _SIZES]
        added, removed = (
            sum(getattr(each, name) or 0 for each in self.topics)
            for name in ("records_added", "records_removed")
        )
        rows = [*self.logs]
        same = sum(row["change"] == LogChange.SAME.value for row in rows)
        yield (
            f"{counted(len(rows), 'partition')} compared, {same:,} the same: "
            f"{counted(added, 'record')} came, {removed:,} went; {sizes[0]:,} bytes before, "
            f"{sizes[1]:,} after"
        )
        for change, words in _WORDS.items():
            yield from _named(words, change, rows)
        gone = [row for row in rows if row["change"] == LogChange.GONE.value]
        deleted = [row for row in gone if self._is_deleted(row["topic"])]
        yield from _named("deleted, by the metadata", LogChange.GONE, deleted)
        lost = [row for row in gone if not self._is_deleted(row["topic"])]
        yield from _named("not in the later copy", LogChange.GONE, lost)
        if self.metadata:
            kinds = sorted({row["kind"] for row in self.metadata})
            yield (
                f"the metadata has {counted(len(self.metadata), 'change')} ({', '.join(kinds)})"
                f"{_hint('metadata', hints)}"
            )
        if self.groups:
            names = sorted({row["group_id"] for row in self.groups})
            yield (
                f"commits of {counted(len(names), 'group')} moved, came or went "
                f"({first_names(names, _MOST_NAMES)}){_hint('group', hints)}"
            )
        yield from self.not_compared


_SIZES = ("bytes_before", "bytes")
_WORDS = {
    LogChange.MADE_AGAIN: "deleted and created again, with another topic id",
    LogChange.REWRITTEN: "other records at the same offsets, which no leader epoch explains",
    LogChange.TRUNCATED: "truncated: the end of the earlier copy is not in the later one",
    LogChange.LOST_RECORDS: "records are missing in the middle of the log, which was not cleaned",
    LogChange.NEW: "not in the earlier copy",
}


def _hint(level: str, hints: Sequence[str]) -> str:
    return f": --by {level}" if level in hints else ""


def _named(words: str, change: LogChange, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line with the first of the logs that changed so, if there are any."""
    names = [_name(row) for row in rows if row["change"] == change.value]
    if names:
        yield f"{words}: {first_names(names, _MOST_NAMES)}"


def _name(row: Mapping[str, Any]) -> str:
    name = f"{row['topic']}-{row['partition']}"
    until = row["continues_until"]
    return name if until is None else f"{name} from offset {until} on"


def diff(before: Views, after: Views, request: DiffRequest) -> Diff:
    """Return what changed from one copy to the other."""
    earlier = before.logs if request.before is None else request.before
    later = after.logs if request.after is None else request.after
    rows = [*after.tasks(_rows_of, log_pairs(earlier, later))]
    topics: dict[str | None, TopicChange] = {}
    for row in rows:
        topics.setdefault(row["topic"], TopicChange(row["topic"])).add(row)
    not_compared = [*_unread(rows)]
    metadata: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    later_images = cluster_images(after.logs)
    if request.with_cluster:
        images = cluster_images(before.logs), later_images
        metadata = [*_metadata_changes(*images)]
        groups = [*_group_changes(committed_offsets(before), committed_offsets(after))]
        not_compared += _missing(before, after, images)
    names = frozenset().union(*map(_topics, later_images.values())) if later_images else None
    kept = RowsInMemory(pa.Table.from_batches([table_batch(TABLE, rows, {})]))
    return Diff(kept, [*topics.values()], metadata, groups, not_compared, names)


def _rows_of(pair: LogPair) -> Iterator[dict[str, Any]]:
    yield log_change(pair)


def _unread(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    damaged = [row for row in rows if row["unread_bytes"]]
    if damaged:
        size = sum(row["unread_bytes"] for row in damaged)
        names = first_names([f"{row['topic']}-{row['partition']}" for row in damaged], _MOST_NAMES)
        yield (
            f"not compared: {counted(size, 'byte')} outside sound batches, in {names}: "
            "kafkalog check says what they are"
        )


def _metadata_changes(before: Images, after: Images) -> Iterator[dict[str, Any]]:
    """Yield the changes of each cluster that both copies have the metadata of. Rule: F1153."""
    for cluster_id in before.keys() & after.keys():
        for change in differences(before[cluster_id], after[cluster_id]):
            for row in change_rows(change):
                yield {"cluster_id": cluster_id, **row._asdict()}


def _topics(image: MetadataImage) -> set[str]:
    return {row["topic"] for row in image.tables["topic"].values()}


def _group_changes(before: CommittedOffsets, after: CommittedOffsets) -> Iterator[dict[str, Any]]:
    places = sorted(before.keys() | after.keys(), key=lambda at: (at[0].group_id, *at[1:]))
    for place in places:
        old, new = before.get(place), after.get(place)
        if old == new:
            continue
        key, topic, partition = place
        change = "new" if old is None else "gone" if new is None else "moved"
        if old is not None and new is not None and new < old:
            change = "moved_back"
        yield {
            "cluster_id": key.cluster_id,
            "group_id": key.group_id,
            "topic": topic,
            "partition": partition,
            "change": change,
            "committed_offset_before": old,
            "committed_offset": new,
            "records_passed": None if old is None or new is None else new - old,
        }


def _missing(before: Views, after: Views, images: tuple[Images, Images]) -> Iterator[str]:
    """Yield what could not be compared: the metadata, where a copy does not have it, and commits
    that are missing. Rule: F940."""
    for name, views, found in (("earlier", before, images[0]), ("later", after, images[1])):
        if not found:
            yield (
                f"not compared: topics, configs and ACLs: the {name} copy has no "
                "__cluster_metadata that can be read"
            )
        missing = missing_records(list(views.logs), CONSUMER_OFFSETS)
        if missing:
            yield f"commits of groups in the {name} copy: {missing_words(missing)}"
        elif not any(log.topic == CONSUMER_OFFSETS for log in views.logs):
            yield f"not compared: commits of groups: the {name} copy has no {CONSUMER_OFFSETS}"
