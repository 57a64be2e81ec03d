"""Answers about transactions and producers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import re2

from kafkalog.errors import KafkaLogError
from kafkalog.log_lines import logger
from kafkalog.messages.schema import Values
from kafkalog.server.logs.served_log import ServedLog
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request, Served, alone, each_once, pattern
from kafkalog.server.protocol.turns import Pause, Steps

_logger = logger(__name__)
_NONE = -1
# As Kafka's tools name the states.
_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("Dead", "PrepareEpochFence"),
)


def list_transactions(served: Served, request: Request) -> Steps[Values]:
    """Answer ListTransactions: the transactional ids that `__transaction_state` has; none if the
    client takes this connection for that of a broker other than their coordinator.

    The filter by duration, which is counted up to now, is not applied to a log of the past.
    """
    values = request.values
    states, producers = set(values["stateFilters"]), set(values["producerIdFilters"])
    text = values.get("transactionalIdPattern")
    try:
        expression = pattern(text) if text else None
    except re2.error:
        return {"errorCode": ErrorCode.INVALID_REGULAR_EXPRESSION}
    is_coordinator = request.node in (None, served.cluster.brokers[0])
    found = []
    for row in served.cluster.transactional_ids.values() if is_coordinator else ():
        yield Pause.STEP
        if (
            (not states or row["state"] in states)
            and (not producers or row["producer_id"] in producers)
            and (expression is None or expression.fullmatch(row["transactional_id"]))
        ):
            found.append(
                {
                    "transactionalId": row["transactional_id"],
                    "producerId": _number(row, "producer_id"),
                    "transactionState": row["state"] or "",
                }
            )
    return {"unknownStateFilters": sorted(states - set(_STATES)), "transactionStates": found}


def describe_transactions(served: Served, request: Request) -> Steps[Values]:
    """Answer DescribeTransactions: each id once."""
    known = served.cluster.transactional_ids
    states = []
    for each in dict.fromkeys(request.values["transactionalIds"]):
        states.append(_described(each, known.get(each)))
        yield Pause.STEP
    return {"transactionStates": states}


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


def describe_producers(served: Served, request: Request) -> Steps[Values]:
    """Answer DescribeProducers: each partition once."""
    topics = []
    for named, numbers in each_once(request.values["topics"], "partitionIndexes"):
        partitions = []
        for number in numbers:
            yield Pause.STEP
            log = served.cluster.partition(named["name"], number)
            if log is None:
                partitions.append(_no_producers(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                partitions.append((yield from alone(log, partial(_producers, log, number))))
        topics.append({**named, "partitions": partitions})
    return {"topics": topics}


def _no_producers(number: int, error: ErrorCode) -> Values:
    return {
        "partitionIndex": number,
        "errorCode": error,
        "errorMessage": None,
        "activeProducers": [],
    }


def _producers(log: ServedLog, number: int) -> Values:
    try:
        entries = log.producers()
    except (KafkaLogError, OSError) as error:
        _logger.warning("%s cannot be read: %s", log.name, error)
        return _no_producers(number, ErrorCode.KAFKA_STORAGE_ERROR)
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
    return {**_no_producers(number, ErrorCode.NONE), "activeProducers": active}
