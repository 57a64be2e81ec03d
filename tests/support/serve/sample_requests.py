"""Requests of every kind: as clients send them, and as none does."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

from kafkalog.messages.protocol import apis
from tests.support.serve.raw_client import request_bytes

FETCH: dict[str, Any] = {
    "maxWaitMs": 0,
    "minBytes": 1,
    "maxBytes": 1_000_000,
    "isolationLevel": 0,
    "sessionId": 0,
    "sessionEpoch": -1,
    "forgottenTopicsData": [],
    "rackId": "",
}


# What a client could ask of each request, for all versions.
TOPIC = {"name": "orders", "topic": "orders", "topicId": "A" * 22}
IN_GROUP = {"groupId": "g", "memberId": "m", "generationId": 1, "sessionTimeoutMs": 10_000}
ASKED: dict[str, dict[str, Any]] = {
    "ApiVersions": {},
    "Metadata": {"topics": [{"name": "orders"}, {"name": "unknown"}]},
    "DescribeCluster": {},
    "DescribeTopicPartitions": {
        "topics": [{"name": "orders"}, {"name": "unknown"}],
        "responsePartitionLimit": 1,
        "cursor": None,
    },
    "DescribeConfigs": {
        "resources": [{"resourceType": 2, "resourceName": "orders", "configurationKeys": None}]
    },
    "DescribeLogDirs": {"topics": None},
    "ListPartitionReassignments": {"topics": None},
    "FindCoordinator": {"key": "g", "coordinatorKeys": ["g"]},
    "Fetch": {
        **FETCH,
        "topics": [
            {
                **{key: TOPIC[key] for key in ("topic", "topicId")},
                "partitions": [{"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1000}],
            }
        ],
    },
    "ListOffsets": {
        "replicaId": -1,
        "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}],
    },
    "OffsetForLeaderEpoch": {
        "topics": [{"topic": "orders", "partitions": [{"partition": 0, "leaderEpoch": 0}]}]
    },
    "OffsetFetch": {
        "groupId": "g",
        "topics": [{"name": "orders", "partitionIndexes": [0]}],
        "groups": [
            {
                "groupId": "g",
                "topics": [
                    {**{key: TOPIC[key] for key in ("name", "topicId")}, "partitionIndexes": [0]}
                ],
            }
        ],
    },
    "ListGroups": {},
    "DescribeGroups": {"groups": ["g", "unknown"]},
    "ConsumerGroupDescribe": {"groupIds": ["g", "unknown"]},
    "ShareGroupDescribe": {"groupIds": ["g", "unknown"]},
    "DescribeAcls": {
        **dict.fromkeys(("resourceNameFilter", "principalFilter", "hostFilter")),
        **dict.fromkeys(("resourceTypeFilter", "operation", "permissionType"), 1),
    },
    "DescribeUserScramCredentials": {"users": [{"name": "alice"}]},
    "DescribeClientQuotas": {
        "components": [{"entityType": "user", "matchType": 0, "match": "alice"}],
        "strict": True,
    },
    "JoinGroup": {
        **{key: IN_GROUP[key] for key in ("groupId", "sessionTimeoutMs")},
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [],
    },
    "SyncGroup": {**{key: IN_GROUP[key] for key in ("groupId", "memberId", "generationId")}},
    "Heartbeat": {**{key: IN_GROUP[key] for key in ("groupId", "memberId", "generationId")}},
    "LeaveGroup": {"groupId": "g", "memberId": "m", "members": [{"memberId": "m"}]},
    "ConsumerGroupHeartbeat": {"groupId": "new", "subscribedTopicNames": ["orders"]},
    "OffsetCommit": {
        "groupId": "g",
        "topics": [
            {
                **{key: TOPIC[key] for key in ("name", "topicId")},
                "partitions": [
                    {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}
                ],
            }
        ],
    },
    "SaslHandshake": {"mechanism": "PLAIN"},
    "SaslAuthenticate": {"authBytes": b""},
    "ListTransactions": {},
    "DescribeTransactions": {"transactionalIds": ["unknown"]},
    "DescribeProducers": {"topics": [{"name": "orders", "partitionIndexes": [0, 1]}]},
    "Produce": {
        "acks": -1,
        "topicData": [
            {
                **{key: TOPIC[key] for key in ("name", "topicId")},
                "partitionData": [{"index": 0, "records": None}],
            }
        ],
    },
    "CreateTopics": {"topics": []},
    "DeleteTopics": {"topicNames": ["orders"], "topics": [{"name": "orders", "topicId": "A" * 22}]},
}
# Those that wait for other members.
WAITING = {"JoinGroup", "SyncGroup"}
# Requests of every kind, as they are and, mutated, as no client sends them.
SAMPLES = {
    api.name: request_bytes(api.name, api.request.versions.last, ASKED[api.name], 1)
    for api in apis().values()
    if api.name not in WAITING
}

# A request is not repeated beyond this.
_MOST_BYTES = 500_000


def mutated(chance: random.Random) -> bytes:
    """A request whose size is right: what it frames has other bytes, counts or lengths."""
    data = bytearray(chance.choice(list(SAMPLES.values())))
    for _ in range(chance.choice((1, 1, 2, 5))):
        data[chance.randrange(4, len(data))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    return bytes(data)


def repeated(chance: random.Random) -> bytes:
    """A request that names the same partitions, groups or topics again and again."""
    name = chance.choice(list(SAMPLES))
    times = chance.choice((2, 3, 50, 1000, 10_000))
    values = _repeated(ASKED[name], min(times, 50) if name in _NESTED else times)
    api = next(each for each in apis().values() if each.name == name)
    versions = api.request.versions
    data = request_bytes(name, chance.randint(versions.first, versions.last), values, 1)
    return data if len(data) <= _MOST_BYTES else struct.pack(">i", len(data)) + b"\0"


# Their elements have arrays themselves.
_NESTED = {name for name, values in ASKED.items() if str(values).count("[") > 1}


def _repeated(value: Any, times: int) -> Any:
    if isinstance(value, dict):
        return {key: _repeated(each, times) for key, each in value.items()}
    if isinstance(value, list):
        return [_repeated(each, times) for each in value] * times
    return value


def pieces(chance: random.Random, data: bytes) -> Iterator[bytes]:
    """Yield what a slow client sends at a time."""
    places = sorted(chance.randrange(len(data)) for _ in range(chance.choice((0, 0, 1, 4))))
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        yield data[start:end]
