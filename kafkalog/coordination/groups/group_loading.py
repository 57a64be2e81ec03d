"""What a group coordinator makes of its partition of `__consumer_offsets` when it loads it: it
replays the records in their order, and the first one that contradicts those before it ends the
loading. Then the broker answers for none of the partition's groups.

Rules: docs/format.md F1000 to F1005; GroupMetadataManager.replay and ConsumerGroup in Kafka's
sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kafkalog.coordination.metadata.releases import is_at_least

Values = Mapping[str, Any]
# Members have this epoch after they left, and target assignments after their tombstone.
_LEFT = -1
_CLASSIC = "GroupMetadata"
_COMMITS = ("OffsetCommit", "LegacyOffsetCommit")


class LoadError(Exception):
    """Why a coordinator does not load a record, as a sentence about the record's group."""


class GroupType(Enum):
    """The types of groups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@dataclass(slots=True)
class _Member:
    """The epoch of a member, and the partitions that it has, by topic id."""

    epoch: int = 0
    owned: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class LoadedGroup:
    """A group as far as the records so far tell. A classic group `is_simple` without members and
    protocol type: it has nothing but commits."""

    type: GroupType
    is_simple: bool = False
    members: dict[str, _Member] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)
    assignment_epoch: int = 0
    owners: dict[tuple[str, int], int] = field(default_factory=dict)


_TYPES = {
    "ConsumerGroup": GroupType.CONSUMER,
    "ShareGroup": GroupType.SHARE,
    "StreamsGroup": GroupType.STREAMS,
}


class GroupLoad:
    """Replays the records of a partition as the coordinator of a release does, 4.0 and later;
    `old_coordinator` is the one before, which brokers until 3.9 have."""

    def __init__(self, release: str, *, old_coordinator: bool) -> None:
        self.groups: dict[str, LoadedGroup] = {}
        # Groups of other protocols that a tombstone of a classic group removed, with their commits.
        self.removed_by_classic: set[str] = set()
        self._release = release
        self._is_old = old_coordinator
        # Before 4.2 a partition that two members had in turn could keep a group from loading.
        self._is_strict = not is_at_least(release, "4.2")

    def knows(self, record_name: str) -> bool:
        """Return whether the coordinator reads records of a type; it passes over others with a
        warning."""
        return not self._is_old or record_name in (*_COMMITS, _CLASSIC)

    def commits(self, group_ids: Iterable[str]) -> None:
        """Take commits of groups that are not tombstones."""
        for group_id in group_ids:
            if group_id not in self.groups:
                self.groups[group_id] = LoadedGroup(GroupType.CLASSIC, is_simple=True)
                self.removed_by_classic.discard(group_id)

    def replay(self, record_name: str, key: Values, value: Values | None) -> None:
        """Take a record, its value None for a tombstone. Raises LoadError where the coordinator
        stops."""
        if record_name in _COMMITS:
            if value is not None:
                self.commits([key["group"]])
        elif record_name == _CLASSIC:
            self._classic(key["group"], value)
        else:
            for beginning, group_type in _TYPES.items():
                if record_name.startswith(beginning):
                    self._modern(group_type, record_name.removeprefix(beginning), key, value)

    def _classic(self, group_id: str, value: Values | None) -> None:
        if value is None:
            removed = self.groups.pop(group_id, None)
            if removed is not None and removed.type is not GroupType.CLASSIC:
                self.removed_by_classic.add(group_id)
            return
        members = value["members"]
        instances = [each["groupInstanceId"] for each in members if each.get("groupInstanceId")]
        twice = next((each for each in instances if instances.count(each) > 1), None)
        if twice is not None:
            raise LoadError(f"two members of group {group_id} have the instance id {twice}")
        is_simple = not members and not value.get("protocolType")
        self.groups[group_id] = LoadedGroup(GroupType.CLASSIC, is_simple=is_simple)

    def _modern(self, group_type: GroupType, part: str, key: Values, value: Values | None) -> None:
        group_id = key["groupId"]
        group = self._group(group_id, group_type, is_made=self._makes(group_type, part, value))
        if group is not None and part in _PARTS:
            _PARTS[part](self, group, key, value)

    def _makes(self, group_type: GroupType, part: str, value: Values | None) -> bool:
        """Return whether a record makes its group if there is none. In 4.0 assignments of share
        groups did not."""
        is_early = group_type is GroupType.SHARE and not is_at_least(self._release, "4.1")
        return value is not None and not (is_early and "Assignment" in part)

    def _group(self, group_id: str, group_type: GroupType, *, is_made: bool) -> LoadedGroup | None:
        group = self.groups.get(group_id)
        if group is None:
            if not is_made:
                self._missing(group_id, group_type)
                return None
            return self._new(group_id, group_type)
        if group.type is group_type:
            return group
        if group.is_simple and self._replaces_simple(group_type):
            return self._new(group_id, group_type)
        raise LoadError(
            f"group {group_id} is a {group.type.value} group by the records before, "
            f"not a {group_type.value} group"
        )

    def _missing(self, group_id: str, group_type: GroupType) -> None:
        """A record that makes no group and finds none is passed over, but not by early releases."""
        is_early = not is_at_least(self._release, "4.0")
        is_early |= group_type is GroupType.SHARE and not is_at_least(self._release, "4.1")
        if is_early:
            raise LoadError(f"there is no {group_type.value} group {group_id} before it")

    def _new(self, group_id: str, group_type: GroupType) -> LoadedGroup:
        group = self.groups[group_id] = LoadedGroup(group_type)
        self.removed_by_classic.discard(group_id)
        return group

    def _replaces_simple(self, group_type: GroupType) -> bool:
        """Return whether a group of this type takes the place of one that has nothing but
        commits."""
        if group_type is GroupType.CONSUMER:
            return is_at_least(self._release, "4.0")
        return group_type is GroupType.STREAMS and is_at_least(self._release, "4.3")

    def metadata(self, group: LoadedGroup, key: Values, value: Values | None) -> None:
        """Take a record about a group."""
        if value is not None:
            return
        if group.members:
            raise LoadError(_kept(key, "it has members"))
        if group.targets and group.type is not GroupType.STREAMS:
            raise LoadError(_kept(key, "it has a target assignment"))
        if group.assignment_epoch != _LEFT:
            raise LoadError(_kept(key, "no tombstone of its target assignment came before"))
        del self.groups[key["groupId"]]

    def member_metadata(self, group: LoadedGroup, key: Values, value: Values | None) -> None:
        """Take a record about a member."""
        member_id = key["memberId"]
        member = group.members.get(member_id)
        if value is not None:
            known = _Member() if member is None else member
            self._update(group, member_id, _Member(known.epoch, known.owned))
        elif member is not None:
            if member.epoch != _LEFT:
                raise LoadError(_kept(key, "no tombstone of its current assignment came before"))
            if member_id in group.targets:
                raise LoadError(_kept(key, "no tombstone of its target assignment came before"))
            self._release_all(group, member)
            del group.members[member_id]

    def target_metadata(self, group: LoadedGroup, key: Values, value: Values | None) -> None:
        """Take the epoch of a target assignment."""
        if value is None and group.targets:
            raise LoadError(_kept(key, "its target assignment still has members"))
        group.assignment_epoch = _LEFT if value is None else value["assignmentEpoch"]

    def target_member(self, group: LoadedGroup, key: Values, value: Values | None) -> None:
        """Take a member's part of the target assignment."""
        if value is None:
            group.targets.discard(key["memberId"])
        else:
            group.targets.add(key["memberId"])

    def current_assignment(self, group: LoadedGroup, key: Values, value: Values | None) -> None:
        """Take what a member has now."""
        member_id = key["memberId"]
        if value is not None:
            self._update(group, member_id, _Member(value["memberEpoch"], _owned(value)))
        elif member_id in group.members:
            self._update(group, member_id, _Member(_LEFT))

    def _update(self, group: LoadedGroup, member_id: str, new: _Member) -> None:
        """Set a member, with the partitions that it has: in a consumer group one owner each."""
        old = group.members.get(member_id)
        group.members[member_id] = new
        if group.type is not GroupType.CONSUMER:
            return
        if old is not None:
            self._release_all(group, old)
        for place in new.owned:
            epoch = group.owners.get(place)
            if epoch is not None and (self._is_strict or epoch >= new.epoch):
                raise LoadError(
                    f"member {member_id} has partition {place[1]} of topic {place[0]} in epoch "
                    f"{new.epoch}, which another member has in epoch {epoch}"
                )
            group.owners[place] = new.epoch

    def _release_all(self, group: LoadedGroup, member: _Member) -> None:
        if group.type is not GroupType.CONSUMER:
            return
        for place in member.owned:
            if group.owners.get(place) == member.epoch:
                del group.owners[place]
            elif self._is_strict:
                raise LoadError(
                    f"a member leaves partition {place[1]} of topic {place[0]} in epoch "
                    f"{member.epoch}, which another member has in epoch {group.owners.get(place)}"
                )


_PARTS: Mapping[str, Callable[[GroupLoad, LoadedGroup, Values, Values | None], None]] = {
    "Metadata": GroupLoad.metadata,
    "MemberMetadata": GroupLoad.member_metadata,
    "TargetAssignmentMetadata": GroupLoad.target_metadata,
    "TargetAssignmentMember": GroupLoad.target_member,
    "CurrentMemberAssignment": GroupLoad.current_assignment,
}


def _owned(value: Values) -> list[tuple[str, int]]:
    """Return the partitions that a member of a consumer group has, and those that it gives up."""
    return [
        (topic["topicId"], partition)
        for name in ("assignedPartitions", "partitionsPendingRevocation")
        for topic in value.get(name) or ()
        for partition in topic["partitions"]
    ]


def _kept(key: Values, why: str) -> str:
    """Return what is wrong with a tombstone of a member, a group or its assignment."""
    if "memberId" in key:
        return f"it removes member {key['memberId']} of group {key['groupId']}, but {why}"
    return f"it removes group {key['groupId']}, but {why}"


def group_of(key: Values | None) -> str | None:
    """Return the group that a record is about."""
    return None if key is None else key.get("group", key.get("groupId"))
