"""Are positions that others keep still in the logs, and how far behind are they?

Others than consumer groups: checkpoints of Spark's queries, the commits of Delta and Iceberg
tables, source connectors of Kafka Connect, and MirrorMaker. Rules: docs/format.md F1238 to F1243.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from glob import escape, iglob
from itertools import chain, islice
from typing import Any, NamedTuple

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.errors import LogDirError, refuse_unknown
from kafkalog.inspection.lag.lag_columns import with_accounts
from kafkalog.inspection.logs.log_offsets import log_end_offset
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.metadata.cluster_history import cluster_histories
from kafkalog.lake.positions.spark_checkpoint import SparkCheckpoint
from kafkalog.lake.positions.table_commits import (
    TableCommits,
    catalog_commits,
    is_table,
    table_commits,
)
from kafkalog.messages.clients.kept_positions import (
    KeptPosition,
    TopicKind,
    TopicPositions,
    in_order,
    kind_of_topic,
)
from kafkalog.questions.positions.commit_history import log_begin
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.partition_log import PartitionLog, topic_id
from kafkalog.views.engine import AskedView, Rows, RowsInMemory, Views
from kafkalog.words import counted, first_names, time_text

TABLE = "kept_positions"
_RECORD = ("key", "value", "timestampMs", "offset", "partition")
_MOST_SENTENCES, _MOST_NEAR, _MOST_LISTED = 20, 5, 200


class Status(StrEnum):
    """What the logs say of a position, the first that holds. F1243"""

    NO_LOG = "no_log"
    TOPIC_DELETED = "topic_deleted"
    TOPIC_MADE_AGAIN = "topic_made_again"
    AHEAD = "ahead"
    DELETED = "deleted"
    NEVER_WRITTEN = "never_written"
    BEHIND = "behind"
    AT_END = "at_end"


_FINDINGS = (Status.TOPIC_DELETED, Status.TOPIC_MADE_AGAIN, Status.AHEAD, Status.DELETED)


@dataclass(frozen=True, slots=True)
class PositionsRequest:
    """Directories with checkpoints and tables; topics that have the offsets of Connect's connectors
    beside those that are known by their names; a catalog of Iceberg and a table of it; and the time
    of the run."""

    keepers: Sequence[str]
    now_ms: int
    connect_topics: Sequence[str] = ()
    catalog_table: tuple[str, str] | None = None


@dataclass
class _Kept:
    """The positions, and what else was found: lines about what has none."""

    positions: list[KeptPosition] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


class _Topics(NamedTuple):
    """By the clusters' metadata: when topics that are there were created, as far as the logs go
    back, and the names of those that were deleted."""

    created_ms: Mapping[str, int]
    deleted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Positions:
    """Rows of table `kept_positions`, and lines about what has no position in a topic."""

    rows: Rows
    lines: Sequence[str]

    @property
    def has_findings(self) -> bool:
        """Whether a position is not in its log any more."""
        return any(row["status"] in _FINDINGS for row in self.rows)

    def words(self) -> Iterator[str]:
        """Yield lines: the findings, how many positions have which status, and what was not
        compared."""
        rows = [*self.rows]
        found = [row for row in rows if row["status"] in _FINDINGS]
        for row in found[:_MOST_SENTENCES]:
            name = f" ({row['name']})" if row["name"] else ""
            place = f"{row['topic']}-{row['partition']}"
            yield f"{row['kept_in']}{name}: {place}: {row['words']}"
        if len(found) > _MOST_SENTENCES:
            yield f"{counted(len(found) - _MOST_SENTENCES, 'finding')} more: --format json has all"
        counts = Counter(row["status"] for row in rows)
        shown = ", ".join(f"{counts[each]:,} {each}" for each in Status if each in counts)
        yield f"{counted(len(rows), 'position')}: {shown or 'none'}"
        yield from self.lines


def divided_paths(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the checkpoints and tables among some paths, and the other paths, which are those of
    logs. Raises LogDirError without any of the latter."""
    keepers = [path for path in paths if _is_keeper(path)]
    others = [path for path in paths if path not in keepers]
    if not others:
        raise LogDirError(
            f"{', '.join(paths)}: only checkpoints and tables: give the log directories of the "
            "brokers too, with which their positions are compared"
        )
    return keepers, others


def _is_keeper(path: str) -> bool:
    return SparkCheckpoint.at(path) is not None or is_table(path)


@contextmanager
def keepers_suggested(paths: Sequence[str]) -> Iterator[None]:
    """Where one of some paths has no logs, raise LogDirError with the checkpoints and tables up to
    two levels below it, or else near it, if there are any."""
    try:
        yield
    except LogDirError as error:
        wrong = [path for path in paths if path in str(error) and not is_remote(path)]
        near = [
            _first_keepers(path, "*", "*/*") or _first_keepers(os.path.dirname(path), "*", "*/*")
            for path in wrong
        ]
        if names := sorted({*chain.from_iterable(near)}):
            meant = first_names(names, _MOST_NEAR)
            places = ", ".join(wrong)
            raise LogDirError(
                f"{places}: neither logs nor positions are there; did you mean {meant}?"
            ) from None
        raise


def _first_keepers(path: str, *patterns: str) -> list[str]:
    """Return the checkpoints and tables among what is below a path on this machine; a mistaken one
    can be a whole disk."""
    below = chain.from_iterable(iglob(os.path.join(escape(path), each)) for each in patterns)
    return [found for found in islice(below, _MOST_LISTED) if _is_keeper(found)]


def positions(views: Views, request: PositionsRequest) -> Positions:
    """Return the positions against the logs. Raises StatePositionError for a checkpoint or a commit
    that cannot be read, and OptionError for a topic that is not there."""
    logs = best_logs(views.logs)
    kept = _kept_in_directories(request, sorted({log.topic or "" for log in logs}))
    _take_topics(kept, views, logs, request.connect_topics)
    by_log: dict[tuple[str, int], list[KeptPosition]] = defaultdict(list)
    for position in in_order(kept.positions):
        by_log[position.topic, position.partition].append(position)
    known = _topics(views)
    of_logs = {log.topic_partition: log for log in logs}
    run = partial(_rows, logs=of_logs, topics=known, request=request)
    rows = [row for found in views.tasks(run, sorted(by_log.items())) for row in found]
    rows.sort(key=lambda row: (row["keeper"], row["kept_in"], row["name"] or ""))
    return Positions(RowsInMemory.of(TABLE, rows), kept.lines)


def refuse_without_positions(found: Positions, places: Sequence[str]) -> None:
    """Raise LogDirError where no position was found in these places."""
    if found.rows.is_empty:
        raise LogDirError(
            f"{', '.join(places)}: no position in a topic there: give a Spark checkpoint, a Delta "
            "or Iceberg table, or log directories with the topics of Connect or MirrorMaker"
            f"{''.join(f'; {line}' for line in found.lines)}"
        )


def _kept_in_directories(request: PositionsRequest, topics: Sequence[str]) -> _Kept:
    """Return what checkpoints and tables have. A table of a query whose checkpoint is there has the
    offsets of its last batch."""
    kept, paths = _Kept(), request.keepers
    checkpoints = [found for path in paths if (found := SparkCheckpoint.at(path)) is not None]
    for checkpoint in checkpoints:
        kept.positions += checkpoint.positions()
        if checkpoint.other_sources:
            others = counted(checkpoint.other_sources, "source")
            kept.lines.append(f"{checkpoint.directory.path}: {others} of the query read no topic")
        if checkpoint.planned is not None:
            kept.lines.append(
                f"{checkpoint.directory.path}: batch {checkpoint.planned} is planned and not "
                "committed: the query does it again when it starts, up to planned_offset"
            )
    by_query = {found.query_id: found for found in checkpoints if found.query_id is not None}
    tables = [commits for path in paths if (commits := table_commits(path)) is not None]
    if request.catalog_table is not None:
        tables.append(catalog_commits(*request.catalog_table))
    for commits in tables:
        kept.positions += [*commits.positions, *commits.control_positions(topics)]
        # kafkalog's own commits have a writer too.
        batches = {} if commits.positions else commits.batches
        for writer, (batch, at_ms) in batches.items():
            _take_batch(kept, commits, writer, by_query.get(writer), batch, at_ms)
        if commits.is_empty:
            kept.lines.append(f"{commits.path}: no commit that is there has positions in topics")
    return kept


def _take_batch(
    kept: _Kept,
    commits: TableCommits,
    writer: str,
    checkpoint: SparkCheckpoint | None,
    batch: int,
    at_ms: int | None,
) -> None:
    """Take the last batch of a writer of a table."""
    if checkpoint is None:
        kept.lines.append(
            f"{commits.path}: has batch {batch} of writer {writer}, whose checkpoint is not among "
            "the paths: that alone says which offsets these are"
        )
        return
    if batch not in checkpoint.batches:
        kept.lines.append(
            f"{commits.path}: has batch {batch} of query {writer}, which "
            f"{checkpoint.directory.path} has no longer"
        )
        return
    kept.positions += [
        KeptPosition(commits.keeper, commits.path, writer, *place, offset, at_ms, batch)
        for place, offset in sorted(checkpoint.offsets(batch).items())
    ]


def _take_topics(
    kept: _Kept, views: Views, logs: Sequence[PartitionLog], more: Sequence[str]
) -> None:
    """Take what Connect and MirrorMaker keep in topics among the logs."""
    kinds = {topic: kind_of_topic(topic) for topic in {log.topic or "" for log in logs}}
    refuse_unknown("--connect-topic", more, kinds)
    kinds |= dict.fromkeys(more, TopicKind.CONNECT_OFFSETS)
    for topic, kind in sorted(kinds.items()):
        if kind is None:
            continue
        found = TopicPositions(topic, kind)
        (rows,) = views.rows(AskedView("records", _RECORD, options={"subscribe": topic}))
        # A key is always in the same partition.
        for row in sorted(rows, key=lambda row: (row["partition"], row["offset"])):
            found.add(row["key"], row["value"], row["timestampMs"])
        kept.positions += found.positions
        if found.others:
            others = counted(found.others, "key")
            kept.lines.append(f"{topic}: {others} about something else than a position in a topic")
        if found.unread:
            kept.lines.append(f"{topic}: {counted(found.unread, 'record')} cannot be read")


def _topics(views: Views) -> _Topics:
    """Return what the cluster's metadata says of topics, as far as its log goes back."""
    created: dict[str, int] = {}
    deleted: set[str] = set()
    for history in cluster_histories(views.logs).values():
        for key, name in history.names.items():
            if key in history.deleted:
                deleted.add(name)
            elif key in history.created_ms:
                created[name] = history.created_ms[key]
        deleted -= {row["topic"] for row in history.image.rows("topic")}
    return _Topics(created, frozenset(deleted))


def _rows(
    item: tuple[tuple[str, int], Sequence[KeptPosition]],
    logs: Mapping[Any, PartitionLog],
    topics: _Topics,
    request: PositionsRequest,
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows about a partition, whose log is read once."""
    key, found = item
    log = logs.get(key)
    offsets = [each.next_offset for each in found]
    table = with_accounts(
        pa.table({"committed_offset": of_values(offsets, pa.int64())}),
        log,
        read_committed=False,
        now_ms=request.now_ms,
    )
    names = ("log_start_offset", "high_watermark", "readable_records", "below_log_start")
    accounts = zip(*(table[name].to_pylist() for name in names), strict=True)
    log_end = None if log is None else log_end_offset(log, check_crcs=False)
    begin = log_begin(log)
    own_id = None if log is None else topic_id(log)
    rows = []
    for position, (start, _, readable, below) in zip(found, accounts, strict=True):
        row = {
            **position._asdict(),
            "keeper": str(position.keeper),
            "log_topic_id": own_id,
            "log_start_offset": start,
            "log_end_offset": log_end,
            "records_behind": readable,
            "deleted_records": below,
            "ahead_by": None if log_end is None else max(position.next_offset - log_end, 0),
        }
        made_ms = topics.created_ms.get(position.topic)
        status = _status(position, row, made_ms, is_deleted=position.topic in topics.deleted)
        if status is Status.TOPIC_MADE_AGAIN:
            # Its offsets are of another topic.
            row |= dict.fromkeys(("records_behind", "deleted_records", "ahead_by"))
        since_ms = begin.since_ms if begin.log_start == start else None
        row["status"] = str(status)
        row["deleted_before_ms"] = since_ms if status is Status.DELETED else None
        row["words"] = _words(position, row, status, made_ms)
        rows.append(row)
    yield rows


def _status(
    position: KeptPosition, row: Mapping[str, Any], made_ms: int | None, *, is_deleted: bool
) -> Status:
    """Return the status of a position. F1243"""
    own_id = row["log_topic_id"]
    is_other = position.topic_id is not None and own_id not in (None, position.topic_id)
    is_older = position.at_ms is not None and made_ms is not None and position.at_ms < made_ms
    if is_deleted:
        return Status.TOPIC_DELETED
    if is_other or (is_older and row["log_end_offset"] is not None):
        return Status.TOPIC_MADE_AGAIN
    if row["log_end_offset"] is None:
        return Status.NO_LOG
    if row["ahead_by"]:
        return Status.AHEAD
    if row["deleted_records"]:
        return Status.DELETED
    if not row["log_end_offset"]:
        return Status.NEVER_WRITTEN
    return Status.BEHIND if row["records_behind"] else Status.AT_END


def _words(
    position: KeptPosition, row: Mapping[str, Any], status: Status, made_ms: int | None
) -> str:
    """Return a sentence about a position."""
    at = position.next_offset
    if status is Status.DELETED:
        since = row["deleted_before_ms"]
        when = "" if since is None else f", by {time_text(since)} at the latest"
        return (
            f"{counted(row['deleted_records'], 'message')} after position {at} were deleted"
            f"{when}: the log begins at {row['log_start_offset']}"
        )
    if status is Status.AHEAD:
        return (
            f"position {at} is {counted(row['ahead_by'], 'offset')} beyond the end of the log, "
            f"{row['log_end_offset']}: the log was truncated, or the topic was made again"
        )
    if status is Status.TOPIC_MADE_AGAIN:
        when = "" if made_ms is None else f" at {time_text(made_ms)}"
        return f"position {at} is of an earlier topic of this name: it was made again{when}"
    return {
        Status.NO_LOG: "the log is not in the input",
        Status.TOPIC_DELETED: f"position {at} is of a topic that was deleted",
        Status.NEVER_WRITTEN: "nothing was ever written to the log",
        Status.BEHIND: f"{counted(row['records_behind'] or 0, 'record')} left to read",
    }.get(status, "everything is read")
