"""The logs of a damaged log directory, each salvaged into the new one: what the salvage job and
`kafkalog salvage` do alike, and what it comes to. Rules: docs/format.md F180 to F184.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkalog.columns.table_rows import RowTotals, TableRow
from kafkalog.inspection.partitions.salvage import SalvageSettings, salvage_partition
from kafkalog.storage.partition_log import PartitionLog, log_columns, topic_id
from kafkalog.storage.writing.salvaged_log_dir import finish_log_dir
from kafkalog.words import counted

_ATTEMPT = ".salvage-"
_PLACE = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def salvaged_log(
    log: PartitionLog, scratch: str, target: str, settings: SalvageSettings
) -> TableRow:
    """Write a log into its directory in `scratch`, which is to become `target`; its row of table
    `salvage`."""
    # A task that is tried again finds nothing of its first try in its way.
    attempt = os.path.join(scratch, f"{_ATTEMPT}{uuid.uuid4().hex}")
    os.mkdir(attempt)
    directory = os.path.join(attempt, log.name)
    found_id = topic_id(log)
    row = salvage_partition(log, directory, settings.with_topic_id(found_id))
    os.rename(directory, os.path.join(scratch, log.name))
    os.rmdir(attempt)
    place = os.path.join(target, log.name)
    return {**log_columns(log), **row, "directory": place, "topic_id": found_id}


def finish_salvage(source: str, target: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Make `target`, into which the logs of `source` with these rows were written, a broker's log
    directory."""
    for name in os.listdir(target):
        if name.startswith(_ATTEMPT):
            shutil.rmtree(os.path.join(target, name))
    keyed = {(row["topic"], row["partition"]): row for row in rows}
    finish_log_dir(
        source,
        target,
        ends={key: row["log_end_offset"] for key, row in keyed.items()},
        cleaned={
            key: row["cleaned_offset"]
            for key, row in keyed.items()
            if row["cleaned_offset"] is not None
        },
    )


def lost_rows(salvaged: Iterable[Mapping[str, Any]]) -> Iterator[TableRow]:
    """Yield the rows of table `lost_ranges`, from those of table `salvage`."""
    for row in salvaged:
        for lost in row["lost_ranges"] or ():
            yield {**{name: row[name] for name in _PLACE}, **lost}


def _absent_offsets(lost: Mapping[str, Any]) -> int:
    """Return how many offsets a range has without having a byte."""
    first, last = lost["first_offset"], lost["last_offset"]
    return 0 if lost["length"] or first is None or last is None else last - first + 1


@dataclass
class SalvageTotals(RowTotals):
    """What was written and what was lost, from the rows of table `salvage`."""

    partitions: int = 0
    batches: int = 0
    records: int = 0
    kept_bytes: int = 0
    lost_bytes: int = 0
    lost_ranges: int = 0
    absent_offsets: int = 0
    doubtful_batches: int = 0
    compacted_bytes: int = 0
    compacted_topics: set[str] = field(default_factory=set)
    start_errors: int = 0
    without_topic_id: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of table `salvage`."""
        self.partitions += 1
        self.add_values(row, "batches", "records", "kept_bytes", "lost_bytes", "doubtful_batches")
        self.lost_ranges += len(row["lost_ranges"])
        self.absent_offsets += sum(_absent_offsets(lost) for lost in row["lost_ranges"])
        self.start_errors += not row["broker_starts"]
        self.without_topic_id += row["topic_id"] is None
        if row["compacted_bytes"] is not None:
            self.compacted_bytes += row["compacted_bytes"]
            self.compacted_topics.add(row["topic"])

    @property
    def has_findings(self) -> bool:
        """Whether anything is lost or doubtful, or would keep a broker from starting."""
        return bool(self.lost_ranges or self.doubtful_batches or self.start_errors)

    def words(self, target: str) -> str:
        """Return one line: what is in the new directory, and what is not."""
        return f"{self._kept_words(target)}; {self._lost_words()}"

    def _kept_words(self, target: str) -> str:
        kept = (
            f"{counted(self.partitions, 'partition')} with {counted(self.batches, 'batch')}, "
            f"{counted(self.records, 'record')}, {counted(self.kept_bytes, 'byte')} in {target}"
        )
        if self.compacted_topics:
            kept += (
                f"; {counted(self.compacted_bytes, 'byte')} less after compaction of "
                f"{', '.join(sorted(self.compacted_topics))}"
            )
        return kept

    def _lost_words(self) -> str:
        lost = "nothing was lost"
        if self.lost_ranges:
            lost = (
                f"LOST: {counted(self.lost_bytes, 'byte')} in {counted(self.lost_ranges, 'range')}"
            )
        if self.absent_offsets:
            lost += f", and {counted(self.absent_offsets, 'offset')} of which no byte is there"
        if self.doubtful_batches:
            lost += f"; {counted(self.doubtful_batches, 'doubtful batch')} kept"
        if self.start_errors:
            lost += f"; a broker would fail to load {counted(self.start_errors, 'partition')}"
        if self.without_topic_id:
            lost += (
                f"; {counted(self.without_topic_id, 'partition')} had no topic id "
                "(partition.metadata): a broker with KRaft sets them aside as stray"
            )
        return lost
