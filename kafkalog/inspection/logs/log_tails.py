"""Where logs end that are being written, looked up again and again: each time only what is new is
walked, by its batch headers. Rules: docs/ingest.md F520 and F521.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import V2_HEADER_BYTES
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.inspection.logs.log_offsets import log_end_offset
from kafkalog.inspection.logs.replica_facts import is_sound
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.renamed_files import opened

# Tables in which a sound batch is looked for from the end, before all checksums are computed.
_LAST_TABLES = 2


class LogEnd(NamedTuple):
    """Where a log ends.

    `is_walked_anew` is True where the last segment is another one than at the last time, or was
    not known; `is_rewritten` where it is the same one and what was its last batch is not there.
    """

    offset: int
    is_walked_anew: bool = True
    is_rewritten: bool = False


@dataclass(frozen=True, slots=True)
class _Tail:
    """How far a log's last segment of `size` bytes was walked: up to `position`, after its last
    sound batch, of which these are the first bytes."""

    path: str
    size: int
    position: int
    next_offset: int
    batch_position: int
    batch_header: bytes


class FileRest:
    """What is in a file from `start` on, as a file of its own."""

    def __init__(self, file: InputFile, start: int) -> None:
        self._file = file
        self._start = start
        self.size = max(file.size - start, 0)

    @property
    def unreadable(self) -> UnreadableRanges:
        return self._file.unreadable.moved(-self._start)

    def read_around(self, position: int, size: int) -> bytes:
        return self._file.read_around(self._start + position, size)

    def read_into(self, position: int, target: memoryview) -> None:
        self._file.read_into(self._start + position, target)


class LogTails:
    """Remembers how far the last segment of each log has been walked."""

    def __init__(self) -> None:
        self._tails: dict[str, _Tail] = {}

    def end(self, log: PartitionLog) -> LogEnd:
        """Return the offset after the last sound batch: whole, and its checksum right.

        What is torn or half-written at the end does not count, and of what is damaged before it
        the reader reports it. A last segment that was deleted by now ends where it did.
        """
        start = log_bounds(log, EndRule.LOG_END).start_offset
        if not log.segments:
            self._tails.pop(log.path, None)
            return LogEnd(start)
        segment, known = log.segments[-1], self._tails.get(log.path)
        if known is not None and known.path != segment.path:
            known = None
        if known is not None and known.position == segment.size:
            return LogEnd(max(start, known.next_offset), is_walked_anew=False)
        try:
            with opened(segment.path) as file:
                if known is not None and _is_as_it_was(file, known):
                    return LogEnd(max(start, known.next_offset), is_walked_anew=False)
                is_rewritten = known is not None and not _goes_on(file, known)
                grown = None if is_rewritten else known
                tail = _walked(file, segment, grown)
        except FileNotFoundError:
            return LogEnd(max(start, segment.base_offset or 0))
        if tail is None:
            return LogEnd(log_end_offset(log))
        self._tails[log.path] = tail
        return LogEnd(max(start, tail.next_offset), grown is None, is_rewritten)


def _goes_on(file: InputFile, tail: _Tail) -> bool:
    """Return whether the batch that was the last one is still there."""
    header = file.read(tail.batch_position, len(tail.batch_header))
    return tail.position <= file.size and header == tail.batch_header


def _is_as_it_was(file: InputFile, tail: _Tail) -> bool:
    """Return whether there is still nothing but room that the broker has made in advance."""
    following = file.read(tail.position, V2_HEADER_BYTES)
    return file.size == tail.size and not any(following) and _goes_on(file, tail)


def _walked(file: InputFile, segment: SegmentFile, known: _Tail | None) -> _Tail | None:
    """Return the tail after a walk from where the last one ended; None where no batch of many is
    sound."""
    position, next_offset = 0, segment.base_offset or 0
    if known is not None:
        position, next_offset = known.position, known.next_offset
        known = replace(known, size=file.size)
    options = SegmentOptions(next_offset)
    tables: deque[LongArray] = deque(maxlen=_LAST_TABLES)
    count = 0
    for chunk in SegmentHeaders(FileWindow(FileRest(file, position)), options).chunks():
        sound = chunk.table[chunk.table[:, column.FAULT] == 0].copy()
        if len(sound):
            tables.append(sound)
            count += 1
    rows = np.concatenate(tables) if tables else ()
    for row in reversed(rows):
        row[column.POSITION] += position
        if is_sound(file, row):
            start, end = int(row[column.POSITION]), int(row[column.POSITION] + row[column.SIZE])
            header = file.read(start, min(V2_HEADER_BYTES, end - start))
            return _Tail(
                segment.path, file.size, end, int(row[column.LAST_OFFSET]) + 1, start, header
            )
    if count > _LAST_TABLES:
        return None
    return _Tail(segment.path, file.size, 0, next_offset, 0, b"") if known is None else known
