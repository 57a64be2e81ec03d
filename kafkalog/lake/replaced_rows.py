"""Which files of a table have rows that a run replaces, and the files without these rows.

Rule: docs/ingest.md F653.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kafkalog.columns.arrays import fixed_width, integers
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.file_rows import file_rows, rows_of_each_partition
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.table_writer import TableWriter
from kafkalog.lake.written_file import WrittenFile
from kafkalog.views.planning.ingest_positions import IngestRun, Replaces

# From the first offset up to, not including, the second.
_Offsets = tuple[int, int]


@dataclass(slots=True)
class FilesAfter:
    """The files of a table without the rows that a run replaces: `kept` are untouched, `rewritten`
    are new, and `removed` are no longer part of the table."""

    kept: list[WrittenFile] = field(default_factory=list)
    rewritten: list[WrittenFile] = field(default_factory=list)
    removed: list[WrittenFile] = field(default_factory=list)


def replaced_offsets(run: IngestRun) -> dict[TopicPartition, _Offsets]:
    """Return the offsets whose rows a run replaces."""
    if run.replaces is Replaces.PARTITIONS:
        return dict.fromkeys(run.replaced, (0, LARGEST_OFFSET))
    if run.replaces is Replaces.RANGES:
        return {each.key: (each.from_offset, each.until_offset) for each in run.written}
    return {}


def without_replaced(
    output: TableOutput, files: Iterable[WrittenFile], run: IngestRun
) -> FilesAfter:
    """Write the files again that have both rows that the run replaces and others. No file is read
    of which the statistics say enough.

    Raises OSError as reading and writing do; then nothing new is left.
    """
    after, replaced = FilesAfter(), replaced_offsets(run)
    directory = OutputDirectory(output.path)
    try:
        for file in files:
            offsets = _within(file, replaced)
            if not offsets:
                after.kept.append(file)
            elif _is_covered(file, offsets):
                after.removed.append(file)
            else:
                rest = _rest(output, directory, file, offsets)
                after.rewritten += rest or []
                (after.kept if rest is None else after.removed).append(file)
    except BaseException:
        for file in after.rewritten:
            directory.delete(file.written_path)
        raise
    return after


def _within(
    file: WrittenFile, replaced: Mapping[TopicPartition, _Offsets]
) -> dict[TopicPartition, _Offsets]:
    """Return what is replaced of the partitions of a file, where it can have such offsets."""
    least, greatest = int(file.least["offset"]), int(file.greatest["offset"])
    return {
        key: replaced[key]
        for key in file.rows_of
        if key in replaced and replaced[key][0] <= greatest and replaced[key][1] > least
    }


def _is_covered(file: WrittenFile, offsets: Mapping[TopicPartition, _Offsets]) -> bool:
    least, greatest = int(file.least["offset"]), int(file.greatest["offset"])
    return len(offsets) == len(file.rows_of) and all(
        first <= least and end > greatest for first, end in offsets.values()
    )


def _rest(
    output: TableOutput,
    directory: OutputDirectory,
    file: WrittenFile,
    offsets: Mapping[TopicPartition, _Offsets],
) -> list[WrittenFile] | None:
    """Return new files with the rows that stay; None where all stay, so that nothing is new."""
    writer = TableWriter(output)
    try:
        for batch in file_rows(directory, file):
            for key, rows in rows_of_each_partition(batch):
                stay = rows if key not in offsets else _outside(rows, *offsets[key])
                if len(stay):
                    writer.write(stay, key)
        files = writer.close()
    except BaseException:
        writer.abort()
        raise
    if sum(each.rows for each in files) == file.rows:
        writer.abort()
        return None
    return files


def _outside(rows: pa.RecordBatch, first: int, end: int) -> pa.RecordBatch:
    offsets = integers(rows.column("offset"))
    return rows.filter(fixed_width((offsets < first) | (offsets >= end), pa.bool_()))
