"""The part of a report about consumer groups, from the views of `__consumer_offsets`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.commit_events import EventKind, HistoryMoments
from kafkalog.coordination.groups.group_records import (
    GROUP_RECORD_COLUMNS,
    GroupMember,
    LatestRecords,
    group_members,
    known_groups,
)
from kafkalog.coordination.groups.group_statuses import GroupStatus, group_statuses, partition_rank
from kafkalog.coordination.groups.lag_status import LagSettings, LagStatus
from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
from kafkalog.inspection.groups.complete_from import complete_from
from kafkalog.inspection.lag.history_rows import StatusRows
from kafkalog.inspection.lag.lag_columns import find_log, with_accounts
from kafkalog.inspection.lag.lag_events import EVENT_COLUMNS, EVENT_ORDER, LOG_PATH, lag_events
from kafkalog.inspection.lag.resumed_commits import RESUME_COLUMNS, with_resumes
from kafkalog.inspection.logs.missing_records import missing_words, note_missing_records
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.report.contents import GroupsSection, ReportMoment, Row, as_rows
from kafkalog.report.reading.generation_reading import read_generations
from kafkalog.report.time_grid import grid_over
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Batches, Views, rows_of_view

# What a page has room for.
LISTED_STATUSES = 20
PLOTTED = 6
LISTED_PARTITIONS = 500
LISTED_MEMBERS = 500
_REBALANCES = 40
_COMMITS = (*EVENT_COLUMNS, "leader_epoch")
_SPAN = pa.schema([(name, pa.int64()) for name in ("commits", "first_ms", "last_ms")])
# Rows about a partition have its topic; others are of a group and one time of its plot.
_STATUSES = pa.schema(
    [
        *arrow_schema("offset_commits", ("cluster_id", "group_id", "topic", "partition")),
        *((name, pa.int64()) for name in ("at_ms", "readable_records", "unknown_partitions")),
        *((name, pa.int64()) for name in ("next_timestamp_ms", "commit_timestamp_ms")),
        *((name, pa.int64()) for name in ("committed_offset", *RESUME_COLUMNS)),
        *((name, pa.string()) for name in ("status", "reason")),
    ]
)
_WELL = (LagStatus.OK.value, LagStatus.UNKNOWN.value)
_Key = tuple[str | None, str]


def history_end(last_commit_ms: int, latest_ms: int, at_ms: int) -> int:
    """Return when the plots of groups end: the end of a copy that was made long ago is not now.
    Rule: docs/report.md F604."""
    return min(max(last_commit_ms, latest_ms), at_ms)


def read_groups(
    views: Views, logs: Sequence[PartitionLog], latest_ms: int, at: ReportMoment
) -> GroupsSection | None:
    """Return the groups that commit to Kafka, judged at the moment of the report (F942); None where
    the input has none and lacks none that it knows of. `latest_ms` is a time that hardly any batch
    is later than. Missing records are noted for the end of the run."""
    of_groups = {"subscribe": CONSUMER_OFFSETS}
    offsets_logs = [log for log in logs if log.topic == CONSUMER_OFFSETS]
    missing = note_missing_records(logs, CONSUMER_OFFSETS)
    if not offsets_logs and not missing:
        return None
    reaches = commit_reaches([_reach(log) for log in offsets_logs if log.is_live], missing)
    reach, lacks = reach_words(reaches, None), missing_words(missing) if missing else ""
    spans = as_rows(
        rows_of_view(views, "offset_commits", _SPAN_COLUMNS, _commit_span, _SPAN, of_groups)
    )
    if not spans:
        return GroupsSection(_totals(()), (), (), (), reach, missing=lacks) if missing else None
    first_ms, last_ms = min(row.first_ms for row in spans), max(row.last_ms for row in spans)
    shown_ms = history_end(last_ms, latest_ms, at.at_ms)
    grid = grid_over(first_ms, first_ms, shown_ms, shown_ms)
    # To the first time of the grid after the history, if that is not after the moment.
    ticks_ms = shown_ms + grid.every_ms
    moments = HistoryMoments(0, at.at_ms, at.is_now, grid.every_ms, ticks_ms)
    places = {log.topic_partition: log.path for log in best_logs(logs) if log.topic_partition}
    judging = GroupJudging(moments, places)
    found = as_rows(rows_of_view(views, "offset_commits", _COMMITS, judging, _STATUSES, of_groups))
    partitions = [row for row in found if row.topic is not None]
    statuses = group_statuses(map(vars, partitions))
    listed = [Row(**each._asdict()) for each in statuses[:LISTED_STATUSES]]
    plotted = {_key(row) for row in listed[:PLOTTED]}
    latest = _latest_records(views, of_groups, None if at.is_now else at.at_ms)
    states = {
        (key.cluster_id, key.group_id): group for key, group in known_groups(latest, ()).items()
    }
    for row in listed:
        group = states.get(_key(row))
        row.state, row.members = (group.state, group.members) if group else (None, None)
    series = [row for row in found if row.topic is None and _key(row) in plotted]
    return GroupsSection(
        _totals(statuses),
        listed,
        sorted(series, key=lambda row: (row.group_id, row.at_ms)),
        [row for row in read_generations(views, plotted, _REBALANCES) if row.at_ms <= at.at_ms],
        reach,
        _first_partitions(partitions),
        len(partitions),
        *_members(group_members(latest)),
        lacks,
    )


def _key(row: Row | GroupStatus) -> _Key:
    return row.cluster_id, row.group_id


_SPAN_COLUMNS = (
    *("effect", "effective_timestamp_ms", "commit_timestamp_ms", "record_timestamp_ms"),
)


def _commit_span(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield how many commits are in effect, and when the first and the last one were."""
    count, ends = 0, []
    for batch in batches:
        effect, *times = batch.columns
        moment = pc.coalesce(*times)
        moments = moment.filter(pc.and_kleene(pc.equal(effect, "applied"), pc.greater(moment, 0)))
        if len(moments):
            count += len(moments)
            ends += pc.min_max(moments).as_py().values()
    if count:
        rows = [{"commits": count, "first_ms": min(ends), "last_ms": max(ends)}]
        yield pa.RecordBatch.from_pylist(rows, schema=_SPAN)


@dataclass(frozen=True, slots=True)
class GroupJudging:
    """Gives the groups of a task their lag and statuses: a row for each partition now, and rows of
    the groups that are worst off at each time of a plot. A task has all commits of a group."""

    moments: HistoryMoments
    places: Mapping[tuple[str, int], str]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        commits = pa.Table.from_batches(
            [batch for batch in batches if len(batch)], arrow_schema("offset_commits", _COMMITS)
        )
        events = lag_events(commits, self.moments, self.places)
        if not len(events):
            return
        rows = StatusRows(BurrowSettings(), LagSettings())
        answered = self._answered(events).combine_chunks()
        judged = [rows.judged(batch) for batch in answered.to_batches()]
        found = [
            Row(
                cluster_id=row["cluster_id"],
                group_id=row["group_id"],
                topic=row["topic"],
                partition=row["partition"],
                at_ms=row["moment_ms"],
                is_end=row["moment_ms"] == self.moments.until_ms,
                readable_records=row["readable_records"],
                unknown_partitions=int(row["readable_records"] is None),
                next_timestamp_ms=row["next_timestamp_ms"],
                commit_timestamp_ms=row["commit_timestamp_ms"],
                committed_offset=row["committed_offset"],
                **{name: row[name] for name in RESUME_COLUMNS},
                status=row["status"],
                reason=row["reason"],
            )
            for batch in judged
            for row in batch.filter(pc.equal(batch.column("kind"), int(EventKind.TICK))).to_pylist()
        ]
        ends = [row for row in found if row.is_end]
        plotted = {_key(row) for row in group_statuses(map(vars, ends))[:PLOTTED]}
        # The moment itself may be long after the history.
        shown = (row for row in found if row.at_ms <= (self.moments.ticks_until_ms or row.at_ms))
        series = _series(row for row in shown if _key(row) in plotted)
        rows_of_both = [{name: row[name] for name in _STATUSES.names} for row in (*ends, *series)]
        yield pa.RecordBatch.from_pylist(rows_of_both, schema=_STATUSES)

    def _answered(self, events: pa.Table) -> pa.Table:
        """Return the events with accounts of their lag, in order."""
        is_now, paths, now_ms = events["is_now"], events[LOG_PATH], self.moments.until_ms
        found = []
        for path in pc.unique(paths):
            is_of = pc.equal(paths, path) if path.is_valid else paths.is_null()
            log = find_log(path.as_py()) if path.is_valid else None
            for at, is_asked in ((None, is_now), ("moment_ms", pc.invert(is_now))):
                asked = events.filter(pc.and_(pc.fill_null(is_of, False), is_asked))
                if len(asked):
                    rows = with_accounts(asked, log, read_committed=False, now_ms=now_ms, at=at)
                    of_now = log if at is None else None
                    found.append(with_resumes(rows, of_now, read_committed=False, now_ms=now_ms))
        return pa.concat_tables(found).sort_by([(name, "ascending") for name in EVENT_ORDER])


def _series(rows: Iterable[Row]) -> list[Row]:
    """Return what groups had left to read at each time, in the partitions where that is known."""
    found: dict[tuple[_Key, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[_key(row), row.at_ms].append(row)
    nothing = dict.fromkeys(_STATUSES.names)
    return [
        Row(
            **nothing
            | {"cluster_id": cluster, "group_id": group, "at_ms": at_ms}
            | {
                "readable_records": _sum(row.readable_records for row in of_time),
                "unknown_partitions": sum(row.unknown_partitions for row in of_time),
            }
        )
        for ((cluster, group), at_ms), of_time in found.items()
    ]


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _totals(statuses: Sequence[GroupStatus]) -> Row:
    """Return how many groups there are; how many have a warning or an error; and how many others
    have records left to read."""
    well = [row for row in statuses if row.status in _WELL]
    return Row(
        groups=len(statuses),
        warned=len(statuses) - len(well),
        waiting=sum((row.readable_records or 0) > 0 for row in well),
    )


def _first_partitions(partitions: Sequence[Row]) -> list[Row]:
    in_order = sorted(
        partitions,
        key=lambda row: (
            *(-partition_rank(vars(row)), -(row.readable_records or 0)),
            *(row.group_id, row.topic, row.partition),
        ),
    )
    return in_order[:LISTED_PARTITIONS]


def _latest_records(
    views: Views, options: Mapping[str, str], at_ms: int | None
) -> list[Mapping[str, object]]:
    schema = arrow_schema("group_metadata", GROUP_RECORD_COLUMNS)

    def latest(batches: Batches) -> Iterator[pa.RecordBatch]:
        kept = LatestRecords(at_ms)
        for batch in batches:
            for row in batch.to_pylist():
                kept.add(row)
        yield pa.RecordBatch.from_pylist(kept.records(), schema=schema)

    kept = LatestRecords(at_ms)
    rows = rows_of_view(views, "group_metadata", GROUP_RECORD_COLUMNS, latest, schema, options)
    for row in rows:
        kept.add(row)
    return kept.records()


def _members(members: Iterable[GroupMember]) -> tuple[list[Row], int]:
    """Return the first members, with how many partitions each has, and how many there are."""
    found = [
        Row(
            group_id=each.group.group_id,
            member_id=each.instance_id or each.member_id,
            client_id=each.client_id,
            client_host=each.client_host,
            partitions=None
            if each.assigned is None
            else sum(len(topic["partitions"]) for topic in each.assigned),
        )
        for each in members
    ]
    found.sort(key=lambda row: (row.group_id, row.member_id))
    return found[:LISTED_MEMBERS], len(found)


class _Reach(NamedTuple):
    internal_partition: int | None
    complete_from_ms: int | None
    damaged_ranges: int


def _reach(log: PartitionLog) -> _Reach:
    _, time_ms, damaged_ranges = complete_from(log)
    return _Reach(log.partition, time_ms, damaged_ranges)
