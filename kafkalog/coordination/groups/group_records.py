"""Groups and their members as their coordinators have them, now or at a past time, from rows of
view `group_metadata` of one or more partitions of `__consumer_offsets`. Rules: docs/format.md F320
to F322.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

# The columns of view `group_metadata` that these rules read.
GROUP_RECORD_COLUMNS = (
    *("cluster_id", "internal_partition", "group_id", "group_type", "record_type", "member_id"),
    *("record_offset", "record_timestamp_ms", "is_tombstone", "reason", "epoch"),
    *("validated_topology_epoch", "protocol_type", "protocol", "state_timestamp_ms"),
    *("member_state", "instance_id", "rack_id", "client_id", "client_host", "subscribed_topics"),
    *("subscribed_topic_regex", "server_assignor", "assigned", "members"),
)
# Record types with the same meaning in classic, consumer, share and streams groups.
GROUP_RECORDS = (2, 3, 11, 17)
MEMBER_RECORDS = (5, 10, 19)
TARGET_RECORDS = (6, 12, 20)
TARGET_MEMBER_RECORDS = (7, 13, 21)
CURRENT_ASSIGNMENT_RECORDS = (8, 14, 22)
CLASSIC_RECORD, REGEX_RECORD, TOPOLOGY_RECORD = 2, 16, 23
# What members of a group that assigns on the broker ask for is the group's assignor; of those that
# ask for none, this.
DEFAULT_ASSIGNOR = "uniform"
_STREAMS_STABLE, _STABLE = 1, 0

GroupRecord = Mapping[str, Any]
GroupPartition = tuple[str, int]


class GroupKey(NamedTuple):
    """The key of a group; groups in ZooKeeper have no internal_partition."""

    cluster_id: str | None
    internal_partition: int | None
    group_id: str


class GroupMember(NamedTuple):
    """A member of a group. `subscribed_topics` is None where they cannot be read, `assigned` has
    topics by their names or ids with their partitions, and is None in streams groups. `work` is
    what a worker of Connect or an instance of Streams has in a classic group, in words."""

    group: GroupKey
    group_type: str
    member_id: str
    instance_id: str | None
    client_id: str | None
    client_host: str | None
    rack_id: str | None = None
    member_epoch: int | None = None
    member_state: int | None = None
    server_assignor: str | None = None
    subscribed_topics: frozenset[str] | None = None
    assigned: Sequence[GroupRecord] | None = None
    work: str | None = None


class Group(NamedTuple):
    """A group; its state is None where its record cannot be read."""

    key: GroupKey
    group_type: str | None
    state: str | None
    protocol_type: str | None
    assignor: str | None
    epoch: int | None
    target_epoch: int | None
    state_timestamp_ms: int | None
    members: int
    is_simple: bool


class LatestRecords:
    """Takes records in any order and keeps of each key the last one, of those written up to a
    moment if one is given, tombstones among them."""

    def __init__(self, at_ms: int | None = None) -> None:
        self._at_ms = at_ms
        self._latest: dict[tuple[object, ...], GroupRecord] = {}

    def add(self, record: GroupRecord) -> None:
        """Take a row of view `group_metadata`."""
        if record["group_id"] is None or record["record_type"] is None:
            return
        written_ms = record["record_timestamp_ms"]
        if self._at_ms is not None and (written_ms is None or written_ms > self._at_ms):
            return
        is_regex = record["record_type"] == REGEX_RECORD
        expression = record["subscribed_topic_regex"] if is_regex else None
        key = (group_key(record), record["record_type"], record["member_id"], expression)
        known = self._latest.get(key)
        if known is None or known["record_offset"] < record["record_offset"]:
            self._latest[key] = record

    def records(self) -> list[GroupRecord]:
        """Return the records that are kept."""
        return list(self._latest.values())


def group_key(row: GroupRecord) -> GroupKey:
    """Return the group that a row is about."""
    return GroupKey(row["cluster_id"], row["internal_partition"], row["group_id"])


def group_members(latest: Iterable[GroupRecord]) -> list[GroupMember]:
    """Return the members of all groups; for classic groups, of the last generation."""
    live = [record for record in latest if not record["is_tombstone"]]
    return [*_classic_members(live), *_other_members(live)]


def _classic_members(live: Iterable[GroupRecord]) -> Iterator[GroupMember]:
    for record in live:
        if record["record_type"] != CLASSIC_RECORD:
            continue
        for member in record["members"] or ():
            topics = member["subscribed_topics"]
            yield GroupMember(
                group=group_key(record),
                group_type=record["group_type"],
                member_id=member["member_id"],
                instance_id=member["group_instance_id"],
                client_id=member["client_id"],
                client_host=member["client_host"],
                subscribed_topics=None if topics is None else frozenset(topics),
                assigned=member["assigned"],
                work=member.get("work"),
            )


def _other_members(live: Sequence[GroupRecord]) -> Iterator[GroupMember]:
    """Yield the members of consumer, share and streams groups, from a record of who a member is and
    one of its assignment."""
    has = {
        (group_key(record), record["member_id"]): record
        for record in live
        if record["record_type"] in CURRENT_ASSIGNMENT_RECORDS
    }
    matched = {
        (group_key(record), record["subscribed_topic_regex"]): record["subscribed_topics"] or ()
        for record in live
        if record["record_type"] == REGEX_RECORD
    }
    for who in live:
        if who["record_type"] not in MEMBER_RECORDS:
            continue
        key = group_key(who)
        current = has.get((key, who["member_id"]), {})
        names = who["subscribed_topics"]
        by_regex = matched.get((key, who["subscribed_topic_regex"]), ())
        yield GroupMember(
            group=key,
            group_type=who["group_type"],
            member_id=who["member_id"],
            instance_id=who["instance_id"],
            client_id=who["client_id"],
            client_host=who["client_host"],
            rack_id=who["rack_id"],
            member_epoch=current.get("epoch"),
            member_state=current.get("member_state"),
            server_assignor=who["server_assignor"],
            subscribed_topics=None if names is None else frozenset((*names, *by_regex)),
            assigned=current.get("assigned"),
        )


def known_groups(
    latest: Iterable[GroupRecord],
    members: Iterable[GroupMember],
    committing: Collection[GroupKey],
    default_assignor: str = DEFAULT_ASSIGNOR,
) -> dict[GroupKey, Group]:
    """Return the groups that have records, whose `group_members` are given, and those that are
    `committing`: some groups only commit. Groups that only have tombstones left are Dead."""
    own: dict[GroupKey, list[GroupMember]] = defaultdict(list)
    for member in members:
        own[member.group].append(member)
    by_group: dict[GroupKey, list[GroupRecord]] = {key: [] for key in committing}
    for record in latest:
        by_group.setdefault(group_key(record), []).append(record)
    return {
        key: _group(key, found, own[key], key in committing, default_assignor)
        for key, found in by_group.items()
    }


def _group(
    key: GroupKey,
    records: Sequence[GroupRecord],
    members: Sequence[GroupMember],
    is_committing: bool,
    default_assignor: str,
) -> Group:
    live = [record for record in records if not record["is_tombstone"]]
    kinds = [record for record in live if record["record_type"] in GROUP_RECORDS]
    target = _largest(live, TARGET_RECORDS, "epoch")
    if not kinds:
        last = max(records, key=lambda record: int(record["record_offset"]), default=None)
        last_type = None if last is None else last["group_type"]
        group_type, state = ("classic", "Empty") if is_committing else (last_type, "Dead")
        nothing = (None, None, None, target, None)
        return Group(key, group_type, state, *nothing, len(members), is_simple=is_committing)
    kind = max(kinds, key=lambda record: int(record["record_offset"]))
    # What has committed but never joined has a record with an empty protocol type at times.
    protocol_type = kind["protocol_type"] or None
    is_classic = kind["group_type"] == "classic" and kind["reason"] is None
    return Group(
        key,
        kind["group_type"],
        _state(kind, live, members, target),
        protocol_type,
        _assignor(kind, members, default_assignor),
        kind["epoch"],
        target,
        kind["state_timestamp_ms"],
        len(members),
        is_simple=is_classic and protocol_type is None,
    )


def _state(
    kind: GroupRecord,
    live: Sequence[GroupRecord],
    members: Sequence[GroupMember],
    target: int | None,
) -> str | None:
    """Return the state by the rules of the group's type, F321 and F322."""
    if kind["reason"] is not None:
        return None
    if not members:
        return "Empty"
    if kind["group_type"] in ("classic", "share"):
        return "Stable"
    is_streams = kind["group_type"] == "streams"
    topology = _largest(live, (TOPOLOGY_RECORD,), "epoch")
    validated = _largest(live, GROUP_RECORDS, "validated_topology_epoch")
    if is_streams and (topology is None or topology != validated):
        return "NotReady"
    if kind["epoch"] is not None and kind["epoch"] > (target or 0):
        return "Assigning"
    stable = _STREAMS_STABLE if is_streams else _STABLE
    has_come = all(
        member.member_state == stable and member.member_epoch == target for member in members
    )
    return "Stable" if has_come and target is not None else "Reconciling"


def _largest(live: Iterable[GroupRecord], types: Collection[int], column: str) -> int | None:
    found = [record[column] for record in live if record["record_type"] in types]
    return max((number for number in found if number is not None), default=None)


def _assignor(kind: GroupRecord, members: Sequence[GroupMember], default: str) -> str | None:
    """Return the assignor that most members ask for, the first by name of several: which one a
    broker takes is not specified."""
    if kind["group_type"] == "classic":
        protocol: str | None = kind["protocol"] if members else None
        return protocol
    if kind["group_type"] != "consumer":
        return None
    requested = Counter(
        each.server_assignor for each in members if each.server_assignor is not None
    )
    return min(requested, key=lambda name: (-requested[name], name), default=default)


def assigned_partitions(
    members: Sequence[GroupMember], topic_names: Mapping[str, str]
) -> dict[GroupKey, dict[GroupPartition, int]]:
    """Return for each group the partitions that its members have, with the number of the member.
    `topic_names` has the names of topic ids; partitions of other ids are left out. If several
    members claim a partition, because one of them has died, it is the last by id."""
    found: dict[GroupKey, dict[GroupPartition, int]] = defaultdict(dict)
    for number in sorted(range(len(members)), key=lambda number: members[number].member_id):
        own = found[members[number].group]
        for each in members[number].assigned or ():
            topic = each["topic"] or topic_names.get(each["topic_id"] or "")
            if topic:
                own.update(dict.fromkeys(((topic, one) for one in each["partitions"]), number))
    return dict(found)
