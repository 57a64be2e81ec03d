"""Commits and assigned partitions of the groups of one partition of `__consumer_offsets`, each with
all that is known of its group, for table `consumer_lag`.

What is still missing is the account of the topic's log, and what the groups of all partitions show.
Rules: docs/format.md F320 to F327.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import (
    Numbers,
    distinct_rows,
    fixed_width,
    no_rows,
    of_values,
    python_values,
    scalar,
)
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.commit_status import (
    GroupFacts,
    KnownTopics,
    RetentionStart,
    commit_status,
    offsets_partition_of,
    retention_start,
    subscribed_by_all,
)
from kafkalog.coordination.groups.group_records import (
    Group,
    GroupKey,
    GroupMember,
    GroupPartition,
    GroupRecord,
    assigned_partitions,
    group_key,
    group_members,
    known_groups,
)
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.coordination.groups.share_states import ShareState
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, COMMIT_KEY, HAS_OPEN_COMMIT

_MEMBER = ("member_id", "instance_id", "client_id", "client_host")
# Columns of a group, by the names of `Group`.
_OF_GROUP = {
    "group_type": "group_type",
    "group_state": "state",
    "group_epoch": "epoch",
    "assignor": "assignor",
    "member_count": "members",
    "protocol_type": "protocol_type",
    "state_timestamp_ms": "state_timestamp_ms",
}
# What else the status of a commit depends on: OFFSETS_PARTITION is where the group belongs if the
# number of partitions `is_confirmed`, IS_SUBSCRIBED is null where topics of a member are not known.
OFFSETS_PARTITION, IS_SUBSCRIBED = "offsets_partition", "is_subscribed"
# How many offsets from a share group's begin on need no delivery any more, F780.
DELIVERY_COMPLETE = "delivery_complete"
PLACED_SCHEMA = pa.schema(
    [
        *arrow_schema("offset_commits", COMMIT_COLUMNS),
        *arrow_schema(
            "consumer_lag",
            (
                *(HAS_OPEN_COMMIT, *_MEMBER),
                *("group_type", "group_state", "group_epoch", "assignor", "member_count"),
                *("coordinator_broker_id", "commits_complete_from_ms"),
            ),
        ),
        *arrow_schema("group_metadata", ("protocol_type", "state_timestamp_ms")),
        pa.field(OFFSETS_PARTITION, pa.int32()),
        pa.field(IS_SUBSCRIBED, pa.bool_()),
        pa.field(DELIVERY_COMPLETE, pa.int64()),
    ]
)
STATUS_SCHEMA = arrow_schema("consumer_lag", ("expires_ms", "commit_status"))
# What the status of a row depends on.
_DECISIVE = (
    *("cluster_id", "internal_partition", "topic", "topic_id", "committed_offset"),
    *("commit_timestamp_ms", "expire_timestamp_ms", "is_confirmed", HAS_OPEN_COMMIT),
    *("group_type", "group_state", "protocol_type", "state_timestamp_ms"),
    *(OFFSETS_PARTITION, IS_SUBSCRIBED, "high_watermark"),
)
# Of these, all but numbers that differ from row to row.
_KINDS = (
    *("cluster_id", "internal_partition", "topic", "topic_id", "is_confirmed", HAS_OPEN_COMMIT),
    *("group_type", "group_state", "protocol_type", OFFSETS_PARTITION, IS_SUBSCRIBED),
)
_Place = tuple[GroupKey, GroupPartition]
_PARTITION = ("topic", "partition")
_NO_COLUMNS: Mapping[str, pa.Array] = MappingProxyType({})
# Where share groups are, by cluster, group, topic and partition.
PlacedShares = Mapping[tuple[str | None, str], Mapping[GroupPartition, ShareState]]
_NO_SHARES: PlacedShares = MappingProxyType({})


class PartitionFacts(NamedTuple):
    """What is known of a partition of `__consumer_offsets` before it is read: how many of them the
    cluster has, None if that is not known; its leader; and from when on it has all commits."""

    partitions: int | None
    coordinator_broker_id: int | None
    complete_from_ms: int | None


class PlacedCommits(NamedTuple):
    """Rows of one partition with PLACED_SCHEMA, its groups and their members, and of how many
    groups it is the OFFSETS_PARTITION."""

    rows: pa.Table
    groups: dict[GroupKey, Group]
    members: list[GroupMember]
    groups_in_place: int


def placed_commits(
    commits: pa.Table | None,
    records: Sequence[GroupRecord],
    topic_names: Mapping[str, str],
    facts: PartitionFacts,
    shares: PlacedShares = _NO_SHARES,
) -> PlacedCommits:
    """Return the rows of one partition from rows of CommitsInEffect and the records that
    LatestRecords keeps, with input_path. Share groups commit nothing: their rows have where they
    begin.

    `topic_names` has the names of topic ids in assignments. If several members claim a partition,
    because one of them has died, the last by id is named.
    """
    members = group_members(records)
    committed = _Places([], [], []) if commits is None else _Places.of(commits)
    groups = known_groups(records, members, dict.fromkeys(committed.keys))
    assigned = assigned_partitions(members, topic_names)
    shared = _shared(groups, shares)
    others = _others(assigned, committed, shared)
    found = [] if commits is None else [commits]
    if shared:
        found.append(_of_shares(shared, records))
    if others:
        found.append(_without_commit(others, records))
    in_place = sum(_place_of(key, facts) == key.internal_partition for key in groups)
    if not found:
        return PlacedCommits(no_rows(PLACED_SCHEMA), groups, members, in_place)
    rows = pa.concat_tables(found, promote_options="default")
    places = committed.and_these([*shared, *others])
    columns = {
        **_member_columns(places, assigned, members),
        **_group_columns(places, groups, facts),
        IS_SUBSCRIBED: _is_subscribed(places, members),
    }
    return PlacedCommits(of_placed_schema(rows, columns), groups, members, in_place)


def of_placed_schema(rows: pa.Table, columns: Mapping[str, pa.Array] = _NO_COLUMNS) -> pa.Table:
    """Return the rows with more columns, all columns of PLACED_SCHEMA in its order, null where they
    are not known."""
    known = {name: rows[name] for name in rows.column_names} | dict(columns)
    arrays = [
        known[field.name] if field.name in known else pa.nulls(len(rows), field.type)
        for field in PLACED_SCHEMA
    ]
    return pa.table(arrays, schema=PLACED_SCHEMA)


def with_statuses(rows: pa.Table, topics: KnownTopics, question: LagQuestion) -> pa.Table:
    """Return rows with PLACED_SCHEMA with the columns of STATUS_SCHEMA. Without a column
    high_watermark no commit is beyond a log's end."""
    if "high_watermark" not in rows.column_names:
        rows = rows.append_column("high_watermark", pa.nulls(len(rows), pa.int64()))
    at_ms, retention_ms = question.at_ms, question.retention_ms
    expiry = _expiry(rows, topics, retention_ms)
    committed, ends = Numbers.of(rows["committed_offset"]), Numbers.of(rows["high_watermark"])
    is_old = rows["internal_partition"].is_null().combine_chunks()
    # All that a status depends on but its own row's numbers, of which it matters how they compare.
    compared = {
        "is_beyond": ends.is_set & (committed.values > ends.values),
        "is_expired": expiry.is_set & (expiry.values <= at_ms),
        "has_offset": committed.is_set,
    }
    kinds = rows.select(_KINDS).append_column(
        # With the time at which a topic was created. F327
        "committed_ms",
        pc.if_else(is_old, rows["commit_timestamp_ms"], scalar(None, pa.int64())),
    )
    for name, values in compared.items():
        kinds = kinds.append_column(name, fixed_width(values, pa.bool_()))
    codes, firsts = distinct_rows(kinds)
    statuses = [
        commit_status(
            *(row, _facts(row, topics.confirmed)),
            topics.by_name.get((row["cluster_id"], row["topic"]), ()),
            row["high_watermark"],
            at_ms=at_ms,
            retention_ms=retention_ms,
        )
        for row in rows.select(_DECISIVE).take(fixed_width(firsts, pa.int64())).to_pylist()
    ]
    expires = fixed_width(expiry.values, pa.int64(), ~expiry.is_set)
    rows = rows.append_column(STATUS_SCHEMA.field(0), expires)
    return rows.append_column(
        STATUS_SCHEMA.field(1),
        of_values(statuses, pa.string()).take(fixed_width(codes, pa.int64())),
    )


def _expiry(rows: pa.Table, topics: KnownTopics, retention_ms: int) -> Numbers:
    """Return when the broker drops each commit, as `expires_ms` does."""
    has_state_ms = rows["state_timestamp_ms"].is_valid()
    codes, firsts = distinct_rows(rows.select(_KINDS).append_column("has_state_ms", has_state_ms))
    starts = [
        retention_start(row, _facts(row, topics.confirmed))
        for row in rows.select(_DECISIVE).take(fixed_width(firsts, pa.int64())).to_pylist()
    ]
    found, is_set = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    for start in RetentionStart:
        counts = np.array([each is start for each in starts], dtype=np.bool_)[codes]
        times = Numbers.of(rows[start.value])
        found, is_set = np.where(counts, times.values, found), is_set | (counts & times.is_set)
    # Later than any time that can be written is not yet.
    found = np.minimum(found, np.iinfo(np.int64).max - retention_ms) + retention_ms
    own = Numbers.of(rows["expire_timestamp_ms"])
    return Numbers(np.where(own.is_set, own.values, found), is_set)


class _Places(NamedTuple):
    """The groups and the partitions of rows: the few different groups, which of them each row is
    of, and its topic and partition."""

    keys: list[GroupKey]
    codes: list[int]
    partitions: list[GroupPartition]

    @classmethod
    def of(cls, commits: pa.Table) -> _Places:
        """Return those of rows with COMMIT_KEY."""
        of_groups = commits.select(GroupKey._fields)
        codes, firsts = distinct_rows(of_groups)
        keys = of_groups.take(fixed_width(firsts, pa.int64())).to_pylist()
        partitions = zip(*(python_values(commits[name]) for name in _PARTITION), strict=True)
        return cls([GroupKey(**key) for key in keys], codes.tolist(), list(partitions))

    def and_these(self, places: Sequence[_Place]) -> _Places:
        """Return these and more."""
        numbers = {key: number for number, key in enumerate(self.keys)}
        codes = [numbers.setdefault(key, len(numbers)) for key, _ in places]
        partitions = [partition for _, partition in places]
        return _Places([*numbers], [*self.codes, *codes], [*self.partitions, *partitions])


def _others(
    assigned: Mapping[GroupKey, Collection[GroupPartition]],
    committed: _Places,
    shared: Collection[_Place],
) -> list[_Place]:
    """Return the assigned partitions without a commit."""
    known: list[set[GroupPartition]] = [set() for _ in committed.keys]
    for code, partition in zip(committed.codes, committed.partitions, strict=True):
        known[code].add(partition)
    of_group = dict(zip(committed.keys, known, strict=True))
    return [
        (key, partition)
        for key, own in assigned.items()
        for partition in own
        if partition not in of_group.get(key, ()) and (key, partition) not in shared
    ]


def _shared(groups: Mapping[GroupKey, Group], shares: PlacedShares) -> dict[_Place, ShareState]:
    return {
        (key, place): state
        for key, group in groups.items()
        if group.group_type == "share" and group.state != "Dead"
        for place, state in shares.get((key.cluster_id, key.group_id), {}).items()
    }


def _of_shares(shared: Mapping[_Place, ShareState], records: Iterable[GroupRecord]) -> pa.Table:
    """Return rows of where share groups begin, in the form of commits. F780"""
    states = shared.values()
    columns = {
        "committed_offset": _array("committed_offset", [each.start_offset for each in states]),
        "commit_timestamp_ms": _array("commit_timestamp_ms", [each.written_ms for each in states]),
        DELIVERY_COMPLETE: _array(DELIVERY_COMPLETE, [each.delivery_complete for each in states]),
        HAS_OPEN_COMMIT: _array(HAS_OPEN_COMMIT, [False] * len(states)),
    }
    rows = _without_commit([*shared], records)
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return rows


def _without_commit(places: Sequence[_Place], records: Iterable[GroupRecord]) -> pa.Table:
    """Return rows of assigned partitions, with the input_path of the group: a job that runs again
    replaces rows by their input."""
    paths: dict[GroupKey, str] = {}
    for record in records:
        key = group_key(record)
        paths[key] = max(paths.get(key, ""), record["input_path"])
    rows = [(*key, *partition, paths.get(key)) for key, partition in places]
    names = (*COMMIT_KEY, "input_path")
    return _table(names, zip(*rows, strict=True))


def _place_of(key: GroupKey, facts: PartitionFacts) -> int | None:
    return (
        None if facts.partitions is None else offsets_partition_of(key.group_id, facts.partitions)
    )


def _member_columns(
    places: _Places,
    assigned: Mapping[GroupKey, Mapping[GroupPartition, int]],
    members: Sequence[GroupMember],
) -> dict[str, pa.Array]:
    """Return the columns about the member of each row."""
    of_groups = [assigned.get(key, {}) for key in places.keys]
    number_of = of_values(
        [
            of_groups[code].get(partition)
            for code, partition in zip(places.codes, places.partitions, strict=True)
        ],
        pa.int64(),
    )
    return {
        name: _array(name, [getattr(member, name) for member in members]).take(number_of)
        for name in _MEMBER
    }


def _group_columns(
    places: _Places, groups: Mapping[GroupKey, Group], facts: PartitionFacts
) -> dict[str, pa.Array]:
    """Return the columns about the group of each row."""
    own = [groups[key] for key in places.keys]
    values = {
        **{column: [getattr(group, name) for group in own] for column, name in _OF_GROUP.items()},
        OFFSETS_PARTITION: [_place_of(key, facts) for key in places.keys],
        "coordinator_broker_id": [facts.coordinator_broker_id] * len(own),
        "commits_complete_from_ms": [facts.complete_from_ms] * len(own),
    }
    group_of = of_values(places.codes, pa.int64())
    return {name: _array(name, found).take(group_of) for name, found in values.items()}


def _is_subscribed(places: _Places, members: Iterable[GroupMember]) -> pa.Array:
    """Return for each row whether a member of its group subscribes to its topic, null if that is
    not known."""
    subscriptions: dict[GroupKey, list[frozenset[str] | None]] = defaultdict(list)
    for member in members:
        subscriptions[member.group].append(member.subscribed_topics)
    topics = [subscribed_by_all(subscriptions[key]) for key in places.keys]
    found = [
        None if (own := topics[code]) is None else topic in own
        for code, (topic, _) in zip(places.codes, places.partitions, strict=True)
    ]
    nulls = np.array([each is None for each in found], np.bool_)
    return fixed_width(np.array(found, np.bool_), pa.bool_(), nulls)


def _facts(row: GroupRecord, confirmed: Collection[str | None]) -> GroupFacts:
    """Return what the status of a row depends on of its group; of its topics, only whether the
    row's own is among them."""
    is_subscribed = row[IS_SUBSCRIBED]
    topics = None if is_subscribed is None else frozenset((row["topic"],) * is_subscribed)
    is_confirmed = row["cluster_id"] in confirmed
    return GroupFacts(
        *(row["group_type"], row["group_state"], row["protocol_type"], row["state_timestamp_ms"]),
        topics,
        row[OFFSETS_PARTITION] if is_confirmed else None,
    )


def _table(names: Sequence[str], columns: Iterable[Sequence[Any]]) -> pa.Table:
    return pa.table(
        {name: _array(name, list(values)) for name, values in zip(names, columns, strict=True)}
    )


def _array(name: str, values: Sequence[Any]) -> pa.Array:
    return of_values(values, PLACED_SCHEMA.field(name).type)
