"""Kernels that find the parts of offset commits in the keys and values of `__consumer_offsets`.

They know only what coordinators write: whatever differs in any way is UNSURE, and the interpreter
of messages reads it. Rules: docs/format.md F185 to F188.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.columns.jit.compiled import (
    BoolArray,
    ByteArray,
    IntArray,
    LongArray,
    copy_bytes,
    kernel,
)
from kafkalog.columns.jit.integers import signed_16, signed_32, signed_64
from kafkalog.columns.keys.key_hashes import hash_key
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.messages.internal_records import LARGEST_RECORD

# What a record is; the last two are the markers that end a transaction.
OTHER, COMMIT_RECORD, TOMBSTONE, UNSURE, ABORT_MARKER, COMMIT_MARKER = range(6)

# The columns of the array that `scan_commits` fills: what the record is, where parts of the key
# and the value lie, and the numbers in them. TOPIC_ID is where it lies, -1 without one.
(
    COMMIT_KIND,
    GROUP,
    GROUP_SIZE,
    COMMIT_TOPIC,
    TOPIC_SIZE,
    PARTITION,
    COMMIT_VERSION,
    COMMITTED_OFFSET,
    COMMIT_LEADER_EPOCH,
    METADATA,
    METADATA_SIZE,
    COMMIT_TIMESTAMP,
    EXPIRE_TIMESTAMP,
    TOPIC_ID,
) = range(14)
COMMIT_WIDTH = 14


class ByteStrings(NamedTuple):
    """The byte strings of a column: row i is data[borders[i] : borders[i + 1]], null unless
    is_set[i]."""

    data: ByteArray
    borders: IntArray
    is_set: BoolArray


_LEGACY_TYPE, _TYPE = 0, 1
_LATEST_VERSION = 4
_TOPIC_ID_BYTES = 16
# Of a control record's key: its version, and its type.
_MARKER_BYTES = 4
_SIZE_BYTES, _PARTITION_BYTES = 2, 4


@kernel
def _is_ascii(data: ByteArray, begin: int, end: int) -> bool:
    bits = 0
    for index in range(begin, end):
        bits |= int(data[index])
    return bits < 0x80


@kernel
def _place_text(
    data: ByteArray, position: int, end: int, numbers: LongArray, row: int, column: int
) -> int:
    """Note a string with its length in two bytes; return the position after it, -1 if unsure."""
    if position < 0 or position + 2 > end:
        return NO_VALUE
    size = signed_16(data, position)
    begin = position + 2
    if size < 0 or begin + size > end or not _is_ascii(data, begin, begin + size):
        return NO_VALUE
    numbers[row, column] = begin
    numbers[row, column + 1] = size
    return begin + size


@kernel
def _place_compact_text(
    data: ByteArray, position: int, end: int, numbers: LongArray, row: int, column: int
) -> int:
    """Note a string with its length plus one before it, a varint of one or two bytes; return the
    position after it, -1 if unsure."""
    if position >= end:
        return NO_VALUE
    size = int(data[position])
    begin = position + 1
    if size >= 0x80:
        if begin >= end or data[begin] >= 0x80:
            return NO_VALUE
        size = (size & 0x7F) | (int(data[begin]) << 7)
        begin += 1
    size -= 1
    if size < 0 or begin + size > end or not _is_ascii(data, begin, begin + size):
        return NO_VALUE
    numbers[row, column] = begin
    numbers[row, column + 1] = size
    return begin + size


@kernel
def _scan_key(data: ByteArray, begin: int, end: int, numbers: LongArray, row: int) -> bool:
    """Note group, topic and partition; False if unsure."""
    position = _place_text(data, begin + 2, end, numbers, row, GROUP)
    position = _place_text(data, position, end, numbers, row, COMMIT_TOPIC)
    if position < 0 or position + 4 > end:
        return False
    numbers[row, PARTITION] = signed_32(data, position)
    return True


@kernel
def _scan_value(
    data: ByteArray, begin: int, end: int, latest_version: int, numbers: LongArray, row: int
) -> bool:
    """Note what the value of a commit says; False if unsure."""
    numbers[row, COMMIT_LEADER_EPOCH] = numbers[row, EXPIRE_TIMESTAMP] = NO_VALUE
    numbers[row, TOPIC_ID] = NO_VALUE
    if begin + 14 > end:
        return False
    version = signed_16(data, begin)
    if version < 0 or version > latest_version:
        return False
    numbers[row, COMMIT_VERSION] = version
    numbers[row, COMMITTED_OFFSET] = signed_64(data, begin + 2)
    position = begin + 10
    if version >= 3:
        numbers[row, COMMIT_LEADER_EPOCH] = signed_32(data, position)
        position += 4
    if version >= 4:
        position = _place_compact_text(data, position, end, numbers, row, METADATA)
    else:
        position = _place_text(data, position, end, numbers, row, METADATA)
    if position < 0 or position + 8 > end:
        return False
    numbers[row, COMMIT_TIMESTAMP] = signed_64(data, position)
    position += 8
    if version == 1:
        if position + 8 > end:
            return False
        numbers[row, EXPIRE_TIMESTAMP] = signed_64(data, position)
    return version < 4 or _scan_topic_id(data, position, end, numbers, row)


@kernel
def _scan_topic_id(data: ByteArray, position: int, end: int, numbers: LongArray, row: int) -> bool:
    """Note the only tagged field there is, or that there is none; False if unsure."""
    if position >= end or data[position] > 1:
        return False
    if data[position] == 0:
        return True
    begin = position + 3
    if begin + _TOPIC_ID_BYTES > end or data[begin - 2] or data[begin - 1] != _TOPIC_ID_BYTES:
        return False
    for index in range(begin, begin + _TOPIC_ID_BYTES):
        if data[index]:
            numbers[row, TOPIC_ID] = begin
    return True


@kernel
def _marker_kind(data: ByteArray, begin: int, end: int) -> int:
    """Return what a control record with this key is."""
    if end - begin < _MARKER_BYTES:
        return OTHER
    marker = signed_16(data, begin + 2)
    if marker == COMMIT:
        return COMMIT_MARKER
    return ABORT_MARKER if marker == ABORT else OTHER


@kernel
def _kind(
    keys: ByteStrings,
    values: ByteStrings,
    row: int,
    is_control: bool,
    numbers: LongArray,
    into: int,
) -> int:
    """Return what a record is, and note the rest in a row of numbers."""
    if not keys.is_set[row]:
        return OTHER
    key_begin, key_end = keys.borders[row], keys.borders[row + 1]
    begin, end = values.borders[row], values.borders[row + 1]
    if key_end - key_begin + end - begin > LARGEST_RECORD:
        return OTHER if is_control else UNSURE
    if is_control:
        return _marker_kind(keys.data, key_begin, key_end)
    if key_end - key_begin < 2:
        return OTHER
    record_type = signed_16(keys.data, key_begin)
    if record_type != _LEGACY_TYPE and record_type != _TYPE:
        return OTHER
    if not _scan_key(keys.data, key_begin, key_end, numbers, into):
        return UNSURE
    if not values.is_set[row]:
        return TOMBSTONE
    latest = _LATEST_VERSION if record_type == _TYPE else 0
    if not _scan_value(values.data, begin, end, latest, numbers, into):
        return UNSURE
    return COMMIT_RECORD


@kernel
def scan_commits(
    keys: ByteStrings, values: ByteStrings, is_control: BoolArray, numbers: LongArray
) -> None:
    """Fill a row of COMMIT_WIDTH numbers for each record."""
    for row in range(len(numbers)):
        numbers[row, COMMIT_KIND] = _kind(keys, values, row, is_control[row], numbers, row)


@kernel
def hash_commits(
    keys: ByteStrings,
    values: ByteStrings,
    is_control: BoolArray,
    secret: LongArray,
    numbers: LongArray,
    kinds: LongArray,
    hashes: LongArray,
) -> None:
    """Note what each record is, and of a commit or a tombstone the hash of its key without its
    type: equal for one group, topic and partition. `numbers` has one row, for what a record
    says."""
    for row in range(len(kinds)):
        kinds[row] = _kind(keys, values, row, is_control[row], numbers, 0)
        if kinds[row] == COMMIT_RECORD or kinds[row] == TOMBSTONE:
            begin = numbers[0, GROUP] - _SIZE_BYTES
            end = numbers[0, COMMIT_TOPIC] + numbers[0, TOPIC_SIZE] + _PARTITION_BYTES
            half, other = hash_key(keys.data, begin, end, secret, 2)
            hashes[row, 0] = half
            hashes[row, 1] = other


@kernel
def gather_parts(data: ByteArray, begins: LongArray, ends: IntArray, target: ByteArray) -> None:
    """Copy the parts that begin at `begins` one after another, to where `ends` says."""
    for row in range(len(begins)):
        size = ends[row + 1] - ends[row]
        if size:
            copy_bytes(target, ends[row], data, begins[row], size)
