"""What a task reports of each file that it wrote, for the commit that names the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.format.side_files.checkpoints import TopicPartition

# A column's least or greatest value: timestamps in microseconds since 1970.
Bound = int | str


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A complete Parquet file that no commit names yet.

    `path` is relative to the table's directory, with `/`; so is `pending_path`, where the file is
    until the commit, for tables whose readers list directories. `table` is the name of the table
    where a run writes several. `partition_values` are texts by column, None for null.

    `least`, `greatest` and `null_counts` are by column, for all columns but key, value and headers;
    a column without a value has no bounds. `rows_of` counts the rows of each topic and partition.
    """

    path: str
    size: int
    rows: int
    partition_values: Mapping[str, str | None]
    least: Mapping[str, Bound]
    greatest: Mapping[str, Bound]
    null_counts: Mapping[str, int]
    rows_of: Mapping[TopicPartition, int]
    pending_path: str | None = None
    table: str = ""

    @property
    def written_path(self) -> str:
        """Where the file is before the commit."""
        return self.pending_path or self.path


def rows_by_partition(files: Iterable[WrittenFile]) -> dict[TopicPartition, int]:
    """Return the rows of each topic and partition in all of these files."""
    counted: dict[TopicPartition, int] = {}
    for file in files:
        for key, rows in file.rows_of.items():
            counted[key] = counted.get(key, 0) + rows
    return counted


def undecoded_counts(files: Iterable[WrittenFile]) -> dict[str, int]:
    """Return how many keys and values in these files could not be decoded, for those that are
    decoded."""
    return dict(
        sum(
            (
                Counter({name: file.rows - file.null_counts[f"{name}_error"]})
                for file in files
                for name in ("key", "value")
                if f"{name}_error" in file.null_counts
            ),
            Counter(),
        )
    )


class Report(NamedTuple):
    """What a task reports that has ended well: the bytes of segments that it read, its files, and
    for each segment the topic, how many records it has left out as those of erased persons, and
    how many values it has kept because nothing decodes them."""

    read_bytes: int
    files: tuple[WrittenFile, ...]
    suppressed: tuple[tuple[str, int, int], ...] = ()


OnReport = Callable[[Report], None]


def no_report(report: Report) -> None:
    """Take a report, and do nothing."""
