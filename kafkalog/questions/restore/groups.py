"""Consumer groups and share groups as of the moment, as records of new logs of their coordinators'
topics. Rules: docs/restore.md F1052 to F1056.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.coordination.groups.group_records import (
    CURRENT_ASSIGNMENT_RECORDS,
    GROUP_RECORDS,
    MEMBER_RECORDS,
    REGEX_RECORD,
    TARGET_MEMBER_RECORDS,
    TARGET_RECORDS,
)
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.messages.record_writer import write_record_value
from kafkalog.questions.restore.coordinator_records import CoordinatorRecord, complete_from
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE

_COMMITS = (0, 1)
_CLASSIC, _SHARE_TOPICS = 2, 15
_OF_MEMBERS = {*MEMBER_RECORDS, *TARGET_MEMBER_RECORDS, *CURRENT_ASSIGNMENT_RECORDS, REGEX_RECORD}
# The first version of a classic group's record with the time of its state.
_WITH_TIME = 2
_SNAPSHOT, _UPDATE = 0, 1
_AVAILABLE, _ACQUIRED = 0, 1
_NO_EPOCH = -1
# Generations and epochs that groups can have had after the copies were made.
_UNSEEN_EPOCHS = 1000
Entry = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class RestoredCommit:
    """A commit as it is written, and as it was."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    offset_before: int
    commit_timestamp_ms: int

    @property
    def is_clipped(self) -> bool:
        """Whether the log ends before the offset that was committed."""
        return self.committed_offset < self.offset_before


@dataclass
class RestoredGroups:
    """The records of one partition of `__consumer_offsets`, and what they say. `left_out` are
    commits for partitions that are not restored, `doubtful` the number of a group's keys of which
    the cleaner can have removed a later record from before the moment."""

    entries: list[Entry] = field(default_factory=list)
    commits: list[RestoredCommit] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    left_out: list[tuple[str, str, int]] = field(default_factory=list)
    doubtful: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0


@dataclass(frozen=True)
class GroupSettings:
    """`ends` are the ends of the restored logs, `last_epochs` the last leader epoch in each;
    `is_chosen` says which groups are restored."""

    ends: Mapping[tuple[str, int], int]
    last_epochs: Mapping[tuple[str, int], int]
    topic_ids: set[str]
    is_chosen: Callable[[str], bool]
    now_ms: int


def restored_groups(
    records: Sequence[CoordinatorRecord],
    cut: int,
    is_committed: Callable[[int, int, int], bool],
    settings: GroupSettings,
) -> RestoredGroups:
    """Return the new records of a partition of `__consumer_offsets` whose log is cut at an offset.
    `is_committed` decides transactions without a marker below it."""
    found = RestoredGroups()
    latest = _in_force(records, cut, is_committed)
    found.doubtful = _doubtful(records, cut, latest, settings)
    highest = _highest_epochs(records)
    kept = []
    for record in latest.values():
        read = read_internal_record(CONSUMER_OFFSETS, record.key, record.value)
        if record.value is None or read.record_type in _OF_MEMBERS:
            continue
        kept.append((record, read))
    # A group is made by its own record; one that commits alone has none.
    kept.sort(key=lambda pair: (pair[1].record_type in _COMMITS, pair[0].offset))
    for record, read in kept:
        if read.key is None or read.value is None or read.record_type is None:
            found.unreadable += 1
            found.entries.append((record.key, record.value or b""))
            continue
        group_id = _group_id(read.key)
        if not settings.is_chosen(group_id):
            continue
        values = _values(read, found, settings, highest.get((group_id, _kind(read)), 0))
        if values is None:
            continue
        found.groups.add(group_id)
        version = read.value_version or 0
        if read.record_type == _CLASSIC:
            version = max(version, _WITH_TIME)
        value = write_record_value(CONSUMER_OFFSETS, read.record_type, version, values)
        found.entries.append((record.key, value))
    return found


def _doubtful(
    records: Sequence[CoordinatorRecord],
    cut: int,
    latest: Mapping[bytes, CoordinatorRecord],
    settings: GroupSettings,
) -> dict[str, int]:
    """Return, by group, of how many keys a record may be gone that was in force at the cut: they
    were written again after it."""
    complete = complete_from(records, cut)
    begins = records[0].offset if records else cut
    later = {each.key for each in records if each.offset >= cut and each.is_commit is None}
    found: dict[str, int] = {}
    for key in latest.keys() | later if complete > begins else ():
        known = latest[key].offset if key in latest else begins - 1
        if key in later and known < complete:
            group = _group_id(read_internal_record(CONSUMER_OFFSETS, key, None).key or {})
            if settings.is_chosen(group):
                found[group] = found.get(group, 0) + 1
    return found


def _in_force(
    records: Sequence[CoordinatorRecord], cut: int, is_committed: Callable[[int, int, int], bool]
) -> dict[bytes, CoordinatorRecord]:
    """Return the record in force of each key (docs/format.md F300 to F302)."""
    applied: dict[bytes, CoordinatorRecord] = {}
    pending: dict[int, dict[bytes, CoordinatorRecord]] = {}

    def end(producer_id: int, *, commits: bool) -> None:
        for key, waiting in pending.pop(producer_id, {}).items():
            known = applied.get(key)
            if commits and (known is None or known.offset < waiting.offset):
                applied[key] = waiting

    for record in records:
        if record.offset >= cut:
            break
        if record.is_commit is not None:
            end(record.producer_id, commits=record.is_commit)
        elif record.producer_id >= 0 and record.value is not None:
            pending.setdefault(record.producer_id, {})[record.key] = record
        else:
            applied[record.key] = record
            if record.value is None:
                for waiting in pending.values():
                    waiting.pop(record.key, None)
    for producer_id in list(pending):
        first = min(pending[producer_id].values(), key=lambda each: each.offset, default=None)
        commits = first is not None and is_committed(
            producer_id, first.producer_epoch, first.time_ms
        )
        end(producer_id, commits=commits)
    return applied


def _group_id(key: Mapping[str, Any]) -> str:
    return str(key.get("group", key.get("groupId", "")))


def _kind(read: InternalRecord) -> str:
    return (read.name or "")[:5]


def _highest_epochs(records: Sequence[CoordinatorRecord]) -> dict[tuple[str, str], int]:
    """Return the highest generation or epoch of each group in any record, also beyond the cut, by
    its name and the kind of group."""
    found: dict[tuple[str, str], int] = {}
    for record in records:
        if record.value is None:
            continue
        read = read_internal_record(CONSUMER_OFFSETS, record.key, record.value)
        if read.key is None or read.value is None:
            continue
        if read.record_type in (*GROUP_RECORDS, *TARGET_RECORDS):
            names = ("generation", "epoch", "assignmentEpoch")
            epoch = max(read.value.get(name, 0) for name in names)
            key = _group_id(read.key), _kind(read)
            found[key] = max(found.get(key, 0), epoch)
    return found


def _values(
    read: InternalRecord, found: RestoredGroups, settings: GroupSettings, highest: int
) -> dict[str, Any] | None:
    """Return what is written of a record, None to leave it out."""
    values = dict(read.value or {})
    if read.record_type in _COMMITS:
        return _commit_values(read, values, found, settings)
    if read.record_type == _CLASSIC:
        values |= {
            "generation": highest + _UNSEEN_EPOCHS,
            "protocol": None,
            "leader": None,
            "members": [],
        }
        values["currentStateTimestamp"] = settings.now_ms
    elif read.record_type in GROUP_RECORDS:
        values["epoch"] = highest + _UNSEEN_EPOCHS
    elif read.record_type in TARGET_RECORDS:
        values["assignmentEpoch"] = highest + _UNSEEN_EPOCHS
    elif read.record_type == _SHARE_TOPICS:
        for name in ("initializingTopics", "initializedTopics", "deletingTopics"):
            values[name] = [each for each in values[name] if each["topicId"] in settings.topic_ids]
    return values


def _commit_values(
    read: InternalRecord, values: dict[str, Any], found: RestoredGroups, settings: GroupSettings
) -> dict[str, Any] | None:
    key = read.key or {}
    place = key["topic"], key["partition"]
    end = settings.ends.get(place)
    if end is None:
        found.left_out.append((key["group"], *place))
        return None
    before, time_ms = values["offset"], values["commitTimestamp"]
    values["offset"] = min(before, end)
    is_epoch_known = values.get("leaderEpoch", _NO_EPOCH) <= settings.last_epochs.get(place, -1)
    if "leaderEpoch" in values and (before > end or not is_epoch_known):
        values["leaderEpoch"] = _NO_EPOCH
    values["commitTimestamp"] = settings.now_ms
    if "expireTimestamp" in values:
        values["expireTimestamp"] = -1
    commit = RestoredCommit(key["group"], *place, values["offset"], before, time_ms)
    found.commits.append(commit)
    return values


@dataclass
class _ShareState:
    key: bytes
    values: dict[str, Any]


def restored_share_states(
    records: Sequence[CoordinatorRecord],
    cut: int,
    ends: Mapping[tuple[str, int], int],
    settings: GroupSettings,
) -> list[Entry]:
    """Return the new records of a partition of `__share_group_state`: one snapshot for each
    partition of a group, nothing acquired. `ends` are by topic id and partition."""
    states: dict[tuple[str, str, int], _ShareState] = {}
    epochs: dict[tuple[str, str, int], int] = {}
    for record in records:
        read = read_internal_record(SHARE_GROUP_STATE, record.key, record.value)
        if read.key is None:
            continue
        key = read.key["groupId"], read.key["topicId"], read.key["partition"]
        if read.value is not None and read.record_type == _SNAPSHOT:
            epochs[key] = max(epochs.get(key, 0), read.value["stateEpoch"])
        if record.offset >= cut:
            continue
        if read.value is None:
            if read.is_tombstone:
                states.pop(key, None)
        elif read.record_type == _SNAPSHOT:
            states[key] = _ShareState(record.key, dict(read.value))
        elif key in states and read.value["snapshotEpoch"] == states[key].values["snapshotEpoch"]:
            _update(states[key].values, read.value)
    entries = []
    for key, state in states.items():
        end = ends.get((key[1], key[2]))
        if end is None or not settings.is_chosen(key[0]):
            continue
        values = state.values
        values["startOffset"] = min(values["startOffset"], end)
        values["stateEpoch"] = epochs[key] + _UNSEEN_EPOCHS
        values["snapshotEpoch"] += 1
        values["leaderEpoch"] = 0
        values["writeTimestamp"] = settings.now_ms
        values["stateBatches"] = [
            _available(each) for each in values["stateBatches"] if each["firstOffset"] < end
        ]
        value = write_record_value(SHARE_GROUP_STATE, _SNAPSHOT, 0, values)
        entries.append((state.key, value))
    return entries


def _available(batch: Mapping[str, Any]) -> dict[str, Any]:
    is_acquired = batch["deliveryState"] == _ACQUIRED
    return {**batch, "deliveryState": _AVAILABLE if is_acquired else batch["deliveryState"]}


def _update(values: dict[str, Any], update: Mapping[str, Any]) -> None:
    """Let a snapshot take an update: its batches replace what was said of their offsets."""
    if update["startOffset"] >= 0:
        values["startOffset"] = update["startOffset"]
    if update.get("deliveryCompleteCount", -1) >= 0:
        values["deliveryCompleteCount"] = update["deliveryCompleteCount"]
    batches = list(values["stateBatches"])
    for added in update["stateBatches"]:
        batches = [part for each in batches for part in _outside(each, added)] + [added]
    start = values["startOffset"]
    kept = [each for each in batches if each["lastOffset"] >= start]
    values["stateBatches"] = sorted(
        ({**each, "firstOffset": max(each["firstOffset"], start)} for each in kept),
        key=lambda each: each["firstOffset"],
    )


def _outside(batch: Mapping[str, Any], added: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a batch that another one does not replace."""
    parts = []
    if batch["firstOffset"] < added["firstOffset"]:
        last = min(batch["lastOffset"], added["firstOffset"] - 1)
        parts.append({**batch, "lastOffset": last})
    if batch["lastOffset"] > added["lastOffset"]:
        first = max(batch["firstOffset"], added["lastOffset"] + 1)
        parts.append({**batch, "firstOffset": first})
    return parts
