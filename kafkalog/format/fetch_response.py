"""The results of a fetch as the user's documents frame them: MessageSetSend, for one partition, and
MultiMessageSetSend, for several. Rules: docs/format.md F152 and F153.

What lies inside are bytes of a log file, passed on as they are.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kafkalog.arguments import known_arguments
from kafkalog.errors import CorruptDataError

NO_ERROR = 0
OFFSET_OUT_OF_RANGE = 1
_HEAD = struct.Struct(">ih")
_LENGTH_BYTES = 4
_ERROR_CODE_BYTES = 2


@known_arguments
@dataclass(frozen=True, slots=True)
class MessageSetSend:
    """What was fetched of one partition: `messages` are whole entries one after another, but for
    the last, of which the answer may hold a part only."""

    messages: bytes = b""
    error_code: int = NO_ERROR


@known_arguments
@dataclass(frozen=True, slots=True)
class MultiMessageSetSend:
    """What was fetched of several partitions, in the order of the request."""

    sets: tuple[MessageSetSend, ...] = ()
    error_code: int = NO_ERROR


def write_message_set_send(result: MessageSetSend) -> bytes:
    """Return the bytes of one result."""
    return _framed(result.error_code, result.messages)


def write_multi_message_set_send(result: MultiMessageSetSend) -> bytes:
    """Return the bytes of several results."""
    return _framed(result.error_code, b"".join(map(write_message_set_send, result.sets)))


def read_message_set_send(data: bytes, position: int = 0) -> tuple[MessageSetSend, int]:
    """Return the result at `position` and its size. Raises CorruptDataError where it is not all
    there."""
    error_code, content, size = _read_frame(data, position, len(data))
    return MessageSetSend(content, error_code), size


def read_multi_message_set_send(data: bytes, position: int = 0) -> tuple[MultiMessageSetSend, int]:
    """Return the results at `position` and their size.

    Raises CorruptDataError where they are not all there, or do not fill what was announced.
    """
    error_code, content, size = _read_frame(data, position, len(data))
    end = position + size
    cursor = end - len(content)
    sets: list[MessageSetSend] = []
    while cursor < end:
        set_error, messages, set_size = _read_frame(data, cursor, end)
        sets.append(MessageSetSend(messages, set_error))
        cursor += set_size
    return MultiMessageSetSend(tuple(sets), error_code), size


def _framed(error_code: int, content: bytes) -> bytes:
    return _HEAD.pack(_ERROR_CODE_BYTES + len(content), error_code) + content


def _read_frame(data: bytes, position: int, end: int) -> tuple[int, bytes, int]:
    """Error code, content and size of the frame at `position`."""
    if end - position < _HEAD.size:
        detail = f"{end - position} bytes, length and error code have {_HEAD.size}"
        raise CorruptDataError("truncated", detail, position=position)
    length, error_code = _HEAD.unpack_from(data, position)
    if length < _ERROR_CODE_BYTES:
        detail = f"a total length of {length}, the error code alone has {_ERROR_CODE_BYTES}"
        raise CorruptDataError("length", detail, position=position)
    size = _LENGTH_BYTES + length
    if size > end - position:
        detail = f"a total length of {length}, {end - position - _LENGTH_BYTES} bytes are left"
        raise CorruptDataError("truncated", detail, position=position)
    return error_code, data[position + _HEAD.size : position + size], size
