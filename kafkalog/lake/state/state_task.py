"""What tasks do for the table of state: the first pass finds the offsets that survive, the second
one writes their records.

Rules: docs/format.md F270 to F272; reasons: docs/decisions/0031.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width, integers, present
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.keys.key_offsets import KEY_COLUMNS, KeyOffsets, in_buckets
from kafkalog.errors import KafkaLogError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.state.state_rows import STATE_COLUMNS, StateRows
from kafkalog.lake.table_writer import TableWriter, removed_on_error
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.reading.read_plan import SegmentRead, pieces
from kafkalog.views.options.options import Mode, ReadOptions
from kafkalog.views.reading.reading import read_segment

# So many keys of a partition a task keeps at once: 100 MB.
MOST_KEYS = 3 * 2**20
# And so many it passes on at once: 400 KB.
_PART_KEYS = 2**14


class ReadAgainError(KafkaLogError):
    """The log was not the same when it was read for the second time."""


@dataclass(frozen=True, slots=True)
class PartitionReads:
    """What is read of a partition, in order, and what all rows of the partition have."""

    key: TopicPartition
    cluster_id: str | None
    input_path: str
    reads: Sequence[SegmentRead]
    offsets: int = 0

    @property
    def size(self) -> int:
        """About how many bytes are read."""
        return sum(read.size for read in pieces(self.reads))

    @property
    def records(self) -> int:
        """About how many records there can be. A range of offsets can have few after a cleaning,
        and a record seldom takes less than a byte, even compressed. Buckets are planned by it; a
        partition that has more needs more memory, and its rows are the same."""
        return min(self.offsets, self.size)


class StateFiles(NamedTuple):
    """What a task has done: the files that it wrote, and how many records have no key."""

    files: list[WrittenFile]
    keyless: int


class KeyPart(NamedTuple):
    """Keys of a partition that are in one of its buckets, for `KeyOffsets.merge_bytes`."""

    bucket: int
    entries: bytes


@dataclass(frozen=True, slots=True)
class StateTask:
    """What all tasks of a run have in common: how to read and where to write. With the same
    `secret` all know keys by the same hashes."""

    options: ReadOptions
    output: TableOutput
    keep_tombstones: bool
    secret: bytes

    def whole_partitions(self, partitions: Iterable[PartitionReads]) -> StateFiles:
        """Write the state of partitions that fit into memory, one after another.

        A failed attempt removes what it wrote. Raises what reading raises, ReadAgainError, and
        OSError where a file cannot be written.
        """
        use_file_access(self.options.file_access)
        keyless = 0
        with removed_on_error(TableWriter(self.output)) as writer:
            for partition in partitions:
                keys = KeyOffsets(self.secret)
                for records in self._keys(partition):
                    keys.add(records)
                keyless += keys.keyless
                survivors = keys.offsets()
                keys.clear()
                self._write(writer, partition, survivors)
            return StateFiles(writer.close(), keyless)

    def key_parts(self, partition: PartitionReads, buckets: int) -> Iterator[KeyPart | int]:
        """Yield the keys of some of a partition's reads by bucket, and at last how many records
        have no key."""
        use_file_access(self.options.file_access)
        keys = KeyOffsets(self.secret)
        for records in self._keys(partition):
            if len(keys) and len(keys) + len(records) > MOST_KEYS:
                yield from _parts(keys, buckets)
            keys.add(records)
        yield from _parts(keys, buckets)
        yield keys.keyless

    def surviving_files(
        self, partitions: Iterable[tuple[PartitionReads, LongArray]]
    ) -> list[WrittenFile]:
        """Write those of some partitions' records whose offsets, which are in order, survive, and
        return the new files.

        Raises as `whole_partitions` does.
        """
        use_file_access(self.options.file_access)
        with removed_on_error(TableWriter(self.output)) as writer:
            for partition, survivors in partitions:
                self._write(writer, partition, survivors)
            return writer.close()

    def rows(self, partition: PartitionReads, survivors: LongArray) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition's records whose offsets survive, which are in order."""
        rows = StateRows(
            {
                "topic": partition.key[0],
                "partition": partition.key[1],
                "cluster_id": partition.cluster_id,
                "input_path": partition.input_path,
            }
        )
        options = _options_again(self.options)
        for read, own in _of_each_read(partition.reads, survivors):
            found = 0
            for records in read_segment(_again(read), options, STATE_COLUMNS, chosen_offsets=own):
                kept = _positions(records, own)
                found += len(kept)
                if not self.keep_tombstones:
                    kept = kept[present(records.column("value"))[kept]]
                if len(kept):
                    yield rows.of(_taken(records, kept))
            if found != len(own):
                raise ReadAgainError(
                    f"{read.path}: {found} records were found where {len(own)} were a moment ago: "
                    "the log was cleaned while it was read; run it again"
                )

    def _keys(self, partition: PartitionReads) -> Iterator[pa.RecordBatch]:
        for read in partition.reads:
            yield from read_segment(read, self.options, KEY_COLUMNS)

    def _write(self, writer: TableWriter, partition: PartitionReads, survivors: LongArray) -> None:
        for rows in self.rows(partition, survivors):
            writer.write(rows, partition.key)


def first_offset(read: SegmentRead) -> int:
    """Return the lowest offset that a read can have."""
    return max(read.base_offset or 0, read.first_offset)


def divided(offsets: LongArray, firsts: Sequence[int]) -> list[LongArray]:
    """Return the offsets, which are in order, of each of the parts that begin at `firsts`."""
    return np.split(offsets, np.searchsorted(offsets, firsts[1:]))


def _parts(keys: KeyOffsets, buckets: int) -> Iterator[KeyPart]:
    """Yield the keys by bucket, and forget them."""
    found = keys.entries()
    keys.clear()
    for bucket, entries in enumerate(in_buckets(found, buckets)):
        for start in range(0, len(entries), _PART_KEYS):
            yield KeyPart(bucket, entries[start : start + _PART_KEYS].tobytes())


def _of_each_read(
    reads: Sequence[SegmentRead], survivors: LongArray
) -> Iterator[tuple[SegmentRead, LongArray]]:
    """Yield the reads that have surviving offsets, with these."""
    parts = divided(survivors, [first_offset(read) for read in reads])
    for read, own in zip(reads, parts, strict=True):
        if len(own):
            yield read, own


def _again(read: SegmentRead) -> SegmentRead:
    """Return a read of what was read before. What survives is committed, and nothing is said twice
    of an end that is missing."""
    return replace(
        read, committed=None, requested_start=None, requested_end=None, recorded_end=None
    )


def _options_again(options: ReadOptions) -> ReadOptions:
    """Return the options without what would log damage for the second time."""
    is_logged = options.mode is Mode.PERMISSIVE
    return replace(options, mode=Mode.DROPMALFORMED) if is_logged else options


def _positions(records: pa.RecordBatch, survivors: LongArray) -> LongArray:
    """Return where in a batch the records are whose offsets survive."""
    offsets = integers(records.column("offset"))
    start, end = np.searchsorted(survivors, [offsets[0], offsets[-1] + 1])
    own = survivors[start:end]
    if len(own) == len(offsets):
        return np.arange(len(own))
    places = np.searchsorted(offsets, own)
    found: LongArray = places[offsets[np.minimum(places, len(offsets) - 1)] == own]
    return found


def _taken(records: pa.RecordBatch, places: LongArray) -> pa.RecordBatch:
    if len(places) == len(records):
        return records
    return records.take(fixed_width(places, pa.int64()))
