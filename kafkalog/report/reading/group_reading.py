"""The part of a report about consumer groups: the tables of `kafkalog groups` and `kafkalog
lag-history`, as few rows."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import of_values
from kafkalog.coordination.groups.group_records import Group, GroupMember
from kafkalog.coordination.groups.group_statuses import GroupStatus, partition_rank
from kafkalog.coordination.groups.lag_question import ChosenNames, LagHistoryQuestion, LagQuestion
from kafkalog.coordination.groups.lag_status import HistoryMoments, LagStatus
from kafkalog.inspection.groups.commit_reach import reach_words
from kafkalog.inspection.lag.resumed_commits import RESUME_COLUMNS
from kafkalog.inspection.logs.missing_records import missing_words, note_missing_records
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.questions.groups.lag_history import LagHistory
from kafkalog.report.contents import GroupsSection, ReportMoment, Row, as_rows
from kafkalog.report.time_grid import grid_over
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import Rows, Views

# What a page has room for.
LISTED_STATUSES = 20
PLOTTED = 6
LISTED_PARTITIONS = 500
LISTED_MEMBERS = 500
_REBALANCES = 40
_WELL = (LagStatus.OK.value, LagStatus.UNKNOWN.value)
_PLACE = ("cluster_id", "group_id", "topic", "partition")
# Without an interval there would be a row for each commit; before the first one there is none.
_ONLY_THE_END = (1, 0)
_SUMS = ("readable_records", "unknown_partitions")
_Key = tuple[str | None, str]


def history_end(last_commit_ms: int, latest_ms: int, at_ms: int) -> int:
    """Return when the plots of groups end: the end of a copy that was made long ago is not now.
    Rule: docs/report.md F604."""
    return min(max(last_commit_ms, latest_ms), at_ms)


def read_groups(views: Views, latest_ms: int, at: ReportMoment) -> GroupsSection | None:
    """Return the groups that commit to Kafka, judged at the moment of the report (F942); None where
    the input has none and lacks none that it knows of. `latest_ms` is a time that hardly any batch
    is later than. Missing records are noted for the end of the run."""
    missing = note_missing_records(views.logs, CONSUMER_OFFSETS)
    if not missing and all(log.topic != CONSUMER_OFFSETS for log in views.logs):
        return None
    judged = _history(views, at, *_ONLY_THE_END)
    judged.rows.counted()
    reach, lacks = reach_words(judged.reaches, None), missing_words(missing) if missing else ""
    span = judged.rows.summary.span
    if span is None:
        # Of a past time commits may only be later.
        is_empty = at.is_now and not missing
        return None if is_empty else GroupsSection(_totals(()), (), (), (), reach, missing=lacks)
    question = LagQuestion(at.now_ms, at.as_of_ms)
    lag = ConsumerLag(views, question, with_groups=True, with_members=True)
    lag_rows = lag.rows.rows()
    ends = [] if judged.rows.summary.ends is None else as_rows(judged.rows.summary.ends.to_pylist())
    listed = [Row(**each._asdict()) for each in judged.statuses[:LISTED_STATUSES]]
    _add_states(listed, lag.groups.values())
    plotted = [_key(row) for row in listed[:PLOTTED]]
    return GroupsSection(
        _totals(judged.statuses),
        listed,
        *_plots(views, at, plotted, (span[0], history_end(span[1], latest_ms, at.at_ms))),
        reach,
        _with_commits(_first_partitions(ends), lag_rows),
        len(ends),
        *_members(lag.members),
        lacks,
    )


def _history(
    views: Views, at: ReportMoment, every_ms: int, ticks_until_ms: int, groups: Iterable[str] = ()
) -> LagHistory:
    moments = HistoryMoments(0, at.at_ms, at.is_now, every_ms, ticks_until_ms)
    chosen = ChosenNames(groups=frozenset(groups))
    return LagHistory(views, LagHistoryQuestion(at.now_ms, moments, chosen=chosen))


def _key(row: Row | GroupStatus) -> _Key:
    return row.cluster_id, row.group_id


def _add_states(statuses: Iterable[Row], groups: Iterable[Group]) -> None:
    """Add what the groups' records say, None where there is none."""
    known = {(each.key.cluster_id, each.key.group_id): each for each in groups}
    for row in statuses:
        group = known.get(_key(row))
        row.state, row.members = (group.state, group.members) if group else (None, None)


def _plots(
    views: Views, at: ReportMoment, plotted: Collection[_Key], span_ms: tuple[int, int]
) -> tuple[list[Row], list[Row]]:
    """Return what these groups had left to read at each time of a grid, and their last
    generations."""
    if not plotted:
        return [], []
    first_ms, shown_ms = span_ms
    every_ms = grid_over(first_ms, first_ms, shown_ms, shown_ms).every_ms
    # To the first time of the grid after the history, if that is not after the moment.
    until_ms = shown_ms + every_ms
    history = _history(views, at, every_ms, until_ms, (group for _, group in plotted))
    # The moment itself may be long after the history.
    series = [
        row
        for row in _series(history.rows.rows())
        if row.at_ms <= until_ms and _key(row) in plotted
    ]
    generations = [
        row for row in _generations(history.rows.generations(), at.at_ms) if _key(row) in plotted
    ]
    return sorted(series, key=lambda row: (row.group_id, row.at_ms)), generations


def _series(rows: Rows) -> list[Row]:
    """Return what groups had left to read at each time, in the partitions where that is known."""
    key = ["cluster_id", "group_id", "at_ms"]
    sums = [
        ("readable_records", "sum"),
        ("readable_records", "count", pc.CountOptions("only_null")),
    ]
    found = rows.table.select([*key, "readable_records"]).group_by(key).aggregate(sums)
    return as_rows(found.rename_columns([*key, *_SUMS]).to_pylist())


def _generations(rows: Rows, until_ms: int) -> Iterator[Row]:
    """Yield the last generations of each group. Replicas have the same ones."""
    found: dict[_Key, deque[Row]] = defaultdict(lambda: deque(maxlen=_REBALANCES))
    seen = set()
    for each in sorted(as_rows(rows), key=lambda row: (row.group_id, row.record_timestamp_ms)):
        place = (*_key(each), each.internal_partition, each.record_offset)
        if each.record_timestamp_ms <= until_ms and place not in seen:
            seen.add(place)
            names = ("cluster_id", "group_id", "generation", "members", "state")
            row = Row(at_ms=each.record_timestamp_ms, **{name: each[name] for name in names})
            found[_key(each)].append(row)
    for generations in found.values():
        yield from generations


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


def _with_commits(partitions: list[Row], lag_rows: Rows) -> list[Row]:
    """Return partitions with their commits, and where consumers continue from these."""
    columns = ("committed_offset", *RESUME_COLUMNS)
    groups = of_values(sorted({row.group_id for row in partitions}), pa.string())
    rows = lag_rows.table.select([*_PLACE, *columns])
    known = {
        tuple(row[name] for name in _PLACE): {name: row[name] for name in columns}
        for row in rows.filter(pc.is_in(rows["group_id"], groups)).to_pylist()
    }
    nothing = dict.fromkeys(columns)
    for row in partitions:
        vars(row).update(known.get(tuple(row[name] for name in _PLACE), nothing))
    return partitions


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
