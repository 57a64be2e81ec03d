"""Answers about offsets and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from kafkalog.errors import KafkaLogError, OffsetOutOfRangeError
from kafkalog.inspection.logs.log_offsets import TimedOffset
from kafkalog.log_lines import logger
from kafkalog.messages.schema import Values
from kafkalog.server.logs.file_ranges import FileRanges
from kafkalog.server.logs.served_log import UNDEFINED, ServedLog
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request, Served, alone, each_once
from kafkalog.server.protocol.turns import Pause, Steps

_logger = logger(__name__)

_READ_COMMITTED = 1
# The most that a response holds, whatever a client asks for.
MOST_FETCHED_BYTES = 64 * 1024 * 1024

# The most of it that is in no file: old batches, converted.
_MOST_BYTES_IN_MEMORY = 4 * 1024 * 1024

# Times that stand for an offset.
_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
_EARLIEST_PENDING_UPLOAD = -6


def fetch(served: Served, request: Request) -> Steps[Values]:
    """Answer Fetch: raw batches as they lie in the files. Every fetch stands for itself: a session
    is declined."""
    values = request.values
    if values.get("sessionId"):
        return {"errorCode": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "responses": []}
    read_committed = values["isolationLevel"] == _READ_COMMITTED
    left = max(0, min(values["maxBytes"], MOST_FETCHED_BYTES))
    by_topic = []
    taken = in_memory = 0
    for named, asked_partitions in each_once(values["topics"], "partitions", "partition"):
        name, error = _fetched_topic(served, named)
        partitions = []
        for asked in asked_partitions:
            yield Pause.STEP
            log = served.cluster.partition(name, asked["partition"])
            if log is None:
                partitions.append(_failed(asked, error))
                continue
            limit = min(left - taken, asked["partitionMaxBytes"])
            if in_memory >= _MOST_BYTES_IN_MEMORY:
                limit = 0
            read = partial(_fetched, log, asked, limit, taken == 0, read_committed)
            answer = yield from alone(log, read)
            taken += len(answer["records"])
            in_memory += answer["records"].bytes_in_memory
            partitions.append(answer)
        by_topic.append({**named, "partitions": partitions})
    return {"responses": by_topic}


def _fetched_topic(served: Served, named: Values) -> tuple[str, ErrorCode]:
    """Return the name of a topic that is given by its name or its id, empty if there is none, and
    the error that says so."""
    if "topic" in named:
        return named["topic"], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = served.cluster.topics_by_id.get(named["topicId"])
    return (found.name if found else ""), ErrorCode.UNKNOWN_TOPIC_ID


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


def list_offsets(served: Served, request: Request) -> Steps[Values]:
    """Answer ListOffsets: the offset for a time, or for what a negative number stands for. As by
    brokers, a partition that is there twice is not answered."""
    values = request.values
    read_committed = values.get("isolationLevel") == _READ_COMMITTED
    times = Counter(
        (topic["name"], asked["partitionIndex"])
        for topic in values["topics"]
        for asked in topic["partitions"]
    )
    topics = []
    for named, asked_partitions in each_once(values["topics"], "partitions", "partitionIndex"):
        name, partitions = named["name"], []
        for asked in asked_partitions:
            yield Pause.STEP
            number = asked["partitionIndex"]
            log = served.cluster.partition(name, number)
            if times[name, number] > 1:
                partitions.append(_no_offset(asked, ErrorCode.INVALID_REQUEST))
            elif log is None:
                partitions.append(_no_offset(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                read = partial(_offset_answer, log, asked, read_committed)
                partitions.append((yield from alone(log, read)))
        topics.append({"name": name, "partitions": partitions})
    return {"topics": topics}


def _no_offset(asked: Values, error: ErrorCode) -> Values:
    return {
        "partitionIndex": asked["partitionIndex"],
        "errorCode": error,
        "timestamp": UNDEFINED,
        "offset": UNDEFINED,
    }


def _offset_answer(log: ServedLog, asked: Values, read_committed: bool) -> Values:
    try:
        error = _epoch_error(log, asked)
        if error is not ErrorCode.NONE:
            return _no_offset(asked, error)
        found = _offset_for(log, asked["timestamp"], read_committed)
        answer = _no_offset(asked, ErrorCode.NONE)
        if found is None:
            return answer
        epoch = _epoch_of(log, found, asked["timestamp"])
    except (KafkaLogError, OSError) as error:
        _logger.warning("%s cannot be read: %s", log.name, error)
        return _no_offset(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    return {**answer, "timestamp": found.timestamp_ms, "offset": found.offset, "leaderEpoch": epoch}


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


def offset_for_leader_epoch(served: Served, request: Request) -> Steps[Values]:
    """Answer OffsetForLeaderEpoch: where a leader epoch ended."""
    topics = []
    for topic in request.values["topics"]:
        partitions = []
        for asked in topic["partitions"]:
            yield Pause.STEP
            log = served.cluster.partition(topic["topic"], asked["partition"])
            if log is None:
                partitions.append(_epoch_end(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                partitions.append((yield from alone(log, partial(_found_epoch_end, log, asked))))
        topics.append({"topic": topic["topic"], "partitions": partitions})
    return {"topics": topics}


def _found_epoch_end(log: ServedLog, asked: Values) -> Values:
    error = _epoch_error(log, asked)
    if error is not ErrorCode.NONE:
        return _epoch_end(asked, error)
    return _epoch_end(asked, ErrorCode.NONE, *log.end_of_epoch(asked["leaderEpoch"]))


def _epoch_end(
    asked: Values, error: ErrorCode, epoch: int = UNDEFINED, end_offset: int = UNDEFINED
) -> Values:
    return {
        "partition": asked["partition"],
        "errorCode": error,
        "leaderEpoch": epoch,
        "endOffset": end_offset,
    }
