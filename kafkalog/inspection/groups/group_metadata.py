"""Records of coordinators as typed rows: views `group_metadata` and `transaction_states`,
schemas/tables/group_metadata.json and schemas/tables/transaction_states.json.

What a record has and the view has no column for is in view `messages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import binaries, booleans, fixed_width, integers
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.columns.table_rows import TableRow
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.messages.clients.client_protocols import (
    CONNECT_PROTOCOL,
    STREAMS_ASSIGNOR,
    work_of_instance,
    work_of_worker,
)
from kafkalog.messages.consumer_protocol import (
    CONSUMER_PROTOCOL,
    read_assignment,
    read_subscription,
)
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.storage.names import CONSUMER_OFFSETS, TRANSACTION_STATE

COORDINATOR_COLUMNS = ("key", "value", IS_CONTROL, "offset", "timestampMs", "file", "brokerId")
# By TransactionStatus, of a record in __transaction_state.
TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
# The last record type of each kind of group; 0 and 1 are commits.
_GROUP_TYPES = ((2, "classic"), (8, "consumer"), (15, "share"), (16, "consumer"), (23, "streams"))
_COMMITS_END = 2
_TYPE_BYTES = 2
_EPOCHS = ("generation", "epoch", "assignmentEpoch", "memberEpoch")
_ASSIGNED = ("assignedPartitions", "topicPartitions")

_Values = Mapping[str, Any]


def group_rows(records: pa.RecordBatch, *, of_each_key_last: bool = False) -> Iterator[TableRow]:
    """Yield the rows of group metadata among records of `__consumer_offsets`; `of_each_key_last`:
    of records with one key that with the highest offset alone, the others are not read."""
    records = _without_commits(records)
    if of_each_key_last:
        records = _last_of_each_key(records)
    read_protocol = _ProtocolReader()
    for place, record in _internal_records(CONSUMER_OFFSETS, records):
        number = record.record_type
        if number is not None and number >= _COMMITS_END:
            key, value = record.key or {}, record.value or {}
            yield {
                **place,
                "group_id": key.get("group", key.get("groupId")),
                "group_type": next((name for last, name in _GROUP_TYPES if number <= last), None),
                "member_id": key.get("memberId"),
                **_group_columns(key, value),
                "members": _members(value, read_protocol) if "members" in value else None,
            }


def _last_of_each_key(records: pa.RecordBatch) -> pa.RecordBatch:
    last: dict[bytes, int] = {}
    offsets = integers(records.column("offset")).tolist()
    for number, key in enumerate(records.column("key").to_pylist()):
        if offsets[last.setdefault(key, number)] < offsets[number]:
            last[key] = number
    return records.take(fixed_width(np.array(sorted(last.values())), pa.int64()))


def _without_commits(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records whose key begins with another type, without reading the commits, which are
    nearly all, and without control records."""
    data, begins, has_key = binaries(records.column("key"))
    is_data = has_key & ~booleans(records.column(IS_CONTROL))
    rows = np.flatnonzero(is_data & (np.diff(begins) >= _TYPE_BYTES))
    high, low = (data[begins[rows] + byte].astype(np.int16) for byte in range(_TYPE_BYTES))
    return records.take(fixed_width(rows[(high << 8 | low) >= _COMMITS_END], pa.int64()))


def transaction_state_rows(records: pa.RecordBatch) -> Iterator[TableRow]:
    """Yield the rows of records of `__transaction_state`."""
    for place, record in _internal_records(TRANSACTION_STATE, records):
        key, value = record.key or {}, record.value or {}
        yield {
            **place,
            "transactional_id": key.get("transactionalId"),
            "state": _state_name(value.get("transactionStatus")),
            "producer_id": value.get("producerId"),
            "producer_epoch": value.get("producerEpoch"),
            "previous_producer_id": _known(value.get("previousProducerId")),
            "next_producer_id": _known(value.get("nextProducerId")),
            "timeout_ms": value.get("transactionTimeoutMs"),
            "partitions": _partitions(value.get("transactionPartitions"), "partitionIds"),
            "last_update_ms": value.get("transactionLastUpdateTimestampMs"),
            "started_ms": _known(value.get("transactionStartTimestampMs")),
            "client_transaction_version": value.get("clientTransactionVersion"),
        }


def _internal_records(
    topic: str, records: pa.RecordBatch
) -> Iterator[tuple[dict[str, Any], InternalRecord]]:
    columns = (records.column(name).to_pylist() for name in COORDINATOR_COLUMNS)
    for key, value, is_control, offset, timestamp_ms, file, broker_id in zip(*columns, strict=True):
        if is_control:
            continue
        record = read_internal_record(topic, key, value)
        place = {
            "broker_id": broker_id,
            "file": file,
            "record_offset": offset,
            "record_timestamp_ms": _known(timestamp_ms),
            "record_type": record.record_type,
            "record_name": record.name,
            "version": record.value_version,
            "is_tombstone": record.is_tombstone,
            "reason": record.reason,
            "detail": record.detail,
        }
        yield place, record


def _group_columns(key: _Values, value: _Values) -> dict[str, object]:
    regex = key.get("regularExpression")
    topics = value.get("subscribedTopicNames") if regex is None else value.get("topics")
    return {
        "epoch": next((value[name] for name in _EPOCHS if name in value), None),
        "validated_topology_epoch": _known(value.get("validatedTopologyEpoch")),
        "protocol_type": value.get("protocolType"),
        "protocol": value.get("protocol"),
        "leader": value.get("leader"),
        "state_timestamp_ms": _known(value.get("currentStateTimestamp")),
        "member_state": value.get("state"),
        "instance_id": value.get("instanceId"),
        "rack_id": value.get("rackId"),
        "client_id": value.get("clientId"),
        "client_host": value.get("clientHost"),
        "subscribed_topics": topics,
        "subscribed_topic_regex": value.get("subscribedTopicRegex", regex),
        "rebalance_timeout_ms": _known(value.get("rebalanceTimeoutMs")),
        "server_assignor": value.get("serverAssignor"),
        "assigned": _partitions(next((value[name] for name in _ASSIGNED if name in value), None)),
    }


def _partitions(
    found: list[_Values] | None, numbers: str = "partitions"
) -> list[dict[str, object]] | None:
    """Return topics, by name or by id, with their partitions."""
    if found is None:
        return None
    return [
        {"topic": each.get("topic"), "topic_id": each.get("topicId"), "partitions": each[numbers]}
        for each in found
    ]


class _ProtocolReader:
    """Reads what consumers wrote, the same bytes once: members mostly subscribe to the same
    topics."""

    def __init__(self) -> None:
        self._subscriptions: dict[bytes, _Values] = {}
        self._assignments: dict[bytes, _Values] = {}

    def subscription(self, data: bytes) -> _Values:
        return _protocol(read_subscription, data, self._subscriptions)

    def assignment(self, data: bytes) -> _Values:
        return _protocol(read_assignment, data, self._assignments)


def _members(value: _Values, read: _ProtocolReader) -> list[dict[str, object]]:
    kind = value["protocolType"], value.get("protocol")
    return [_member(member, *kind, read) for member in value["members"]]


def _member(
    member: _Values, protocol_type: str, protocol: str | None, read: _ProtocolReader
) -> dict[str, object]:
    is_consumers = protocol_type == CONSUMER_PROTOCOL
    subscription = read.subscription(member["subscription"]) if is_consumers else {}
    assignment = read.assignment(member["assignment"]) if is_consumers else {}
    return {
        "member_id": member["memberId"],
        "group_instance_id": member.get("groupInstanceId"),
        "client_id": member["clientId"],
        "client_host": member["clientHost"],
        "rebalance_timeout_ms": _known(member.get("rebalanceTimeout")),
        "session_timeout_ms": member["sessionTimeout"],
        "subscribed_topics": subscription.get("topics"),
        "assigned": _partitions(assignment.get("assignedPartitions")),
        "work": _work(protocol_type, protocol, member, (subscription, assignment)),
    }


def _work(
    protocol_type: str, protocol: str | None, member: _Values, consumer: tuple[_Values, _Values]
) -> str | None:
    """Return what else than partitions a member of Connect or Streams has (F1251, F1252)."""
    if protocol_type == CONNECT_PROTOCOL:
        return work_of_worker(member["subscription"], member["assignment"])
    if protocol == STREAMS_ASSIGNOR:
        return work_of_instance(*(each.get("userData") for each in consumer))
    return None


def _protocol(
    read: Callable[[bytes], _Values], data: bytes, known: dict[bytes, _Values]
) -> _Values:
    """Return what a consumer wrote, nothing if it cannot be read: brokers do not check it."""
    found = known.get(data)
    if found is None:
        try:
            found = read(data)
        except CorruptDataError:
            found = {}
        known[data] = found
    return found


def _state_name(status: int | None) -> str | None:
    if status is None:
        return None
    is_known = 0 <= status < len(TRANSACTION_STATES)
    return TRANSACTION_STATES[status] if is_known else f"unknown ({status})"


def _known(value: object) -> object:
    return None if value == NO_VALUE else value
