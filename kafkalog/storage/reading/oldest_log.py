"""Files of the oldest layout, a message at a time. Rules: docs/format.md F154 to F157, F159."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.oldest_messages import (
    HEAD_BYTES,
    LENGTH_BYTES,
    EntryFraming,
    OldestEntry,
    entry_records,
    framing,
    read_entry,
)
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.format.records import Record
from kafkalog.storage.names import oldest_base_offset
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.index_lookup import is_zero_filled
from kafkalog.storage.recovery.framing import Readable

_HEAD_BYTES = LENGTH_BYTES + HEAD_BYTES[1]


@dataclass(frozen=True, slots=True)
class OldestRange:
    """Bytes of a file: an entry with its records, or what is wrong with them. `entry` is None
    where the bytes are none, or one that is too large to be read."""

    position: int
    size: int
    fault: Fault = Fault.NONE
    detail: str = ""
    entry: OldestEntry | None = None
    records: list[Record] = field(default_factory=list)


def is_oldest_layout(log: PartitionLog) -> bool:
    """Return whether a log's files are of the oldest layout: then all are."""
    first = next(iter(log.segments), None)
    return first is not None and oldest_base_offset(os.path.basename(first.path)) is not None


def is_unfinished(found: OldestRange) -> bool:
    """Return whether it is what a broker leaves at a log's end that stops while writing."""
    return found.fault in (Fault.TRUNCATED, Fault.ZEROS)


def read_oldest_file(
    file: Readable,
    base_offset: int,
    *,
    first_offset: int = 0,
    end_offset: int = LARGEST_OFFSET,
    check_crcs: bool = True,
    max_message_bytes: int = MAX_BATCH_BYTES,
) -> Iterator[OldestRange]:
    """Yield the file's entries with offsets [first_offset, end_offset), and what is damaged.

    Of entries below only the lengths are looked at. Where no length and magic of an entry is, the
    rest of the file is one range: messages bear no mark by which others could be found after it.
    """
    position = 0
    while position < file.size and base_offset + position < end_offset:
        head = file.read(position, _HEAD_BYTES)
        found = framing(head, 0)
        size = LENGTH_BYTES + int.from_bytes(head[:LENGTH_BYTES], "big", signed=True)
        if found is EntryFraming.WRONG:
            yield _no_entry(file, position)
            return
        if len(head) < LENGTH_BYTES or size > file.size - position:
            detail = "the file ends inside a message"
            yield OldestRange(position, file.size - position, Fault.TRUNCATED, detail)
            return
        offset = base_offset + position
        if offset >= first_offset:
            yield _entry_range(file, position, size, offset, check_crcs, max_message_bytes)
        position += size


def _no_entry(file: Readable, position: int) -> OldestRange:
    size = file.size - position
    if is_zero_filled(file, position):
        return OldestRange(position, size, Fault.ZEROS, "zero bytes, never written")
    return OldestRange(position, size, Fault.LENGTH, "no length and magic of a message")


def _entry_range(
    file: Readable, position: int, size: int, offset: int, check_crcs: bool, limit: int
) -> OldestRange:
    if size - LENGTH_BYTES > limit:
        detail = f"a message of {size - LENGTH_BYTES} bytes, at most {limit} are allowed"
        return OldestRange(position, size, Fault.TOO_LARGE, detail)
    entry = read_entry(file.read(position, size), 0)
    if check_crcs and not entry.is_valid:
        detail = f"the payload does not match its checksum {entry.crc:#010x}"
        return OldestRange(position, size, Fault.CHECKSUM, detail, entry)
    try:
        records = entry_records(entry, offset, max_message_bytes=limit)
    except CorruptDataError as error:
        return OldestRange(position, size, Fault[error.fault.upper()], error.detail, entry)
    return OldestRange(position, size, entry=entry, records=records)
