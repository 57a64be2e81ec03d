"""Answers about transactions and producers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import re2

from kafkalog.errors import KafkaLogError
from kafkalog.log_lines import logger
from kafkalog.messages.schema import Values
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request, Served

_logger = logger(__name__)
_NONE = -1
# As Kafka's tools name the states.
_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("Dead", "PrepareEpochFence"),
)


def list_transactions(served: Served, request: Request) -> Values:
    """Answer ListTransactions: the transactional ids that `__transaction_state` has.

    The filter by duration, which is counted up to now, is not applied to a log of the past.
    """
    values = request.values
    states, producers = set(values["stateFilters"]), set(values["producerIdFilters"])
    text = values.get("transactionalIdPattern")
    try:
        pattern = re2.compile(text) if text else None
    except re2.error:
        return {"errorCode": ErrorCode.INVALID_REGULAR_EXPRESSION}
    found = [
        {
            "transactionalId": row["transactional_id"],
            "producerId": _number(row, "producer_id"),
            "transactionState": row["state"] or "",
        }
        for row in served.cluster.transactional_ids.values()
        if (not states or row["state"] in states)
        and (not producers or row["producer_id"] in producers)
        and (pattern is None or pattern.fullmatch(row["transactional_id"]))
    ]
    return {"unknownStateFilters": sorted(states - set(_STATES)), "transactionStates": found}


def describe_transactions(served: Served, request: Request) -> Values:
    """Answer DescribeTransactions."""
    known = served.cluster.transactional_ids
    return {
        "transactionStates": [
            _described(each, known.get(each)) for each in request.values["transactionalIds"]
        ]
    }


def _described(transactional_id: str, row: Mapping[str, Any] | None) -> Values:
    if row is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return {"errorCode": error, "transactionalId": transactional_id, "topics": []}
    return {
        "errorCode": ErrorCode.NONE,
        "transactionalId": transactional_id,
        "transactionState": row["state"] or "",
        "transactionTimeoutMs": _number(row, "timeout_ms"),
        "transactionStartTimeMs": _number(row, "started_ms"),
        "producerId": _number(row, "producer_id"),
        "producerEpoch": _number(row, "producer_epoch"),
        "topics": [
            {"topic": each["topic"], "partitions": list(each["partitions"])}
            for each in row["partitions"] or ()
        ],
    }


def _number(row: Mapping[str, Any], name: str) -> int:
    value: int | None = row[name]
    return _NONE if value is None else value


def describe_producers(served: Served, request: Request) -> Values:
    """Answer DescribeProducers."""
    topics = []
    for topic in request.values["topics"]:
        partitions = [
            _producers(served, topic["name"], number) for number in topic["partitionIndexes"]
        ]
        topics.append({"name": topic["name"], "partitions": partitions})
    return {"topics": topics}


def _producers(served: Served, topic: str, number: int) -> Values:
    log = served.cluster.partition(topic, number)
    answer: Values = {"partitionIndex": number, "errorMessage": None, "activeProducers": []}
    if log is None:
        return {**answer, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    try:
        entries = log.producers()
    except (KafkaLogError, OSError) as error:
        _logger.warning("%s cannot be read: %s", log.name, error)
        return {**answer, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR}
    active = [
        {
            "producerId": each.producer_id,
            "producerEpoch": each.producer_epoch,
            "lastSequence": each.last_sequence,
            "lastTimestamp": each.timestamp_ms,
            "coordinatorEpoch": each.coordinator_epoch,
            "currentTxnStartOffset": each.transaction_first_offset,
        }
        for each in entries
    ]
    return {**answer, "errorCode": ErrorCode.NONE, "activeProducers": active}
