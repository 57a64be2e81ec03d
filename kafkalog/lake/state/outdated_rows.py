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
from kafkalog.lake.state.state_rows import as_written
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
                if self._is_any_in(directory, file, done):
                    self._write_others(directory, file, writer, done)
                    done.removed.append(file)
            done.written.extend(writer.close())
        return done

    def _is_any_in(self, directory: OutputDirectory, file: WrittenFile, done: FilesWithout) -> bool:
        return any(
            is_outdated.any()
            for batch in file_rows(directory, file, columns=_COLUMNS)
            for _, _, is_outdated in self._marked(batch, done)
        )

    def _write_others(
        self, directory: OutputDirectory, file: WrittenFile, writer: TableWriter, done: FilesWithout
    ) -> None:
        for batch in file_rows(directory, file):
            for key, rows, is_outdated in self._marked(as_written(batch), done):
                stay = rows.filter(fixed_width(~is_outdated, pa.bool_()))
                if len(stay):
                    writer.write(stay, key)

    def _marked(
        self, batch: pa.RecordBatch, done: FilesWithout
    ) -> Iterator[tuple[TopicPartition, pa.RecordBatch, BoolArray]]:
        """Yield the rows of each partition in a batch, and which of them are outdated."""
        for key, rows in rows_of_each_partition(_by_partition(batch)):
            outdated = self.of.get(key)
            if outdated is None:
                yield key, rows, np.zeros(len(rows), dtype=np.bool_)
                continue
            is_outdated, overtaken = outdated.among(rows)
            if len(overtaken):
                known = done.overtaken.get(key, overtaken)
                done.overtaken[key] = np.union1d(known, overtaken)
            yield key, rows, is_outdated


def _may_have(file: WrittenFile, key: TopicPartition, outdated: Outdated) -> bool:
    values: Iterable[tuple[str, str | int]] = zip(("topic", "partition"), key, strict=True)
    is_within = all(
        # Names of more than 32 characters are cut there, the greatest upwards.
        file.least.get(name, value) <= value <= file.greatest.get(name, value)  # type: ignore[operator]
        for name, value in values
    )
    has_lower = int(file.least.get("offset", -1)) < outdated.before_offset
    return is_within and (outdated.newer is not None or has_lower)


def _by_partition(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with those of a partition together, in their order."""
    topics = rows.column("topic").dictionary_encode().indices.to_numpy()
    partitions = integers(rows.column("partition"))
    codes = topics.astype(np.int64) << 32 | partitions
    if np.all(codes[1:] >= codes[:-1]):
        return rows
    return rows.take(fixed_width(np.argsort(codes, kind="stable"), pa.int64()))
