"""Reading a partition's log as a broker serves a fetch: from an offset, up to a number of bytes.

Rules: docs/format.md F140 to F145.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from kafkalog.arguments import known_arguments
from kafkalog.errors import CorruptDataError, LogDirError, OffsetOutOfRangeError
from kafkalog.format.batch_header import computed_crc, read_header
from kafkalog.format.offsets import LARGEST_OFFSET, offset_bounds
from kafkalog.format.record_batch import MAX_BATCH_BYTES, read_batch
from kafkalog.format.records import Record
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.index_lookup import checked_frames, checked_start, is_zero_filled
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.recovery.framing import Frame


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Whole batches as they lie one after another in a segment's file; none at the log's end.

    `offset` is what was requested: the first batch may begin below it. `next_offset` is where to
    read on.
    """

    offset: int
    next_offset: int
    data: bytes = b""
    path: str | None = None
    position: int = 0

    def batches(self) -> Iterator[bytes]:
        """Yield each batch as its own bytes."""
        position = 0
        while position < len(self.data):
            size = read_header(self.data, position).size
            yield self.data[position : position + size]
            position += size

    def records(self, *, max_batch_bytes: int = MAX_BATCH_BYTES) -> Iterator[Record]:
        """Yield the records from the requested offset on, control records included.

        Raises CorruptDataError, its position that of the batch in the file.
        """
        position = self.position
        for batch in self.batches():
            try:
                records = read_batch(batch, 0, max_batch_bytes=max_batch_bytes)
            except CorruptDataError as error:
                raise error.located(self.path or "", position, error.base_offset) from error
            yield from (record for record in records if record.offset >= self.offset)
            position += len(batch)


@dataclass(frozen=True, slots=True)
class _Segment:
    path: str
    base_offset: int
    next_base_offset: int | None
    size: int


@known_arguments
class LogReader:
    """Reads a log that was listed; what a broker renames meanwhile is read where it is then, and
    what it deletes counts as damage (F950).

    `max_message_bytes` is the largest batch that is handed out, `check_crcs` whether those whose
    checksum is wrong are not.
    """

    def __init__(
        self,
        log: PartitionLog,
        *,
        end_rule: EndRule = EndRule.LOG_END,
        max_message_bytes: int = MAX_BATCH_BYTES,
        check_crcs: bool = True,
    ) -> None:
        self._log = log
        self._bounds = log_bounds(log, end_rule)
        self._max_message_bytes = max_message_bytes
        self._check_crcs = check_crcs
        self._segments = [
            _Segment(segment.path, segment.base_offset, segment.next_base_offset, segment.size)
            for segment in log.segments
            if segment.base_offset is not None
        ]
        # Base offset of the segment of the last read, the offset and the position where it ended:
        # who goes on there needs no search, nor a walk from the start where no index helps.
        self._last_read = (-1, -1, 0)
        self._bases = [segment.base_offset for segment in self._segments]
        if len(self._bases) < len(log.segments) or self._bases != sorted(set(self._bases)):
            raise LogDirError(f"{log.path}: the names of its segments give no order of offsets")

    @property
    def start_offset(self) -> int:
        """The first offset that can be requested."""
        return self._bounds.start_offset

    def end_offset(self) -> int:
        """Return the offset after the last that can be read.

        Raises CorruptDataError where damage keeps it from being found.
        """
        if not self._segments:
            return self._bounds.start_offset
        end = self._bounds.start_offset
        segment = self._segments[-1]
        with opened_segment(segment) as file:
            end = max(end, segment.base_offset)
            for frame in self._frames(file, segment, LARGEST_OFFSET):
                end = max(end, frame.header.last_offset + 1)
        return end if self._bounds.end_offset is None else min(end, self._bounds.end_offset)

    def read(self, offset: int, max_bytes: int) -> LogChunk:
        """Return the batches from the one that has `offset`, or the next offset there is, as far as
        they fit into `max_bytes`; the first comes whole even if it alone is larger.

        One call reads in one segment. Raises OffsetOutOfRangeError for an offset outside the log,
        and CorruptDataError where the first batch is damaged or above the largest size allowed.
        """
        if offset >= self.start_offset:
            first = max(bisect_right(self._bases, offset) - 1, 0)
            for segment in self._segments[first:]:
                chunk = self._read_segment(segment, offset, max_bytes)
                if chunk is not None:
                    return chunk
        end = self.end_offset()
        if not self.start_offset <= offset <= end:
            raise OffsetOutOfRangeError(self._log.name, offset, self.start_offset, end)
        return LogChunk(offset, offset)

    def chunks(self, offset: int, max_bytes: int) -> Iterator[LogChunk]:
        """Yield all of the log from `offset` on, a chunk at a time. Raises as `read` does."""
        while (chunk := self.read(offset, max_bytes)).data:
            yield chunk
            offset = chunk.next_offset

    def _read_segment(self, segment: _Segment, offset: int, max_bytes: int) -> LogChunk | None:
        end = LARGEST_OFFSET if self._bounds.end_offset is None else self._bounds.end_offset
        taken: list[Frame] = []
        with opened_segment(segment) as file:
            try:
                for frame in self._frames(file, segment, offset):
                    header = frame.header
                    if header.last_offset >= end:
                        break
                    if header.last_offset < offset:
                        continue
                    if taken and frame.end - taken[0].position > max_bytes:
                        break
                    self._check(file, frame)
                    taken.append(frame)
            except CorruptDataError:
                # What is sound before it comes first; the next read meets it again.
                if not taken:
                    raise
            if not taken:
                return None
            first, last = taken[0], taken[-1]
            data = file.read(first.position, last.end - first.position)
        self._last_read = segment.base_offset, last.header.last_offset + 1, last.end
        return LogChunk(offset, last.header.last_offset + 1, data, file.path, first.position)

    def _frames(self, file: InputFile, segment: _Segment, offset: int) -> Iterator[Frame]:
        """Yield the batches of a segment, from one that is not after `offset` on."""
        bounds = offset_bounds(segment.base_offset, segment.next_base_offset)
        base_offset, next_offset, end = self._last_read
        if (base_offset, next_offset) != (segment.base_offset, offset):
            end = checked_start(file, file.path, bounds, offset)
        try:
            for frame in checked_frames(file, end, bounds):
                end = frame.end
                yield frame
        except CorruptDataError as error:
            is_room = segment.next_base_offset is None and is_zero_filled(file, error.position)
            if is_room:
                return
            raise error.located(file.path, error.position, error.base_offset) from error
        if end < file.size and segment.next_base_offset is not None:
            detail = f"{file.size - end} bytes at the end of a segment are not a whole batch"
            raise CorruptDataError("truncated", detail, position=end, path=file.path)

    def _check(self, file: InputFile, frame: Frame) -> None:
        header = frame.header
        if header.size > self._max_message_bytes:
            detail = f"a batch of {header.size} bytes, allowed are {self._max_message_bytes}"
            raise _corrupt("too_large", detail, file, frame)
        if not self._check_crcs:
            return
        computed = computed_crc(file.read(frame.position, header.size), 0, header)
        if computed != header.crc:
            detail = f"stored {header.crc:#010x}, computed {computed:#010x}"
            raise _corrupt("checksum", detail, file, frame)


def _corrupt(fault: str, detail: str, file: InputFile, frame: Frame) -> CorruptDataError:
    return CorruptDataError(
        fault, detail, position=frame.position, path=file.path, base_offset=frame.header.base_offset
    )
