"""The sound batches of a partition, each as its own bytes, for the rules in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.storage.cleaning.compaction_check import PlacedBatch
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment


def sound_batches(segments: Sequence[SegmentFile]) -> Iterator[PlacedBatch]:
    """Yield the batches whose checksum, offsets and records are right, in the order of the log."""
    for segment in segments:
        options = SegmentOptions.of(segment)
        with opened_segment(segment) as file:
            for chunk in checked_chunks(SegmentBatches(FileWindow(file), options), options):
                for row in chunk.table[chunk.table[:, column.FAULT] == 0].tolist():
                    data = batch_bytes(chunk, row)
                    yield PlacedBatch(data, segment.path, row[column.POSITION])


def checked_chunks(batches: SegmentBatches, options: SegmentOptions) -> Iterator[Chunk]:
    """Yield the segment's chunks, with the faults that only show when records are read."""
    records = RecordColumns(options, (), {}, with_control_records=True)
    for chunk in batches.chunks():
        records.check(chunk)
        yield chunk


def batch_bytes(chunk: Chunk, row: list[int]) -> bytes:
    """Return the bytes of the range that a row of the chunk's table is about."""
    start = row[column.POSITION] - chunk.data_position
    return chunk.data[start : start + row[column.SIZE]].tobytes()
