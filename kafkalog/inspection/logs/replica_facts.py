"""The differences between replicas of a partition, from their small files and last segments.

Rules: docs/format.md F171 and F172.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import LEGACY_CHECKSUM_START, V2_CHECKSUM_START
from kafkalog.format.faults import Fault
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.format.side_files.leader_epochs import EpochStart, read_leader_epochs
from kafkalog.storage.files.files import InputFile, read_text
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replica_reads import ReplicaSet
from kafkalog.storage.reading.replicas import BatchFact, ReplicaFacts, by_lineage, gaps
from kafkalog.wire.checksums import crc32, crc32c


def replica_sets(logs: Sequence[PartitionLog]) -> list[ReplicaSet]:
    """Return the logs by partition, the best replica of each first. Those that are alone, or that
    no broker serves, are sets of one, and are not read."""
    alone = [[log] for log in logs if not _is_served(log)]
    return answers(_ordered, [*live_replicas(logs), *alone], lambda found: found[0].path)


def live_replicas(logs: Sequence[PartitionLog]) -> list[list[PartitionLog]]:
    """Return the logs that brokers serve, by partition."""
    found: dict[TopicPartition, list[PartitionLog]] = {}
    for log in logs:
        if log.topic_partition is not None and _is_served(log):
            found.setdefault(log.topic_partition, []).append(log)
    return list(found.values())


def best_logs(logs: Sequence[PartitionLog]) -> list[PartitionLog]:
    """Return the best replica of each partition that brokers serve, in layouts with batches."""
    served = [log for log in logs if log.is_live and not is_oldest_layout(log)]
    return [replicas.best for replicas in replica_sets(served)]


def _is_served(log: PartitionLog) -> bool:
    return log.is_live and log.topic_partition is not None


def _ordered(logs: Sequence[PartitionLog]) -> ReplicaSet:
    if len(logs) == 1:
        return ReplicaSet((logs[0],), (ReplicaFacts(0, 0),))
    facts = _with_earlier(logs, [replica_facts(log) for log in logs])
    order = by_lineage(facts)
    return ReplicaSet(
        tuple(logs[number] for number in order), tuple(facts[number] for number in order)
    )


def _with_earlier(
    logs: Sequence[PartitionLog], facts: Sequence[ReplicaFacts]
) -> list[ReplicaFacts]:
    """Return the facts, each with the batches before its tail that lie where another's tail has a
    gap: a replica that has lost its last segments ends where others have earlier ones."""
    starts = [[start for start, _ in gaps(each)] for each in facts]
    if not any(starts):
        return list(facts)
    requested = np.array(sorted({start for each in starts for start in each}), dtype=np.int64)
    return [
        replace(each, earlier=tuple(_batches_at(log, requested[requested < each.tail_base])))
        for log, each in zip(logs, facts, strict=True)
    ]


def _batches_at(log: PartitionLog, offsets: LongArray) -> Iterator[BatchFact]:
    """Yield the batches before the last segment that have these base offsets, by their headers."""
    for segment in log.segments[:-1]:
        start, end = segment.base_offset or 0, segment.next_base_offset or 0
        inside = offsets[(offsets >= start) & (offsets < end)]
        if not len(inside):
            continue
        with opened_segment(segment) as file:
            rows, _ = _sound_and_damaged(file, segment)
        if len(rows):
            yield from batch_facts(rows[np.isin(first_offsets(rows), inside)])


def replica_facts(log: PartitionLog) -> ReplicaFacts:
    """Return what a replica's files say. Of its last segment headers are read, and of the last
    batches as many checksums as it takes to find a sound one."""
    start = log_bounds(log, EndRule.LOG_END).start_offset
    epochs = leader_epochs(log)
    if not log.segments:
        return ReplicaFacts(start, start, epochs, start, is_empty=True)
    segment = log.segments[-1]
    base = segment.base_offset or 0
    rows, damaged_at = segment_tail(segment)
    tail = tuple(batch_facts(rows)) if len(rows) else ()
    end = tail[-1].last_offset + 1 if tail else base
    ends_soundly = damaged_at < (int(rows[-1, column.POSITION]) if len(rows) else 0)
    return ReplicaFacts(start, max(start, end), epochs, base, tail, ends_soundly=ends_soundly)


def segment_tail(segment: SegmentFile) -> tuple[LongArray, int]:
    """Return the rows of a segment's batches up to the last sound one, by their headers, and where
    the last damage begins, -1 for none."""
    with opened_segment(segment) as file:
        rows, damaged_at = _sound_and_damaged(file, segment)
        while len(rows) and not is_sound(file, rows[-1]):
            damaged_at, rows = file.size, rows[:-1]
    return rows, damaged_at


def _sound_and_damaged(file: InputFile, segment: SegmentFile) -> tuple[LongArray, int]:
    """Return the rows of the batches whose headers are sound, and where the last damage begins, -1
    for none. Zeros are room that a broker has made for what is to come."""
    tables: list[LongArray] = []
    damaged_at = -1
    for chunk in SegmentHeaders(FileWindow(file), SegmentOptions.of(segment)).chunks():
        faults = chunk.table[:, column.FAULT]
        tables.append(chunk.table[faults == 0].copy())
        is_damaged = (faults != 0) & (faults != Fault.ZEROS)
        damaged_at = max(damaged_at, int(chunk.table[is_damaged, column.POSITION].max(initial=-1)))
    rows: LongArray = np.concatenate(tables) if tables else np.zeros((0, 0), dtype=np.int64)
    return rows, damaged_at


def leader_epochs(log: PartitionLog) -> tuple[EpochStart, ...]:
    """Return the replica's leader epochs by their starts; none where the file is missing or
    damaged, or contradicts itself."""
    try:
        text = read_text(os.path.join(log.path, LEADER_EPOCHS))
        epochs = sorted(read_leader_epochs(text)) if text else []
    except CorruptDataError:
        return ()
    rise = all(one.start_offset <= other.start_offset for one, other in pairwise(epochs))
    return tuple(epochs) if rise else ()


def batch_facts(rows: LongArray) -> Iterator[BatchFact]:
    """Yield the facts of the sound batches of a batch table."""
    columns = (
        first_offsets(rows),
        *(rows[:, index] for index in (column.LAST_OFFSET, column.CRC, column.SIZE)),
    )
    for values in zip(*(values.tolist() for values in columns), strict=True):
        yield BatchFact(*values)


def sound_rows(segment: SegmentFile) -> Iterator[LongArray]:
    """Yield batch tables of a segment, checksums looked at, records not."""
    with opened_segment(segment) as file:
        for chunk in SegmentBatches(FileWindow(file), SegmentOptions.of(segment)).chunks():
            yield chunk.table


def is_sound(file: InputFile, row: LongArray) -> bool:
    """Return whether the checksum of the batch of this row is right."""
    data = file.read(int(row[column.POSITION]), int(row[column.SIZE]))
    if row[column.MAGIC] == 2:
        return crc32c(data[V2_CHECKSUM_START:]) == int(row[column.CRC])
    return crc32(data[LEGACY_CHECKSUM_START:]) == int(row[column.CRC])
