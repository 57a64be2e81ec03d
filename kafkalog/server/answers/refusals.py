"""Answers to requests that would write, and to authentication where it is not due: all are refused,
none is ignored.

They are offered because clients look for them: librdkafka consumes only from who offers Produce,
and authenticates only where SaslHandshake is offered.
"""

from __future__ import annotations

from kafkalog.messages.schema import ZERO_UUID, Values
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import RefusedRequestError, Request, Served

REASON = "kafkalog serves files and only reads them"


def produce(served: Served, request: Request) -> Values:
    """Answer Produce. Raises RefusedRequestError for a producer that waits for no answer."""
    values = request.values
    if values["acks"] == 0:
        raise RefusedRequestError(f"Produce: {REASON}")
    refused = {"errorCode": ErrorCode.POLICY_VIOLATION, "errorMessage": REASON}
    responses = []
    for topic in values["topicData"]:
        partitions = [
            {"index": each["index"], "baseOffset": -1, **refused} for each in topic["partitionData"]
        ]
        named = {key: value for key, value in topic.items() if key in ("name", "topicId")}
        responses.append({**named, "partitionResponses": partitions})
    return {"responses": responses}


def create_topics(served: Served, request: Request) -> Values:
    """Answer CreateTopics."""
    refused = {"errorCode": ErrorCode.POLICY_VIOLATION, "errorMessage": REASON}
    return {"topics": [{"name": each["name"], **refused} for each in request.values["topics"]]}


def delete_topics(served: Served, request: Request) -> Values:
    """Answer DeleteTopics."""
    refused = {"errorCode": ErrorCode.POLICY_VIOLATION, "errorMessage": REASON}
    values = request.values
    by_name = [(name, ZERO_UUID) for name in values.get("topicNames", ())]
    by_name += [(each["name"], each["topicId"]) for each in values.get("topics", ())]
    return {
        "responses": [{"name": name, "topicId": topic_id, **refused} for name, topic_id in by_name]
    }


def sasl_handshake(served: Served, request: Request) -> Values:
    """Answer SaslHandshake where no user is known, or the client has said who it is."""
    return {"errorCode": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}


def sasl_authenticate(served: Served, request: Request) -> Values:
    """Answer SaslAuthenticate likewise."""
    message = "authentication is not due on this connection"
    error = ErrorCode.ILLEGAL_SASL_STATE
    return {"errorCode": error, "errorMessage": message, "authBytes": b""}
