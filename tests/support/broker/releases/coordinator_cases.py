"""Partitions of coordinators' topics, record by record, and whether the coordinators of releases
load them. `tests/broker/test_coordinators_on_broker.py` starts brokers on them; the outcomes here
are theirs.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

_TOPIC_ID = "rTxw5LqSTsqGkFGi0GfeKw"
_BEGINS_MS = 1_700_000_000_000

# Its coordinator of groups knows the types up to this one.
_OLD, _OLD_TYPES = "3.9", 2

KeyValue = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class CoordinatorCase:
    """A partition's records; the offset of the one that stops the coordinator, None if it loads,
    and other offsets by release; and how many records are passed over with a warning."""

    name: str
    records: Sequence[KeyValue]
    stops_at: int | None = None
    stops_by_release: Mapping[str, int | None] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)

    def stops(self, release: str) -> int | None:
        """Return the offset at which the coordinator of a release stops."""
        found = self.stops_by_release.get(release, self.stops_at)
        if release != _OLD or found is None or self.records[found][0] is None:
            return found
        return None if self._is_new(found) else found

    def skips(self, release: str) -> int:
        """Return how many records the coordinator of a release passes over."""
        if release != _OLD or self not in GROUP_CASES:
            return self.skipped.get(release, self.skipped.get("", 0))
        stop = self.stops(release)
        return sum(map(self._is_new, range(len(self.records) if stop is None else stop)))

    def _is_new(self, offset: int) -> bool:
        """Return whether a record is of a type that the coordinator until 3.9 does not know."""
        key = self.records[offset][0] or b""
        return len(key) > 1 and int.from_bytes(key[:2], "big") > _OLD_TYPES

    def batches(self) -> list[bytes]:
        """Return a batch for each record."""
        return [
            write_batch([Record(offset, _BEGINS_MS + offset, 0, key, value)], BatchFields())
            for offset, (key, value) in enumerate(self.records)
        ]


def _record(topic: str, number: int, key: Any, value: Any = None, version: int = 0) -> KeyValue:
    written = None if value is None else write_record_value(topic, number, version, value)
    return write_record_key(topic, number, key), written


def _of_groups(number: int, key: Any, value: Any = None, version: int = 0) -> KeyValue:
    return _record(CONSUMER_OFFSETS, number, key, value, version)


def commit(group: str, offset: int = 5) -> KeyValue:
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": _BEGINS_MS}
    return _of_groups(1, {"group": group, "topic": "orders", "partition": 0}, value, 3)


def classic(group: str, members: Sequence[tuple[str, str | None]] = ()) -> KeyValue:
    value = {
        "protocolType": "consumer",
        "generation": 1,
        "currentStateTimestamp": _BEGINS_MS,
        "protocol": "range" if members else None,
        "leader": members[0][0] if members else None,
        "members": [
            {
                "memberId": member,
                "groupInstanceId": instance,
                "clientId": "c",
                "clientHost": "/h",
                "rebalanceTimeout": 1000,
                "sessionTimeout": 1000,
                "subscription": struct.pack(">hih6si", 0, 1, 6, b"orders", -1),
                "assignment": b"",
            }
            for member, instance in members
        ],
    }
    return _of_groups(2, {"group": group}, value, 3)


def classic_tombstone(group: str) -> KeyValue:
    return _of_groups(2, {"group": group})


def group_epoch(group: str, epoch: int | None = 1, version: int = 0) -> KeyValue:
    value = None if epoch is None else {"epoch": epoch, "metadataHash": 0}
    return _of_groups(3, {"groupId": group}, value, version)


def member(group: str, name: str, *, is_removed: bool = False) -> KeyValue:
    value = {
        "instanceId": None,
        "rackId": None,
        "clientId": "c",
        "clientHost": "/h",
        "subscribedTopicNames": ["orders"],
        "subscribedTopicRegex": None,
        "rebalanceTimeoutMs": 1000,
        "serverAssignor": None,
        "classicMemberMetadata": None,
    }
    return _of_groups(5, {"groupId": group, "memberId": name}, None if is_removed else value)


def target_epoch(group: str, epoch: int | None = 1) -> KeyValue:
    value = None if epoch is None else {"assignmentEpoch": epoch, "assignmentTimestamp": 0}
    return _of_groups(6, {"groupId": group}, value)


def target(group: str, name: str, *, is_removed: bool = False) -> KeyValue:
    value = None if is_removed else {"topicPartitions": _partitions(0)}
    return _of_groups(7, {"groupId": group, "memberId": name}, value)


def current(group: str, name: str, epoch: int | None, *partitions: int) -> KeyValue:
    value = None
    if epoch is not None:
        value = {
            "memberEpoch": epoch,
            "previousMemberEpoch": epoch - 1,
            "state": 0,
            "assignedPartitions": [
                {**each, "assignmentEpochs": None} for each in _partitions(*partitions)
            ],
            "partitionsPendingRevocation": [],
        }
    return _of_groups(8, {"groupId": group, "memberId": name}, value)


def _partitions(*numbers: int) -> list[dict[str, Any]]:
    return [{"topicId": _TOPIC_ID, "partitions": list(numbers)}] if numbers else []


def share_member(group: str, name: str) -> KeyValue:
    value = {
        "rackId": None,
        "clientId": "c",
        "clientHost": "/h",
        "subscribedTopicNames": ["orders"],
    }
    return _of_groups(10, {"groupId": group, "memberId": name}, value)


def topology(group: str) -> KeyValue:
    return _of_groups(23, {"groupId": group}, {"epoch": 1, "subtopologies": []})


_JOINED = (group_epoch("c"), member("c", "m"), target("c", "m"), target_epoch("c"))
_COMMIT_KEY = commit("g")[0] or b""
_COMMIT_VALUE = commit("g")[1] or b""
_NO_STREAMS = {"4.0": None}

GROUP_CASES = (
    CoordinatorCase("commits", [commit("g"), commit("h")]),
    CoordinatorCase("classic-then-member", [classic("g"), member("g", "m")], 1),
    CoordinatorCase("commit-then-member", [commit("g"), member("g", "m")]),
    CoordinatorCase("commit-then-share", [commit("g"), share_member("g", "m")], 1),
    CoordinatorCase(
        *("commit-then-streams", [commit("g"), topology("g")], None),
        {"4.0": None, "4.1": 1, "4.2": 1},
        {"4.0": 1},
    ),
    CoordinatorCase("consumer-then-classic", [*_JOINED, classic("c")]),
    CoordinatorCase("share-then-member", [share_member("g", "m"), member("g", "n")], 1),
    CoordinatorCase("member-of-epoch-removed", [*_JOINED, member("c", "m", is_removed=True)], 4),
    CoordinatorCase(
        "member-with-target-removed",
        [
            *_JOINED,
            current("c", "m", 1),
            current("c", "m", None),
            member("c", "m", is_removed=True),
        ],
        6,
    ),
    CoordinatorCase(
        "all-removed",
        [
            *(*_JOINED, current("c", "m", 1, 0), current("c", "m", None)),
            *(target("c", "m", is_removed=True), member("c", "m", is_removed=True)),
            *(target_epoch("c", None), group_epoch("c", None), group_epoch("c", None)),
        ],
    ),
    CoordinatorCase("group-with-member-removed", [*_JOINED, group_epoch("c", None)], 4),
    CoordinatorCase(
        "group-with-target-removed",
        [group_epoch("c"), target("c", "m"), target_epoch("c"), group_epoch("c", None)],
        3,
    ),
    CoordinatorCase("group-without-target-removed", [group_epoch("c"), group_epoch("c", None)], 1),
    CoordinatorCase("target-with-member-removed", [*_JOINED, target_epoch("c", None)], 4),
    CoordinatorCase(
        "tombstones-of-no-group",
        [
            *(current("c", "m", None), target("c", "m", is_removed=True), group_epoch("c", None)),
            *(member("c", "m", is_removed=True), target_epoch("c", None), classic_tombstone("c")),
        ],
    ),
    CoordinatorCase(
        "one-partition-twice", [current("c", "m", 3, 0), current("c", "n", 3, 0, 1)], 1
    ),
    CoordinatorCase(
        *("partition-in-a-later-epoch", [current("c", "m", 3, 0), current("c", "n", 4, 0)], None),
        {"4.0": 1, "4.1": 1},
    ),
    CoordinatorCase(
        *(
            "partition-left-later",
            [*(current("c", "m", 3, 0), current("c", "n", 4, 0), current("c", "m", 4))],
            None,
        ),
        {"4.0": 1, "4.1": 1},
    ),
    CoordinatorCase("partition-again", [current("c", "m", 3, 0), current("c", "m", 4, 0, 1)]),
    CoordinatorCase("static-members", [classic("g", [("m", "i"), ("n", "j")])]),
    CoordinatorCase("static-member-twice", [classic("g", [("m", "i"), ("n", "i")])], 0),
    CoordinatorCase(
        "commit-version-5", [commit("g"), (_COMMIT_KEY, b"\0\5" + _COMMIT_VALUE[2:])], 1
    ),
    CoordinatorCase(
        "group-version-1", [(group_epoch("c")[0], b"\0\1" + (group_epoch("c")[1] or b"")[2:])], 0
    ),
    CoordinatorCase("unknown-type", [(b"\0\x63", b"\0\0"), commit("g")], skipped={"": 1}),
    CoordinatorCase("unknown-type-without-value", [(b"\0\x63", None)], skipped={"": 1}),
    CoordinatorCase("torn-commit", [commit("g"), (_COMMIT_KEY, _COMMIT_VALUE[:5]), commit("h")], 1),
    CoordinatorCase("torn-group", [(classic("g")[0], (classic("g")[1] or b"")[:9])], 0),
    CoordinatorCase("torn-key", [(_COMMIT_KEY[:5], _COMMIT_VALUE)], 0),
    CoordinatorCase("torn-key-of-tombstone", [(_COMMIT_KEY[:5], None)], 0),
    CoordinatorCase("no-key", [(None, _COMMIT_VALUE)], 0),
    CoordinatorCase("key-of-a-byte", [(b"\0", _COMMIT_VALUE)], 0),
    CoordinatorCase("empty-value", [(_COMMIT_KEY, b"")], 0),
    CoordinatorCase("bytes-after-value", [(_COMMIT_KEY, _COMMIT_VALUE + b"more")]),
    CoordinatorCase("bytes-after-key", [(_COMMIT_KEY + b"more", _COMMIT_VALUE)]),
    CoordinatorCase("unreadable-group-name", [(_COMMIT_KEY.replace(b"g", b"\xff"), _COMMIT_VALUE)]),
)


def _transaction(name: str, status: int = 0, version: int = 1) -> KeyValue:
    value = {
        "producerId": 7,
        "producerEpoch": 0,
        "transactionTimeoutMs": 60_000,
        "transactionStatus": status,
        "transactionLastUpdateTimestampMs": _BEGINS_MS,
        "transactionStartTimestampMs": _BEGINS_MS,
        "transactionPartitions": [{"topic": "orders", "partitionIds": [0]}] if status else None,
    }
    return _record(TRANSACTION_STATE, 0, {"transactionalId": name}, value, version)


_TRANSACTION_KEY, _TRANSACTION_VALUE = _transaction("b")
_TORN = (_TRANSACTION_VALUE or b"")[:9]

TRANSACTION_CASES = (
    CoordinatorCase("ids", [_transaction("a"), _transaction("b", 4)]),
    CoordinatorCase("torn", [_transaction("a"), (_TRANSACTION_KEY, _TORN), _transaction("c")], 1),
    CoordinatorCase(
        "version-2",
        [_transaction("a"), (_TRANSACTION_KEY, b"\0\2" + _TORN[2:]), _transaction("c")],
        None,
        {"3.9": 1, "4.0": 1, "4.1": 1, "4.2": 1},
        {"4.3": 1, "4.4": 1},
    ),
    CoordinatorCase("state-9", [_transaction("a"), _transaction("b", 9)], 1),
    CoordinatorCase("no-key", [_transaction("a"), (None, b"\0\0")], 1),
    CoordinatorCase("unknown-type", [(b"\0\7", b"\0\0"), _transaction("a")], skipped={"": 1}),
    CoordinatorCase("tombstone", [_transaction("a"), (_transaction("a")[0], None)]),
)


def _share(number: int, *, has_value: bool = True) -> KeyValue:
    key = {"groupId": "s", "topicId": _TOPIC_ID, "partition": 0}
    value = {
        "snapshotEpoch": 1,
        "stateEpoch": 0,
        "leaderEpoch": 0,
        "startOffset": 0,
        "deliveryCompleteCount": 0,
        "createTimestamp": 0,
        "writeTimestamp": 0,
        "stateBatches": [],
    }
    if number:
        for name in ("stateEpoch", "createTimestamp", "writeTimestamp"):
            del value[name]
    return _record(SHARE_GROUP_STATE, number, key, value if has_value else None)


SHARE_CASES = (
    CoordinatorCase("snapshot-and-update", [_share(0), _share(1)]),
    CoordinatorCase("update-without-value", [_share(0), _share(1, has_value=False)], 1),
    CoordinatorCase("snapshot-tombstone", [_share(0), _share(0, has_value=False)]),
    CoordinatorCase("version-1", [(_share(0)[0], b"\0\1" + (_share(0)[1] or b"")[2:])], 0),
    CoordinatorCase("unknown-type", [(b"\0\7", b"\0\0")], skipped={"": 1}),
    CoordinatorCase("torn", [(_share(0)[0], (_share(0)[1] or b"")[:6])], 0),
)

CASES: Mapping[str, Sequence[CoordinatorCase]] = {
    CONSUMER_OFFSETS: GROUP_CASES,
    TRANSACTION_STATE: TRANSACTION_CASES,
    SHARE_GROUP_STATE: SHARE_CASES,
}
