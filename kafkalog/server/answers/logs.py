"""Answers about offsets and records."""

from __future__ import annotations

from collections.abc import Callable

from kafkalog.errors import KafkaLogError, OffsetOutOfRangeError
from kafkalog.inspection.logs.log_offsets import TimedOffset
from kafkalog.log_lines import logger
from kafkalog.messages.schema import Values
from kafkalog.server.logs.file_ranges import FileRanges
from kafkalog.server.logs.served_log import UNDEFINED, ServedLog
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request, Served

_logger = logger(__name__)

_READ_COMMITTED = 1
# The most that a response holds, whatever a client asks for.
MOST_FETCHED_BYTES = 64 * 1024 * 1024

# Times that stand for an offset.
_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
_EARLIEST_PENDING_UPLOAD = -6


def fetch(served: Served, request: Request) -> Values:
    """Answer Fetch: raw batches as they lie in the files. Every fetch stands for itself: a session
    is declined."""
    values = request.values
    if values.get("sessionId"):
        return {"errorCode": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "responses": []}
    read_committed = values["isolationLevel"] == _READ_COMMITTED
    left = max(0, min(values["maxBytes"], MOST_FETCHED_BYTES))
    by_topic = []
    taken = 0
    for topic in values["topics"]:
        name = topic.get("topic")
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name is None:
            found = served.cluster.topics_by_id.get(topic["topicId"])
            name, error = (found.name if found else ""), ErrorCode.UNKNOWN_TOPIC_ID
        partitions = []
        for asked in topic["partitions"]:
            log = served.cluster.partition(name, asked["partition"])
            limit = min(left - taken, asked["partitionMaxBytes"])
            if log is None:
                answer = _failed(asked, error)
            else:
                answer = _fetched(log, asked, limit, taken == 0, read_committed)
            taken += len(answer["records"])
            partitions.append(answer)
        named = {key: value for key, value in topic.items() if key in ("topic", "topicId")}
        by_topic.append({**named, "partitions": partitions})
    return {"responses": by_topic}


def fetched_bytes(answer: Values) -> int:
    """Return how many bytes of records the answer to a Fetch has."""
    return sum(
        len(partition["records"])
        for topic in answer["responses"]
        for partition in topic["partitions"]
    )


def has_errors(answer: Values) -> bool:
    """Return whether the answer to a Fetch has an error that a client should learn of at once."""
    partitions = [each for topic in answer["responses"] for each in topic["partitions"]]
    return not partitions or any(each["errorCode"] for each in partitions)


def _fetched(
    log: ServedLog, asked: Values, limit: int, is_first: bool, read_committed: bool
) -> Values:
    try:
        error = _epoch_error(log, asked)
        if error is not ErrorCode.NONE:
            return _failed(asked, error)
        data, aborted = FileRanges(()), None
        if limit > 0 or is_first:
            found = log.fetch(asked["fetchOffset"], limit, read_committed=read_committed)
            # Of all partitions only the first comes with a batch that is larger than the limit.
            if is_first or len(found.data) <= limit:
                data = found.data
            if read_committed:
                pairs = ("producerId", "firstOffset")
                aborted = [dict(zip(pairs, each, strict=True)) for each in found.aborted]
        return {
            "partitionIndex": asked["partition"],
            "errorCode": ErrorCode.NONE,
            "highWatermark": log.end_offset,
            "lastStableOffset": log.stable_offset if read_committed else UNDEFINED,
            "logStartOffset": log.start_offset,
            "abortedTransactions": aborted,
            "records": data,
        }
    except OffsetOutOfRangeError:
        failed = _failed(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
        offsets = {"highWatermark": log.end_offset, "logStartOffset": log.start_offset}
        return {**failed, **offsets}
    except (KafkaLogError, OSError) as error:
        _logger.warning("%s cannot be read: %s", log.name, error)
        return _failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)


def _failed(asked: Values, error: ErrorCode) -> Values:
    return {
        "partitionIndex": asked["partition"],
        "errorCode": error,
        "highWatermark": UNDEFINED,
        "abortedTransactions": None,
        "records": FileRanges(()),
    }


def _epoch_error(log: ServedLog, asked: Values) -> ErrorCode:
    """Return what is wrong with the leader epoch that a client takes for the current one."""
    epoch = asked.get("currentLeaderEpoch", UNDEFINED)
    if epoch == UNDEFINED or epoch == log.leader_epoch:
        return ErrorCode.NONE
    is_old = epoch < log.leader_epoch
    return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH


def list_offsets(served: Served, request: Request) -> Values:
    """Answer ListOffsets: the offset for a time, or for what a negative number stands for."""
    read_committed = request.values.get("isolationLevel") == _READ_COMMITTED
    topics = []
    for topic in request.values["topics"]:
        partitions = [
            _offset_answer(
                served.cluster.partition(topic["name"], asked["partitionIndex"]),
                asked,
                read_committed,
            )
            for asked in topic["partitions"]
        ]
        topics.append({"name": topic["name"], "partitions": partitions})
    return {"topics": topics}


def _offset_answer(log: ServedLog | None, asked: Values, read_committed: bool) -> Values:
    answer = {
        "partitionIndex": asked["partitionIndex"],
        "errorCode": ErrorCode.NONE,
        "timestamp": UNDEFINED,
        "offset": UNDEFINED,
    }
    if log is None:
        return {**answer, "errorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    try:
        error = _epoch_error(log, asked)
        if error is not ErrorCode.NONE:
            return {**answer, "errorCode": error}
        found = _offset_for(log, asked["timestamp"], read_committed)
    except (KafkaLogError, OSError) as error:
        _logger.warning("%s cannot be read: %s", log.name, error)
        return {**answer, "errorCode": ErrorCode.KAFKA_STORAGE_ERROR}
    if found is None:
        return answer
    return {
        **answer,
        "timestamp": found.timestamp_ms,
        "offset": found.offset,
        "leaderEpoch": _epoch_of(log, found, asked["timestamp"]),
    }


def _epoch_of(log: ServedLog, found: TimedOffset, timestamp_ms: int) -> int:
    """Return the leader epoch of an answer: of a record, that in its batch."""
    if found.offset < 0:
        return UNDEFINED
    is_record = timestamp_ms >= 0 or timestamp_ms == _MAX_TIMESTAMP
    return log.batch_epoch(found.offset) if is_record else log.epoch_at(found.offset)


def _offset_for(log: ServedLog, timestamp_ms: int, read_committed: bool) -> TimedOffset | None:
    """Return the offset for a time, None where no record is as late."""
    named: dict[int, Callable[[], int]] = {
        _LATEST: lambda: log.stable_offset if read_committed else log.end_offset,
        _EARLIEST: lambda: log.start_offset,
        _EARLIEST_LOCAL: lambda: log.earliest_local_offset,
        _LATEST_TIERED: lambda: UNDEFINED,
        _EARLIEST_PENDING_UPLOAD: lambda: UNDEFINED,
    }
    if timestamp_ms in named:
        return TimedOffset(named[timestamp_ms](), UNDEFINED)
    if timestamp_ms == _MAX_TIMESTAMP:
        return log.offset_of_max_timestamp()
    found = log.offset_for_time(timestamp_ms)
    if found is not None and read_committed and found.offset >= log.stable_offset:
        return None
    return found


def offset_for_leader_epoch(served: Served, request: Request) -> Values:
    """Answer OffsetForLeaderEpoch: where a leader epoch ended."""
    topics = []
    for topic in request.values["topics"]:
        partitions = []
        for asked in topic["partitions"]:
            log = served.cluster.partition(topic["topic"], asked["partition"])
            error = (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if log is None else _epoch_error(log, asked)
            )
            epoch, end = UNDEFINED, UNDEFINED
            if log is not None and error is ErrorCode.NONE:
                epoch, end = log.end_of_epoch(asked["leaderEpoch"])
            partitions.append(
                {
                    "partition": asked["partition"],
                    "errorCode": error,
                    "leaderEpoch": epoch,
                    "endOffset": end,
                }
            )
        topics.append({"topic": topic["topic"], "partitions": partitions})
    return {"topics": topics}
