"""Rewrite a partition's sound log, compacted up to where its transactions have ended.

Rules: docs/format.md F252 and F253; the remainder of each batch, F242 to F251.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafkalog.format.batch_header import read_header
from kafkalog.storage.cleaning.compaction import (
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.cleaning.log_transactions import log_transactions
from kafkalog.storage.files.files import InputFile, modified_ms
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.recovery.framing import frames
from kafkalog.storage.writing.log_writer import LogWriter


@dataclass(frozen=True, slots=True)
class CompactedLog:
    """The result of a compaction; from `end_offset` on nothing was compacted."""

    source_bytes: int
    cleaned_bytes: int
    end_offset: int


def compact_log(
    segments: Sequence[SegmentFile],
    writer: LogWriter,
    *,
    start_offset: int,
    end_offset: int,
    now_ms: int,
    delete_retention_ms: int,
) -> CompactedLog:
    """Write what compaction leaves of the sound log between its start and its end to `writer`.

    The log is read three times: for its transactions, for the last offset of each key, and to be
    written. Memory grows with the keys. Raises as `last_offsets` and `LogWriter.append` do.
    """
    transactions = log_transactions(each.data for each in segment_batches(segments))
    stable = transactions.first_open_offset
    cleaning = CleaningRound(
        first_dirty_offset=start_offset,
        first_uncleanable_offset=end_offset if stable is None else min(stable, end_offset),
        high_watermark=end_offset,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        producers=transactions.producers,
        aborted=transactions.aborted,
    )
    last = last_offsets(segment_batches(segments), cleaning)
    source_bytes = cleaned_bytes = 0
    bases = deque(segment.base_offset or 0 for segment in segments[1:])
    for batch in cleaned_batches(segment_batches(segments), last, cleaning):
        source_bytes += len(batch.source)
        if batch.cleaned is None:
            continue
        _roll_up_to(batch.cleaned, bases, writer)
        writer.append(batch.cleaned)
        cleaned_bytes += len(batch.cleaned)
    return CompactedLog(source_bytes, cleaned_bytes, cleaning.first_uncleanable_offset)


def _roll_up_to(batch: bytes, bases: deque[int], writer: LogWriter) -> None:
    """Begin the segment that contains the batch, but leave none empty."""
    base_offset = None
    while bases and read_header(batch, 0).last_offset >= bases[0]:
        base_offset = bases.popleft()
    if base_offset is not None and writer.segment_size:
        writer.roll(base_offset)


def segment_batches(segments: Sequence[SegmentFile]) -> Iterator[SourceBatch]:
    """Yield the batches of sound segments, as they are."""
    for segment in segments:
        written_ms = modified_ms(segment.path)
        with InputFile(segment.path) as file:
            for frame in frames(file):
                yield SourceBatch(file.read(frame.position, frame.header.size), written_ms)
