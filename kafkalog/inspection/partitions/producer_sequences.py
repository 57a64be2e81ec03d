"""Irregular sequence numbers of idempotent producers: view `producer_sequences`,
schemas/tables/producer_sequences.json. Rules: docs/format.md F125 to F127.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.table_rows import TableRow
from kafkalog.format.batch_header import NO_VALUE, wrapped_sequence
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment

# Of how many batches a broker remembers the sequence numbers.
_REMEMBERED = 5


@dataclass(slots=True)
class _Producer:
    """What was last seen of a producer: batches of its newest epoch, as (first, last) sequence."""

    epoch: int
    batches: list[tuple[int, int]]


def sequence_rows(log: PartitionLog) -> Iterator[TableRow]:
    """Yield the batches of a partition that a broker's duplicate check would not have let in, by
    what lies before them in the log. What coordinators write into internal topics is never
    checked."""
    if log.topic in INTERNAL_TOPICS:
        return
    producers: dict[int, _Producer] = {}
    is_compacted = log.topic_partition in log.log_dir.cleaner_checkpoints
    for segment in log.segments:
        for row in _batches_with_sequences(segment):
            found = _irregularity(producers, row, is_compacted=is_compacted)
            if found is not None:
                yield {**found, "file": segment.path}


def _batches_with_sequences(segment: SegmentFile) -> Iterator[list[int]]:
    options = SegmentOptions.of(segment, check_crcs=False)
    with opened_segment(segment) as file:
        for chunk in SegmentHeaders(FileWindow(file), options).chunks():
            table = chunk.table
            idempotent = table[
                (table[:, column.FAULT] == 0)
                & (table[:, column.MAGIC] == 2)
                & (table[:, column.PRODUCER_ID] != NO_VALUE)
                & (table[:, column.BASE_SEQUENCE] != NO_VALUE)
                & ~column.is_control(table)
            ]
            yield from idempotent.tolist()


def _irregularity(
    producers: dict[int, _Producer], row: list[int], *, is_compacted: bool
) -> TableRow | None:
    epoch = row[column.PRODUCER_EPOCH]
    first = row[column.BASE_SEQUENCE]
    last = wrapped_sequence(first + row[column.LAST_OFFSET] - row[column.BASE_OFFSET])
    known = producers.get(row[column.PRODUCER_ID])
    if known is None or epoch > known.epoch:
        # After retention or cleaning the first batch that is left may have any number.
        producers[row[column.PRODUCER_ID]] = _Producer(epoch, [(first, last)])
        if known is None or first == 0 or is_compacted:
            return None
        return _row(row, "gap", last, 0)
    if epoch < known.epoch:
        return _row(row, "epoch_regression", last, None, known.epoch)
    expected = wrapped_sequence(known.batches[-1][1] + 1)
    is_duplicate = (first, last) in known.batches
    if not is_duplicate:
        known.batches = [*known.batches[1 - _REMEMBERED :], (first, last)]
    if is_duplicate:
        return _row(row, "duplicate", last, expected)
    if first == expected or (is_compacted and first > expected):
        return None
    return _row(row, "gap" if first > expected else "regression", last, expected)


def _row(
    row: list[int], kind: str, last: int, expected: int | None, known_epoch: int | None = None
) -> TableRow:
    return {
        "position": row[column.POSITION],
        "base_offset": row[column.BASE_OFFSET],
        "last_offset": row[column.LAST_OFFSET],
        "producer_id": row[column.PRODUCER_ID],
        "producer_epoch": row[column.PRODUCER_EPOCH],
        "kind": kind,
        "first_sequence": row[column.BASE_SEQUENCE],
        "last_sequence": last,
        "expected_sequence": expected,
        "known_epoch": known_epoch,
    }
