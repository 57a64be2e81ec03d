"""Generations of groups over time, from rows of view `group_metadata`. Rule: F339 of
docs/format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from kafkalog.coordination.groups.group_records import (
    CURRENT_ASSIGNMENT_RECORDS,
    GROUP_RECORDS,
    MEMBER_RECORDS,
    TARGET_MEMBER_RECORDS,
    TARGET_RECORDS,
    GroupRecord,
)

# A topic by name or id and a partition of it, or these with the member that has it.
_Places = frozenset[tuple[Any, ...]]
_Row = dict[str, Any]
_OF_RECORD = (
    *("cluster_id", "broker_id", "input_path", "group_id", "group_type", "record_timestamp_ms"),
    *("protocol_type", "protocol", "leader", "internal_partition", "record_offset"),
)
# The columns of view `group_metadata` that these rules read.
GENERATION_COLUMNS = (
    *_OF_RECORD,
    *("record_type", "is_tombstone", "epoch", "member_id", "member_state", "assigned", "members"),
)
# A member that has all its partitions.
_SETTLED = 0


class GroupGenerations:
    """Takes the records of one copy of a partition of `__consumer_offsets` in the order of their
    offsets. Memory holds the rows, and of each group its members with their partitions."""

    def __init__(self, is_chosen: Callable[[str], bool] | None = None) -> None:
        """Groups that are not chosen are left out."""
        self._is_chosen = is_chosen
        self._groups: dict[tuple[Any, ...], _ClassicGroup | _GroupWithEpochs] = {}

    def add(self, record: GroupRecord) -> None:
        """Take a row of view `group_metadata`."""
        name, group_type = record["group_id"], record["group_type"]
        if group_type is None:
            return
        if self._is_chosen is not None and (name is None or not self._is_chosen(name)):
            return
        key = record["cluster_id"], record["internal_partition"], name, group_type
        group = self._groups.get(key)
        if group is None:
            group = _ClassicGroup() if group_type == "classic" else _GroupWithEpochs(group_type)
            self._groups[key] = group
        group.add(record)

    def rows(self) -> Iterator[_Row]:
        """Yield, at the end, a row for each generation of a group and for each deletion of one:
        schemas/tables/group_generations.json."""
        for group in self._groups.values():
            yield from group.rows()


class _ClassicGroup:
    """A classic group: one record describes a whole generation."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._epoch: int | None = None
        self._ids: Collection[str] | None = None
        self._owned: _Places | None = None

    def add(self, record: GroupRecord) -> None:
        members = record["members"]
        ids = None if members is None else [member["member_id"] for member in members]
        owned = None if members is None else _owned_by_all(members)
        row = _row(record, self._epoch)
        row["members"] = None if ids is None else len(ids)
        if _is_compared(row):
            if ids is not None and self._ids is not None:
                row["members_joined"] = sorted(set(ids).difference(self._ids))
                row["members_left"] = sorted(set(self._ids).difference(ids))
            if owned is not None and self._owned is not None:
                row["partitions_moved"] = len(_moved(self._owned, owned))
        if record["is_tombstone"]:
            row["state"] = "Dead"
        elif ids is not None:
            row["state"] = "Stable" if ids else "Empty"
        self._epoch, self._ids, self._owned = record["epoch"], ids, owned
        self._rows.append(row)

    def rows(self) -> Iterator[_Row]:
        return iter(self._rows)


class _GroupWithEpochs:
    """A consumer, share or streams group. A record has only the epoch, and records before it
    contain what it changes: a member's change belongs to the first epoch that is recorded after
    it."""

    def __init__(self, group_type: str) -> None:
        self._type = group_type
        self._rows: list[_Row] = []
        # Members with records since the last generation, by their ids: whether the last one is a
        # tombstone, and whether all are.
        self._changed: dict[str, tuple[bool, bool]] = {}
        self._members: dict[str, bool] = {}
        self._count = 0
        self._epoch: int | None = None
        # Since the last assignment, and the one before it.
        self._moved: set[tuple[Any, ...]] = set()
        self._assigned: dict[str, _Places] = {}
        self._assigned_epoch: int | None = None
        # Of the generations since the group was last deleted: how many partitions were moved for
        # an epoch, None for the first that was assigned.
        self._life: list[_Row] = []
        self._moved_for: dict[int, int | None] = {}
        # The epochs and states that members have come to since the last generation.
        self._come: dict[str, tuple[int | None, int | None]] = {}

    def add(self, record: GroupRecord) -> None:
        number, member = record["record_type"], record["member_id"]
        if number in GROUP_RECORDS:
            self._add_generation(record)
        elif number in MEMBER_RECORDS:
            went = record["is_tombstone"]
            _, only_went = self._changed.get(member, (went, True))
            self._changed[member] = went, went and only_went
        elif number in TARGET_MEMBER_RECORDS:
            after = _owned(record["assigned"] or (), member)
            self._moved |= _moved(self._assigned.get(member, frozenset()), after)
            self._assigned[member] = after
        elif number in TARGET_RECORDS:
            self._add_assignment(record)
        elif number in CURRENT_ASSIGNMENT_RECORDS and not record["is_tombstone"]:
            self._come[member] = record["epoch"], record["member_state"]

    def rows(self) -> Iterator[_Row]:
        self._end_generation()
        self._end_life()
        return iter(self._rows)

    def _add_generation(self, record: GroupRecord) -> None:
        self._end_generation()
        joined, left = self._member_changes()
        row = _row(record, self._epoch)
        self._epoch = record["epoch"]
        self._rows.append(row)
        if _is_compared(row):
            row["members_joined"], row["members_left"] = joined, left
        if record["is_tombstone"]:
            row["state"] = "Dead"
            self._end_life()
            return
        row["members"] = self._count
        self._life.append(row)

    def _member_changes(self) -> tuple[list[str], list[str]]:
        joined, left = [], []
        for member, (has_left, only_went) in self._changed.items():
            was_there = self._members.get(member, False)
            self._members[member] = not has_left
            self._count += int(not has_left) - int(was_there)
            if not has_left and not was_there:
                joined.append(member)
            elif has_left and (was_there or only_went):
                left.append(member)
        self._changed.clear()
        return sorted(joined), sorted(left)

    def _add_assignment(self, record: GroupRecord) -> None:
        moved, self._moved = len(self._moved), set()
        if record["is_tombstone"]:
            return
        epoch = record["epoch"]
        known = self._moved_for.get(epoch)
        is_first = self._assigned_epoch is None
        self._moved_for[epoch] = known if is_first else (known or 0) + moved
        self._assigned_epoch = epoch

    def _end_generation(self) -> None:
        """Note how many members have come to the last generation before the next one."""
        come, self._come = self._come, {}
        if self._life:
            row = self._life[-1]
            settled = (row["generation"], _SETTLED)
            row["settled"] = sum(each == settled for each in come.values())

    def _end_life(self) -> None:
        for row in self._life:
            settled, epoch = row.pop("settled", 0), row["generation"]
            if _is_compared(row) and self._type != "streams":
                row["partitions_moved"] = self._moved_for.get(epoch)
            if epoch is not None:
                row["state"] = self._state(row, settled)
        self._life, self._moved_for = [], {}

    def _state(self, row: _Row, settled: int) -> str | None:
        if not row["members"]:
            return "Empty"
        if self._type != "consumer":
            return "Stable" if self._type == "share" else None
        if row["generation"] not in self._moved_for:
            return "Assigning"
        return "Stable" if settled >= row["members"] else "Reconciling"


def _row(record: GroupRecord, previous: int | None) -> _Row:
    row = {name: record[name] for name in _OF_RECORD}
    return row | {"generation": record["epoch"], "previous_generation": previous}


def _is_compared(row: _Row) -> bool:
    """Return whether there is a generation before to compare with."""
    return row["generation"] is not None and row["previous_generation"] is not None


def _owned(assigned: Collection[GroupRecord], member: str) -> _Places:
    """Return a member's partitions one by one, of topics by name or by id."""
    return frozenset(
        (topic["topic"] if topic["topic"] is not None else topic["topic_id"], partition, member)
        for topic in assigned
        for partition in topic["partitions"]
    )


def _owned_by_all(members: Collection[GroupRecord]) -> _Places | None:
    """Return the partitions of all members, None where those of one are not known."""
    if any(member["assigned"] is None for member in members):
        return None
    return frozenset().union(
        *(_owned(member["assigned"], member["member_id"]) for member in members)
    )


def _moved(before: _Places, after: _Places) -> set[tuple[Any, ...]]:
    """Return the partitions that a member has before or after, but not both."""
    return {(topic, partition) for topic, partition, _ in before ^ after}
