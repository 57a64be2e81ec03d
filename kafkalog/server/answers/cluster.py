"""Answers about brokers, topics and their configs."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.coordination.metadata.codes import CONFIG_RESOURCES, named
from kafkalog.format.secret_configs import HIDDEN, shown_config
from kafkalog.messages.schema import ZERO_UUID, Values
from kafkalog.server.logs.served_cluster import ServedTopic, broker_of
from kafkalog.server.logs.served_log import ServedLog
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import NO_AUTHORIZED_OPERATIONS, Request, Served
from kafkalog.server.protocol.turns import Pause, Steps

_TOPIC, _BROKER = 2, 4
_DYNAMIC_TOPIC_CONFIG, _DYNAMIC_BROKER_CONFIG = 1, 2
_BROKERS_ENDPOINTS = 1
_NO_ELIGIBLE_REPLICAS: Values = {"eligibleLeaderReplicas": [], "lastKnownElr": []}
# Kinds of coordinators: of groups, of transactions, of the state of share groups.
_OF_GROUPS = 0
_COORDINATORS = (_OF_GROUPS, 1, 2)


def metadata(served: Served, request: Request) -> Steps[Values]:
    """Answer Metadata: the brokers, and all topics or those that are named, each once."""
    cluster = served.cluster
    asked = request.values["topics"]
    topics = []
    if asked is None or (request.version == 0 and not asked):
        for topic in cluster.topics.values():
            topics.append(_topic_values(served, topic))
            yield Pause.STEP
    else:
        pairs = [(each.get("name"), each.get("topicId", ZERO_UUID)) for each in asked]
        for name, topic_id in dict.fromkeys(pairs):
            topics.append(_asked_topic(served, name, topic_id))
            yield Pause.STEP
    return {
        "brokers": served.brokers("nodeId"),
        "clusterId": cluster.cluster_id,
        "controllerId": cluster.brokers[0],
        "topics": topics,
        "clusterAuthorizedOperations": NO_AUTHORIZED_OPERATIONS,
    }


def _asked_topic(served: Served, name: str | None, topic_id: str) -> Values:
    cluster = served.cluster
    topic = cluster.topics_by_id.get(topic_id) if name is None else cluster.topics.get(name)
    if topic is not None:
        return _topic_values(served, topic)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID
    # Before version 12 a topic without a name has an empty one.
    is_nullable = name is not None
    return {
        "errorCode": error,
        "name": name if is_nullable else "",
        "topicId": topic_id,
        "partitions": [],
        "topicAuthorizedOperations": NO_AUTHORIZED_OPERATIONS,
    }


def _topic_values(served: Served, topic: ServedTopic) -> Values:
    return {
        "errorCode": ErrorCode.NONE,
        "name": topic.name,
        "topicId": topic.id,
        "isInternal": topic.is_internal,
        "partitions": [
            _lost_partition(served, topic, number)
            if log is None
            else _partition_values(served, log)
            for number, log in served.cluster.partitions_of(topic).items()
        ],
        "topicAuthorizedOperations": NO_AUTHORIZED_OPERATIONS,
    }


def _lost_partition(served: Served, topic: ServedTopic, number: int) -> Values:
    """Return a partition that no directory has: one without a leader."""
    replicas = served.cluster.lost_replicas_of(topic, number)
    return {
        "errorCode": ErrorCode.LEADER_NOT_AVAILABLE,
        "partitionIndex": number,
        "leaderId": -1,
        "leaderEpoch": -1,
        "replicaNodes": replicas,
        "isrNodes": [],
        "offlineReplicas": replicas,
    }


def _partition_values(served: Served, log: ServedLog) -> Values:
    cluster = served.cluster
    leader, replicas = cluster.leader_of(log), cluster.replicas_of(log)
    return {
        "errorCode": ErrorCode.NONE,
        "partitionIndex": log.partition,
        "leaderId": leader,
        "leaderEpoch": log.leader_epoch,
        "replicaNodes": replicas,
        "isrNodes": cluster.in_sync_of(log),
        "offlineReplicas": [each for each in replicas if each not in cluster.brokers],
    }


def describe_cluster(served: Served, request: Request) -> Values:
    """Answer DescribeCluster."""
    return {
        "endpointType": _BROKERS_ENDPOINTS,
        "clusterId": served.cluster.cluster_id,
        "controllerId": served.cluster.brokers[0],
        "brokers": served.brokers("brokerId"),
        "clusterAuthorizedOperations": NO_AUTHORIZED_OPERATIONS,
    }


def describe_topic_partitions(served: Served, request: Request) -> Steps[Values]:
    """Answer DescribeTopicPartitions: topics by their names, from the cursor on, to a limit."""
    cluster, asked = served.cluster, request.values
    names = sorted({topic["name"] for topic in asked["topics"]} or cluster.topics)
    cursor = asked["cursor"]
    begin = (cursor["topicName"], cursor["partitionIndex"]) if cursor else ("", 0)
    left = max(1, min(asked["responsePartitionLimit"], 2000))
    topics: list[Values] = []
    for name in names:
        yield Pause.STEP
        topic = cluster.topics.get(name)
        if name < begin[0]:
            continue
        if topic is None:
            topics.append(_unknown_topic(name))
            continue
        first = begin[1] if name == begin[0] else 0
        values = _topic_values(served, topic)
        rest = [each for each in values["partitions"] if each["partitionIndex"] >= first]
        described = [{**each, **_NO_ELIGIBLE_REPLICAS} for each in rest[:left]]
        topics.append({**values, "partitions": described})
        if len(rest) > left:
            nearest = {"topicName": name, "partitionIndex": rest[left]["partitionIndex"]}
            return {"topics": topics, "nextCursor": nearest}
        left -= len(described)
        if left <= 0:
            following = next((each for each in names if each > name), None)
            if following is None:
                break
            return {"topics": topics, "nextCursor": {"topicName": following, "partitionIndex": 0}}
    return {"topics": topics, "nextCursor": None}


def _unknown_topic(name: str) -> Values:
    return {
        "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "name": name,
        "partitions": [],
        "topicAuthorizedOperations": NO_AUTHORIZED_OPERATIONS,
    }


def describe_configs(served: Served, request: Request) -> Steps[Values]:
    """Answer DescribeConfigs: what the cluster's metadata has of topics and brokers."""
    results = []
    asked = {
        (each["resourceType"], each["resourceName"]): each["configurationKeys"]
        for each in request.values["resources"]
    }
    for (kind, name), names in asked.items():
        results.append(_configs(served, kind, name, None if names is None else frozenset(names)))
        yield Pause.STEP
    return {"results": results}


def _configs(served: Served, kind: int, name: str, names: frozenset[str] | None) -> Values:
    error = ErrorCode.NONE
    if kind == _TOPIC and name not in served.cluster.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    image = served.cluster.history.image
    keys = image.group("config", named(CONFIG_RESOURCES, kind), name)
    known = {key[2]: image.tables["config"][key]["value"] for key in keys}
    source = _DYNAMIC_BROKER_CONFIG if kind == _BROKER else _DYNAMIC_TOPIC_CONFIG
    configs: list[Values] = []
    for key, value in sorted(known.items()):
        if names is None or key in names:
            is_secret = shown_config(key, value) == HIDDEN
            configs.append(
                {
                    "name": key,
                    "value": None if is_secret else value,
                    "readOnly": True,
                    "configSource": source,
                    "isSensitive": is_secret,
                    "synonyms": [],
                    "documentation": None,
                }
            )
    return {
        "errorCode": error,
        "errorMessage": None,
        "resourceType": kind,
        "resourceName": name,
        "configs": configs if error is ErrorCode.NONE else [],
    }


def describe_log_dirs(served: Served, request: Request) -> Steps[Values]:
    """Answer DescribeLogDirs: the log directories that were given, and the logs in them; those of
    one broker if the client has named it."""
    asked = request.values["topics"]
    chosen = (
        None
        if asked is None
        else {(each["topic"], number) for each in asked for number in each["partitions"]}
    )
    by_directory: dict[str, dict[str, list[Values]]] = {}
    for topic in served.cluster.topics.values():
        yield Pause.STEP
        for log in topic.partitions.values():
            if chosen is None or (log.topic, log.partition) in chosen:
                for replica in log.logs:
                    if request.node not in (None, broker_of(replica)):
                        continue
                    of_topic = by_directory.setdefault(replica.log_dir.path, {})
                    of_topic.setdefault(topic.name, []).append(
                        {
                            "partitionIndex": log.partition,
                            "partitionSize": sum(each.size for each in replica.segments),
                            "offsetLag": 0,
                            "isFutureKey": False,
                        }
                    )
    return {"results": list(_log_dirs(by_directory))}


def _log_dirs(by_directory: dict[str, dict[str, list[Values]]]) -> Iterator[Values]:
    for path, topics in sorted(by_directory.items()):
        listed = [{"name": name, "partitions": found} for name, found in sorted(topics.items())]
        yield {
            "errorCode": ErrorCode.NONE,
            "logDir": path,
            "topics": listed,
            "totalBytes": -1,
            "usableBytes": -1,
        }


def list_partition_reassignments(served: Served, request: Request) -> Values:
    """Answer ListPartitionReassignments: nothing moves."""
    return {"errorMessage": None, "topics": []}


def find_coordinator(served: Served, request: Request) -> Steps[Values]:
    """Answer FindCoordinator: the broker that led the partition with the group, or the first."""
    values = request.values
    found = []
    for key in values.get("coordinatorKeys", [values.get("key")]):
        found.append(_coordinator(served, values.get("keyType", _OF_GROUPS), key))
        yield Pause.STEP
    if request.version >= 4:
        return {"coordinators": found}
    return {name: value for name, value in found[0].items() if name != "key"}


def _coordinator(served: Served, kind: int, key: str) -> Values:
    cluster = served.cluster
    error = ErrorCode.NONE if kind in _COORDINATORS else ErrorCode.INVALID_REQUEST
    return {
        "key": key,
        "nodeId": cluster.group_coordinator(key) if kind == _OF_GROUPS else cluster.brokers[0],
        "host": served.host,
        "port": served.port,
        "errorCode": error,
        "errorMessage": None,
    }
