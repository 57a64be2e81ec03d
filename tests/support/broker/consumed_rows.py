"""What Kafka's console consumer prints, set up so that every byte can be recognized, and read back.

Keys, values and header values go through BytesDeserializer, whose text has a backslash only
before `x` and two hexadecimal digits: a backslash itself comes as `\\x5C`. So marks of a backslash
and another letter cannot be data. Two things cannot be told apart: null goes through the same
deserializer, so no field may be the bytes of the mark for it; and names of headers are printed
as they are, so none may hold a colon or a mark.
"""

import re
from dataclasses import dataclass

from kafkalog.format.batch_header import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE
from kafkalog.format.records import Record

_FIELD_MARK = "\\F"
_HEADER_MARK = "\\H"
_NULL_MARK = "<null, says the consumer of kafkalog>"
_LINE_MARK = "\\L\n"
_NO_HEADERS = "NO_HEADERS"
_NO_TIMESTAMP = "NO_TIMESTAMP"
_TIMESTAMP_TYPES = {
    NO_TIMESTAMP_TYPE: _NO_TIMESTAMP,
    CREATE_TIME: "CreateTime",
    LOG_APPEND_TIME: "LogAppendTime",
}
_BYTES = "org.apache.kafka.common.serialization.BytesDeserializer"
_ESCAPED_BYTE = re.compile(r"\\x([0-9A-F]{2})")

FORMATTER_PROPERTIES = (
    *(
        f"print.{part}=true"
        for part in ("timestamp", "partition", "offset", "headers", "key", "value")
    ),
    *(f"{part}.deserializer={_BYTES}" for part in ("key", "value", "headers")),
    f"key.separator={_FIELD_MARK}",
    f"headers.separator={_HEADER_MARK}",
    f"line.separator={_LINE_MARK}",
    f"null.literal={_NULL_MARK}",
)


@dataclass(frozen=True, slots=True)
class ConsumedRow:
    """A record as the Java consumer received it; None is null, b"" is empty.

    `timestamp_type` is the consumer's word, `timestamp_ms` is -1 where it has none.
    """

    partition: int
    offset: int
    timestamp_type: str
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def row_of(partition: int, record: Record) -> ConsumedRow:
    """The record as the consumer should print it."""
    return ConsumedRow(
        partition=partition,
        offset=record.offset,
        timestamp_type=_TIMESTAMP_TYPES[record.timestamp_type],
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def parse_rows(printed: bytes) -> list[ConsumedRow]:
    """The rows that a consumer with FORMATTER_PROPERTIES printed, in its order.

    Raises ValueError on anything else.
    """
    lines = printed.decode("utf-8").split(_LINE_MARK)
    if lines.pop():
        raise ValueError(f"the consumer's last row is cut off: {printed[-200:]!r}")
    return [_parse_row(line) for line in lines]


def _parse_row(line: str) -> ConsumedRow:
    fields = line.split(_FIELD_MARK)
    if len(fields) != 6:
        raise ValueError(f"the consumer printed {len(fields)} fields rather than 6: {line!r}")
    timestamp, partition, offset, headers, key, value = fields
    timestamp_type, _, timestamp_ms = timestamp.partition(":")
    return ConsumedRow(
        partition=int(partition.removeprefix("Partition:")),
        offset=int(offset.removeprefix("Offset:")),
        timestamp_type=timestamp_type,
        timestamp_ms=-1 if timestamp_type == _NO_TIMESTAMP else int(timestamp_ms),
        key=_parse_bytes(key),
        value=_parse_bytes(value),
        headers=_parse_headers(headers),
    )


def _parse_headers(printed: str) -> tuple[tuple[str, bytes | None], ...]:
    if printed == _NO_HEADERS:
        return ()
    pairs = (header.partition(":") for header in printed.split(_HEADER_MARK))
    return tuple((name, _parse_bytes(value)) for name, _, value in pairs)


def _parse_bytes(printed: str) -> bytes | None:
    if printed == _NULL_MARK:
        return None
    text = _ESCAPED_BYTE.sub(lambda match: chr(int(match[1], 16)), printed)
    return text.encode("latin-1")
