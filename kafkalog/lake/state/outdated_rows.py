"""Which rows of a table of state are no longer state, and its files without them.

Rules: docs/format.md F270, F276; reasons: docs/decisions/0031.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


class FilesWithout(NamedTuple):
    """Files that had outdated rows, the new ones with their other rows, and of each partition the
    offsets of new records that the table has outdated already."""

    removed: list[WrittenFile]
    written: list[WrittenFile]
    overtaken: dict[TopicPartition, LongArray]


@dataclass(frozen=True, slots=True)
class OutdatedRows:
    """The outdated rows of a table, by partition, and where its files are."""

    output: TableOutput
    file_access: FileAccess
    of: Mapping[TopicPartition, Outdated]

    def may_be_in(self, file: WrittenFile) -> bool:
        """Return whether a file can have such rows, as its statistics say."""
        return any(_may_have(file, key, outdated) for key, outdated in self.of.items())

    def left_out_of(self, files: Sequence[WrittenFile]) -> FilesWithout:
        """Write those files again, without these rows, that have any.

        Raises OSError as reading and writing do; then nothing new is left.
        """
        use_file_access(self.file_access)
        directory = OutputDirectory(self.output.path)
        done = FilesWithout([], [], {})
        with removed_on_error(TableWriter(self.output)) as writer:
            for file in files:
                is_outdated = self._outdated(directory, file, done)
                if is_outdated.any():
                    _write_others(directory, file, writer, is_outdated)
                    done.removed.append(file)
            done.written.extend(writer.close())
        return done

    def _outdated(
        self, directory: OutputDirectory, file: WrittenFile, done: FilesWithout
    ) -> BoolArray:
        """Return which rows of a file are outdated."""
        found = [np.zeros(0, dtype=np.bool_)]
        for batch in file_rows(directory, file, columns=_COLUMNS, dictionaries=TEXTS):
            order = _by_partition(batch)
            is_outdated = np.zeros(len(batch), dtype=np.bool_)
            first = 0
            for key, rows in rows_of_each_partition(_taken(batch, order)):
                if key in self.of:
                    own, overtaken = self.of[key].among(rows)
                    is_outdated[first : first + len(rows)] = own
                    if len(overtaken):
                        known = done.overtaken.get(key, overtaken)
                        done.overtaken[key] = np.union1d(known, overtaken)
                first += len(rows)
            if order is not None:
                is_outdated[order] = is_outdated.copy()
            found.append(is_outdated)
        return np.concatenate(found)


def _write_others(
    directory: OutputDirectory, file: WrittenFile, writer: TableWriter, is_outdated: BoolArray
) -> None:
    """Write the other rows of a file."""
    first = 0
    for batch in file_rows(directory, file, dictionaries=TEXTS):
        stays = ~is_outdated[first : first + len(batch)]
        first += len(batch)
        rows = as_written(batch.filter(fixed_width(stays, pa.bool_())))
        for key, own in rows_of_each_partition(_taken(rows, _by_partition(rows))):
            writer.write(own, key)


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
