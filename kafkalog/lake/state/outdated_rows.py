"""Which rows of a table of state are no longer state, and its files without them.

Rules: docs/format.md F270, F276; reasons: docs/decisions/0031.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width, integers
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.keys.key_offsets import KeyOffsets
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.file_rows import file_rows, rows_of_each_partition
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.state_rows import TEXTS, as_written
from kafkalog.lake.table_writer import TableWriter, removed_on_error
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.file_access import FileAccess, use_file_access

# Of a file, for a task that shares it with others.
_LEAST_PART_BYTES = 8 * 1024 * 1024
# What tells whether a row is outdated.
_COLUMNS = ("topic", "partition", "key", "offset")


@dataclass(frozen=True, slots=True)
class Outdated:
    """The rows of a partition that are no longer state: those below an offset, and those whose key
    has a record in `newer` with a higher one."""

    before_offset: int = 0
    newer: KeyOffsets | None = None

    def among(self, rows: pa.RecordBatch) -> tuple[BoolArray, LongArray]:
        """Return which rows are outdated, and the offsets in `newer` that are not newer than a row
        which has their key."""
        offsets = integers(rows.column("offset"))
        is_outdated = offsets < self.before_offset
        if self.newer is None:
            return is_outdated, np.zeros(0, dtype=np.int64)
        highest = self.newer.highest_of(rows.column("key"))
        return is_outdated | (highest > offsets), highest[(highest >= 0) & (highest <= offsets)]


class FilePart(NamedTuple):
    """Some of a file's row groups: one of so many equal parts."""

    file: WrittenFile
    number: int
    of_parts: int

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return self.file.size // self.of_parts


class FoundRows(NamedTuple):
    """A part of a file, which of its rows are outdated, as bits, and of each partition the offsets
    of new records that the part has outdated already."""

    part: FilePart
    bits: bytes
    overtaken: Mapping[TopicPartition, LongArray]

    @property
    def size(self) -> int:
        """About how many bytes the part has."""
        return self.part.size


@dataclass(frozen=True, slots=True)
class OutdatedRows:
    """The outdated rows of a table, by partition, and where its files are."""

    output: TableOutput
    file_access: FileAccess
    of: Mapping[TopicPartition, Outdated]

    def may_be_in(self, file: WrittenFile) -> bool:
        """Return whether a file can have such rows, as its statistics say."""
        return any(_may_have(file, key, outdated) for key, outdated in self.of.items())

    def found_in(self, part: FilePart) -> FoundRows:
        """Find those of a part. Raises OSError as reading does."""
        use_file_access(self.file_access)
        found = [np.zeros(0, dtype=np.bool_)]
        all_overtaken: dict[TopicPartition, LongArray] = {}
        for batch in _part_rows(OutputDirectory(self.output.path), part, _COLUMNS):
            order = _by_partition(batch)
            is_outdated = np.zeros(len(batch), dtype=np.bool_)
            first = 0
            for key, rows in rows_of_each_partition(_taken(batch, order)):
                if key in self.of:
                    own, not_newer = self.of[key].among(rows)
                    is_outdated[first : first + len(rows)] = own
                    if len(not_newer):
                        known = all_overtaken.get(key, not_newer)
                        all_overtaken[key] = np.union1d(known, not_newer)
                first += len(rows)
            if order is not None:
                is_outdated[order] = is_outdated.copy()
            found.append(is_outdated)
        bits = np.packbits(np.concatenate(found), bitorder="little")
        return FoundRows(part, bits.tobytes(), all_overtaken)


def file_parts(files: Sequence[WrittenFile], cores: int) -> list[FilePart]:
    """Return the files in parts, so that each core has some, and a large file is not one's."""
    share = max(_LEAST_PART_BYTES, sum(file.size for file in files) // cores)
    counts = [-(-file.size // share) or 1 for file in files]
    return [
        FilePart(file, number, count)
        for file, count in zip(files, counts, strict=True)
        for number in range(count)
    ]


def changed(found: Sequence[FoundRows]) -> list[FoundRows]:
    """Return all parts of the files that have outdated rows."""
    paths = {each.part.file.path for each in found if any(each.bits)}
    return [each for each in found if each.part.file.path in paths]


def overtaken(found: Sequence[FoundRows], key: TopicPartition) -> LongArray:
    """Return the offsets of a partition's new records that the table has outdated already."""
    every = [each.overtaken[key] for each in found if key in each.overtaken]
    return np.unique(np.concatenate(every)) if every else np.zeros(0, dtype=np.int64)


def written_without(
    output: TableOutput, access: FileAccess, parts: Sequence[FoundRows]
) -> list[WrittenFile]:
    """Write the rows of parts that are not outdated to new files.

    Raises OSError as reading and writing do; then nothing new is left.
    """
    use_file_access(access)
    directory = OutputDirectory(output.path)
    with removed_on_error(TableWriter(output)) as writer:
        for part, bits, _ in parts:
            is_outdated = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), bitorder="little")
            first = 0
            for batch in _part_rows(directory, part):
                stays = is_outdated[first : first + len(batch)] == 0
                first += len(batch)
                rows = as_written(batch.filter(fixed_width(stays, pa.bool_())))
                for key, own in rows_of_each_partition(_taken(rows, _by_partition(rows))):
                    writer.write(own, key)
        return writer.close()


def _part_rows(
    directory: OutputDirectory, part: FilePart, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    return file_rows(
        directory, part.file, columns=columns, dictionaries=TEXTS, part=(part.number, part.of_parts)
    )


def _may_have(file: WrittenFile, key: TopicPartition, outdated: Outdated) -> bool:
    values: Iterable[tuple[str, str | int]] = zip(("topic", "partition"), key, strict=True)
    is_within = all(
        # Names of more than 32 characters are cut there, the greatest upwards.
        file.least.get(name, value) <= value <= file.greatest.get(name, value)  # type: ignore[operator]
        for name, value in values
    )
    has_lower = int(file.least.get("offset", -1)) < outdated.before_offset
    return is_within and (outdated.newer is not None or has_lower)


def _by_partition(rows: pa.RecordBatch) -> LongArray | None:
    """Return the order in which those of a partition are together, None where they are."""
    topics = rows.column("topic").dictionary_encode().indices.to_numpy()
    partitions = integers(rows.column("partition"))
    codes = topics.astype(np.int64) << 32 | partitions
    if np.all(codes[1:] >= codes[:-1]):
        return None
    return np.argsort(codes, kind="stable")


def _taken(rows: pa.RecordBatch, order: LongArray | None) -> pa.RecordBatch:
    return rows if order is None else rows.take(fixed_width(order, pa.int64()))
