"""Which batches of a segment a fetch gets: where they lie, or what old ones become.

Records of formats 0 and 1 become batches of format 2, as every version of Fetch since then has
them. Offsets, keys, values and times stay. Format 2 knows no record without a time: its time is -1.
Rule: docs/format.md F850.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import LOG_APPEND_TIME, NO_VALUE
from kafkalog.format.offsets import OffsetSpan
from kafkalog.format.record_batch import BatchFields, read_batch, write_batch
from kafkalog.format.records import Record
from kafkalog.server.logs.batch_runs import BatchRuns, Run
from kafkalog.server.logs.file_ranges import FileRange, MemoryRange, Range
from kafkalog.storage.files.files import InputFile

# Old batches are converted up to this size for one fetch: other clients wait meanwhile.
_MOST_CONVERTED_BYTES = 1024 * 1024
# A batch ends with the record that reaches this size.
_BATCH_BYTES = 64 * 1024
# What a record has beside its key and value, about.
_FIELDS_BYTES = 16
# Offsets in a batch of format 2 are 32 bits from its first one.
_MOST_OFFSETS = 2**31


def batches_in(runs: BatchRuns, span: OffsetSpan, max_bytes: int) -> list[tuple[Range, OffsetSpan]]:
    """Return the batches that end in a span, from its first one on, and the offsets of each range.
    A batch may begin before the span."""
    taken: list[tuple[Range, OffsetSpan]] = []
    left = max_bytes
    for run in runs.from_offset(span.start):
        if run.first_offset >= span.end or (taken and left <= 0):
            break
        if run.is_old:
            left = min(left, _MOST_CONVERTED_BYTES)
            for batch, offsets in converted_batches(run, span):
                if taken and batch.size > left:
                    return taken
                taken.append((batch, offsets))
                left -= batch.size
            continue
        is_whole = run.first_offset >= span.start and run.last_offset < span.end
        if is_whole and run.end - run.position <= left:
            part = FileRange(run.path, run.position, run.end)
            offsets = OffsetSpan(run.first_offset, run.last_offset + 1)
        elif is_whole and taken:
            # The next fetch goes on at the start of a run.
            break
        else:
            cut = _cut(run, span, left, is_first=not taken)
            if cut is None:
                continue
            part, offsets = cut
        taken.append((part, offsets))
        left -= part.size
        if part.end < run.end:
            break
    return taken


def _cut(
    run: Run, span: OffsetSpan, max_bytes: int, *, is_first: bool
) -> tuple[FileRange, OffsetSpan] | None:
    """Return the batches of a run that end in a span, as many as fit, one at least if it is the
    first of a response; None if there is none."""
    start = end = -1
    first = last = 0
    with InputFile(run.path) as file:
        for frame in run.frames(file, span):
            if start < 0:
                start, first = frame.position, frame.header.base_offset
            if frame.end - start > max_bytes and not (is_first and end < 0):
                break
            end, last = frame.end, frame.header.last_offset
    if end < 0:
        return None
    return FileRange(run.path, start, end), OffsetSpan(min(first, last), last + 1)


def converted_batches(run: Run, span: OffsetSpan) -> Iterator[tuple[Range, OffsetSpan]]:
    """Yield the batches of a run that end in a span as batches of format 2, without those whose
    records all lie before it, and the offsets of each. What cannot be read stays as it is, for the
    client to say so."""
    batch = _Batch()
    end = 0
    with InputFile(run.path) as file:
        for frame in run.frames(file, span):
            header = frame.header
            data = file.read(frame.position, header.size)
            try:
                records = read_batch(data, 0, expected_offset=end)
            except CorruptDataError:
                yield from batch.taken()
                as_it_lies = FileRange(run.path, frame.position, frame.end)
                yield as_it_lies, OffsetSpan(header.base_offset, header.last_offset + 1)
                continue
            end = header.last_offset + 1
            for record in records:
                if record.offset < span.start:
                    continue
                if not batch.takes(record):
                    yield from batch.taken()
                batch.add(record)
    yield from batch.taken()


class _Batch:
    """Records that become one batch."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._bytes = 0

    def takes(self, record: Record) -> bool:
        """Return whether the batch has room for a record, and can say when it was written."""
        if not self._records:
            return True
        first = self._records[0]
        # Of times of appending a batch has one. sarama takes a base of -1 for the year 1, and gives
        # records after the first times of their distance from that.
        is_other_time = record.timestamp_type != first.timestamp_type or (
            first.timestamp_type == LOG_APPEND_TIME and record.timestamp_ms != first.timestamp_ms
        )
        has_room = self._bytes < _BATCH_BYTES and record.offset - first.offset < _MOST_OFFSETS
        return has_room and not is_other_time

    def add(self, record: Record) -> None:
        """Add a record that the batch takes."""
        self._records.append(record)
        self._bytes += len(record.key or b"") + len(record.value or b"") + _FIELDS_BYTES

    def taken(self) -> Iterator[tuple[MemoryRange, OffsetSpan]]:
        """Yield the batch if it has a record, and begin another one."""
        if not self._records:
            return
        first, last = self._records[0], self._records[-1]
        fields = BatchFields(leader_epoch=NO_VALUE, timestamp_type=first.timestamp_type)
        data = write_batch(self._records, fields)
        self._records, self._bytes = [], 0
        yield MemoryRange(data), OffsetSpan(first.offset, last.offset + 1)
