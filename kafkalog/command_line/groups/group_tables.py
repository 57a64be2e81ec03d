"""The tables of `kafkalog groups`: the columns of kafka-consumer-groups, and more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafkalog.columns.arrays import python_values
from kafkalog.command_line.terminal import has_chosen_columns, print_note, print_text, write_table
from kafkalog.coordination.groups.group_records import Group, GroupKey, GroupMember, GroupRecord
from kafkalog.inspection.lag.lag_columns import LAG_PARTS
from kafkalog.inspection.lag.resumed_commits import RESUME_COLUMNS, RESUMES_AT
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.questions.groups.lag_row import LagRow, in_lag_order
from kafkalog.words import age_text, counted, duration_text, first_names, time_text

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.questions.positions.group_resume import GroupResume

# Columns of table consumer_lag by their names here.
_OFFSETS = {
    "group": "group_id",
    "topic": "topic",
    "partition": "partition",
    "current_offset": "committed_offset",
    "log_end_offset": "high_watermark",
    "lag": "lag",
}
_RESUMED = {name: name for name in RESUME_COLUMNS}
_MEMBER = {"consumer_id": "member_id", "host": "client_host", "client_id": "client_id"}
_VERBOSE = {
    "behind_since_ms": "next_timestamp_ms",
    "time_lag_ms": "time_lag_ms",
    "committed_at_ms": "commit_timestamp_ms",
    "commit_status": "commit_status",
    **{name: name for name in LAG_PARTS},
}
_NAMES = ("group", "type")
_STATES = ("group", "coordinator_id", "assignment_strategy", "state", "members", "type")
_MEMBERS = (
    *("group", "consumer_id", "group_instance_id", "host", "client_id", "partitions"),
    "assignment",
)
# What members of Connect's and Streams' classic groups have; no column of text without any.
_WORK = ("work",)
_MORE_MEMBERS = ("current_epoch",)
_LAGGING_VERBOSE = (
    *("group", "topic", "partition", "to_read", "behind_since_ms", "time_lag_ms", "lost"),
    *("damaged", "committed_at_ms", "commit_status", "consumer_id", "host", "client_id"),
)
_LAGGING = (
    *("group", "to_read", "behind_since_ms", "time_lag_ms", "partitions_behind", "lost"),
    *("damaged", "last_commit_ms", "state", "members"),
)
# --lagging shows groups for which one of these is not 0.
_BEHIND_PARTS = ("readable_records", "below_log_start", "damaged")
# Columns of table group_reasons by their names here.
_WHY = {
    "group": "group_id",
    "topic": "topic",
    "partition": "partition",
    "reason": "reason",
    "to_read": "readable_records",
    "lag": "lag",
    "current_offset": "committed_offset",
    "committed_at_ms": "commit_timestamp_ms",
    "stuck_since_ms": "stuck_since_ms",
    "transactional_id": "transactional_id",
    "producer_id": "producer_id",
    "transaction_started_ms": "transaction_started_ms",
    "transaction_timeout_ms": "transaction_timeout_ms",
    "ends_by_itself_ms": "ends_by_itself_ms",
    "state": "group_state",
    "members": "member_count",
    "consumer_id": "member_id",
    "host": "client_host",
    "what_to_do": "what_to_do",
}
_TIMES = dict.fromkeys(
    (
        *("behind_since_ms", "committed_at_ms", "last_commit_ms", "stuck_since_ms"),
        *("transaction_started_ms", "ends_by_itself_ms"),
    ),
    time_text,
)
_TEXTS = {**_TIMES, "time_lag_ms": age_text, "transaction_timeout_ms": duration_text}
_NO_OFFSET = "{} without a committed offset or an assigned partition: --state shows them"
_NONE_READS = "no group has a committed offset or an assigned partition{}"
# What to do is the same for at most so many partitions by their names.
_MOST_PARTITIONS = 5


def group_columns(table: str, *, verbose: bool) -> tuple[str, ...]:
    """Return the columns of a table by its option, such as `lagging`."""
    if table == "resume":
        from kafkalog.questions.positions.group_resume import COLUMNS

        return COLUMNS
    tables = {
        "list": _NAMES,
        "state": _STATES,
        "members": (*_MEMBERS, *(_MORE_MEMBERS if verbose else ()), *_WORK),
        "why": tuple(_WHY),
        "lagging": _LAGGING_VERBOSE if verbose else _LAGGING,
    }
    return tables.get(table, tuple(_offset_columns(is_resumed=True, verbose=verbose)))


def _offset_columns(*, is_resumed: bool, verbose: bool) -> dict[str, str]:
    resumed, more = _RESUMED if is_resumed else {}, _VERBOSE if verbose else {}
    return {**_OFFSETS, **resumed, **_MEMBER, **more}


def write_groups(
    lag: ConsumerLag, groups: Collection[GroupKey], table: str, table_format: str, *, verbose: bool
) -> None:
    """Write the table of an option about groups as a whole: `list`, `state` or `members`."""
    if table == "list":
        _write_names(lag, groups, table_format)
    elif table == "state":
        _write_states(lag, groups, table_format)
    else:
        _write_members(lag, groups, table_format, verbose=verbose)


def _write_names(lag: ConsumerLag, groups: Collection[GroupKey], table_format: str) -> None:
    """Write a row per group, of any type."""
    rows = [(key.group_id, group.group_type) for key, group in _in_order(lag, groups)]
    write_table(_NAMES, rows, table_format, without_rows=lag.no_group)


def _write_states(lag: ConsumerLag, groups: Collection[GroupKey], table_format: str) -> None:
    """Write a row per group."""
    rows = [
        (
            key.group_id,
            _coordinator(lag, key),
            group.assignor,
            group.state,
            group.members,
            group.group_type,
        )
        for key, group in _in_order(lag, groups)
    ]
    write_table(_STATES, rows, table_format, without_rows=lag.no_group)


def _coordinator(lag: ConsumerLag, key: GroupKey) -> int | None:
    """Return the broker that coordinates a group; none does one that commits to ZooKeeper."""
    if key.internal_partition is None:
        return None
    return lag.facts.leaders.get((key.cluster_id, key.internal_partition))


def _in_order(lag: ConsumerLag, groups: Collection[GroupKey]) -> Iterable[tuple[GroupKey, Group]]:
    for key in sorted(groups, key=lambda key: (key.group_id, key.internal_partition is None)):
        yield key, lag.groups[key]


def _write_members(
    lag: ConsumerLag, groups: Collection[GroupKey], table_format: str, *, verbose: bool
) -> None:
    """A row per member."""
    more = _MORE_MEMBERS if verbose else ()
    topic_names = lag.facts.topic_names()
    members = sorted(lag.members, key=lambda member: (member.group.group_id, member.member_id))
    rows = [
        (
            member.group.group_id,
            member.member_id,
            member.instance_id,
            member.client_host,
            member.client_id,
            sum(len(each["partitions"]) for each in member.assigned or ()),
            _assignment(member, topic_names),
            *((member.member_epoch,) if verbose else ()),
            member.work,
        )
        for member in members
        if member.group in groups
    ]
    names = (*_MEMBERS, *more, *_WORK)
    if table_format == "text" and not any(row[-1] for row in rows) and not has_chosen_columns():
        names, rows = names[:-1], [row[:-1] for row in rows]
    none = lag.by_what_is_here("no group has a member") if groups else lag.no_group
    write_table(names, rows, table_format, without_rows=none)
    absent = {key.group_id for key in groups} - {str(row[0]) for row in rows}
    if rows and absent:
        print_note(f"without a member: {first_names(sorted(absent), _MOST_PARTITIONS)}")


def _assignment(member: GroupMember, names: dict[str, str]) -> str:
    """As the tool writes it: `orders:0,1;clicks:3`."""

    def topic(each: GroupRecord) -> str:
        return str(each["topic"] or names.get(each["topic_id"] or "", each["topic_id"]))

    parts = sorted((topic(each), sorted(each["partitions"])) for each in member.assigned or ())
    return ";".join(f"{name}:{','.join(map(str, numbers))}" for name, numbers in parts)


def write_offsets(
    lag: ConsumerLag,
    groups: Collection[GroupKey],
    found: pa.Table,
    table_format: str,
    *,
    verbose: bool,
) -> None:
    """Write a row per group, topic and partition, also where a commit only waits for the end of its
    transaction, of which the tool shows nothing. `groups` are the requested ones, and `found` the
    rows of table consumer_lag."""
    # As text, where any commit is resumed elsewhere, or where they are requested.
    is_shown = (
        table_format != "text" or has_chosen_columns() or found[RESUMES_AT].null_count < len(found)
    )
    names = _offset_columns(is_resumed=is_shown, verbose=verbose)
    ordered = in_lag_order(found.select([*dict.fromkeys(names.values())]))
    values = zip(*(python_values(ordered[name]) for name in names.values()), strict=True)
    none = _NO_OFFSET.format(counted(len(groups), "group")) if groups else lag.no_group
    if groups and lag.in_topics:
        none = lag.by_what_is_here(_NONE_READS.format(lag.in_topics))
    write_table([*names], values, table_format, texts=_TEXTS, without_rows=none)


def _member(row: LagRow) -> tuple[str | None, str | None, str | None]:
    """Return the member that has the partition."""
    return row["member_id"], row["client_host"], row["client_id"]


def _commit(row: LagRow) -> tuple[int | None, str]:
    return row["commit_timestamp_ms"], row["commit_status"]


def write_lagging(
    lag: ConsumerLag, rows: Sequence[LagRow], table_format: str, *, verbose: bool
) -> None:
    """Write a row per group, or per partition, that lags, has lost records or may not get some
    because of damage; the longest lag first."""
    lagging = [row for row in rows if row.is_counted and any(row[part] for part in _BEHIND_PARTS)]
    if not lagging and table_format == "text":
        lags = lag.by_what_is_here(f"no group is known to lag{lag.in_topics}")
        print_text(lags if lag.groups else lag.no_group)
        return
    names = _LAGGING_VERBOSE if verbose else _LAGGING
    if verbose:
        found = [_lagging_partition(row) for row in lagging]
    else:
        by_group: dict[GroupKey, list[LagRow]] = defaultdict(list)
        for row in lagging:
            by_group[row.group].append(row)
        found = [_lagging(lag.groups[key], of_group) for key, of_group in by_group.items()]
    since = names.index("behind_since_ms")
    found.sort(key=lambda values: (values[since] is None, values[since], values[0]))
    write_table(names, found, table_format, texts=_TEXTS)


def _lagging_partition(row: LagRow) -> tuple[Any, ...]:
    return (
        *(row.group.group_id, *row.place, row["readable_records"]),
        *(row["next_timestamp_ms"], row["time_lag_ms"]),
        *(row["below_log_start"], row["damaged"]),
        *(*_commit(row), *_member(row)),
    )


def _lagging(group: Group, rows: Sequence[LagRow]) -> tuple[Any, ...]:
    since = [row["next_timestamp_ms"] for row in rows if row["next_timestamp_ms"] is not None]
    lags = [row["time_lag_ms"] for row in rows if row["time_lag_ms"] is not None]
    return (
        group.key.group_id,
        sum(row["readable_records"] for row in rows),
        min(since, default=None),
        max(lags, default=None),
        sum(row.is_lagging for row in rows),
        sum(row["below_log_start"] for row in rows),
        sum(row["damaged"] for row in rows),
        max(row["commit_timestamp_ms"] for row in rows),
        group.state,
        group.members,
    )


def write_why(found: Sequence[Mapping[str, Any]], table_format: str) -> None:
    """Write a row per partition of a group, rows of table `group_reasons`; as text what to do
    follows the table, once for all partitions where it is the same, and empty columns are left
    out."""
    rows = [[row[column] for column in _WHY.values()] for row in found]
    names = [*_WHY]
    if table_format != "text":
        write_table(names, rows, table_format)
        return
    columns = list(zip(*rows, strict=True))
    last = len(names) - 1
    shown = [
        place
        for place in range(last)
        if has_chosen_columns() or any(each is not None for each in columns[place])
    ]
    values = [[row[place] for place in shown] for row in rows]
    write_table([names[place] for place in shown], values, table_format, texts=_TEXTS)
    partitions: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in found:
        place = [] if row["topic"] is None else [f"{row['topic']}-{row['partition']}"]
        partitions[row["group_id"], row["what_to_do"]] += place
    for (group, words), places in partitions.items():
        where = f" in {first_names(places, _MOST_PARTITIONS)}" if places else ""
        print_text(f"{group}{where}: {words}")


def write_resume(lag: ConsumerLag, found: GroupResume, table_format: str) -> None:
    """Write a row per group, partition and replica that could lead; as text those of other replicas
    only where consumers continue elsewhere, without columns that have no value."""
    rows = found.found if table_format != "text" else found.telling()
    columns = group_columns("resume", verbose=False)
    names: Sequence[str] = columns
    if table_format == "text" and not has_chosen_columns():
        has_value = {name for row in rows for name in columns if row[name] is not None}
        names = [name for name in columns[:-1] if name in has_value]
    none = lag.by_what_is_here("no group has a commit or an assigned partition")
    values = [[row[name] for name in names] for row in rows]
    write_table(names, values, table_format, without_rows=none)
    if table_format == "text":
        for line in found.words():
            print_text(line)
