"""Do cleaned logs keep the cleaner's guarantees, and what would a cleaning free?

Rules: docs/format.md F250 to F262.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.columns.table_rows import RowTotals
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Rows, RowsInMemory, Views
from kafkalog.words import counted, first_names

REPORT, FINDINGS = "compaction_report", "compaction_findings"
_MOST_NAMES = 3
_PARTITION = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_SUMMED = ("errors", "warnings", "cleaned_records", "freeable_bytes", "unread_bytes")


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """The time that cleaning is judged at; options with the cluster's settings; an earlier copy to
    compare with; and the logs that are asked about, where these are not all."""

    at_ms: int
    config: Mapping[str, str] = field(default_factory=dict)
    before: str | None = None
    logs: Sequence[PartitionLog] | None = None


@dataclass
class CompactionTotals(RowTotals):
    """How many partitions there are, have findings, are due for cleaning, are possibly due, and
    were compared with an earlier copy; and the sums of their findings, records and bytes."""

    partitions: int = 0
    faulty_partitions: int = 0
    due_partitions: int = 0
    unknown_partitions: int = 0
    compared: int = 0
    errors: int = 0
    warnings: int = 0
    cleaned_records: int = 0
    freeable_bytes: int = 0
    unread_bytes: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of table `compaction_report`."""
        self.partitions += 1
        self.faulty_partitions += bool(row["errors"] or row["warnings"])
        self.due_partitions += bool(row["is_due"])
        self.unknown_partitions += row["is_due"] is None and row["dirty_bytes"] is not None
        self.compared += row["before_directory"] is not None
        self.add_values(row, *_SUMMED)


@dataclass(frozen=True, slots=True)
class Compaction:
    """Rows of tables `compaction_report` and `compaction_findings`, and what they come to;
    `unknown` are the log directories without cleaner-offset-checkpoint. F1425"""

    report: Rows
    findings: Rows
    totals: CompactionTotals
    settings: CompactionRequest
    unknown: Sequence[str] = ()

    @property
    def has_findings(self) -> bool:
        """Whether a guarantee is broken."""
        return self.totals.faulty_partitions > 0

    def words(self) -> str:
        """Return one line: whether the guarantees are kept, how much a cleaning would free, and
        what was not checked."""
        return "; ".join(self._clauses())

    def _clauses(self) -> Iterator[str]:
        totals = self.totals
        yield counted(totals.partitions, "compacted partition")
        if totals.faulty_partitions:
            faults = f"{counted(totals.errors, 'error')}, {counted(totals.warnings, 'warning')}"
            yield f"BROKEN: {faults} in {counted(totals.faulty_partitions, 'partition')}"
        elif totals.cleaned_records:
            yield f"{counted(totals.cleaned_records, 'cleaned record')} as the cleaner promises"
        elif not self.unknown:
            yield "none is cleaned, according to the checkpoints"
        if self.unknown:
            yield (
                f"whether logs in {first_names(self.unknown, _MOST_NAMES)} were cleaned is not "
                "known: no cleaner-offset-checkpoint is there"
            )
        freeable = f"a cleaning would free {counted(totals.freeable_bytes, 'byte')}"
        due = f"{freeable}, {counted(totals.due_partitions, 'partition')} due"
        if totals.unknown_partitions:
            unknown = counted(totals.unknown_partitions, "partition")
            due += f", of {unknown} it is not known (see column why_not)"
        yield due
        if self.settings.before is not None:
            yield f"{counted(totals.compared, 'partition')} compared with the earlier copy"
        if totals.unread_bytes:
            yield f"{counted(totals.unread_bytes, 'byte')} of damage not checked"


def compaction(views: Views, settings: CompactionRequest) -> Compaction:
    """Return what the cleaner has left, and what it has to do."""
    options = {"asOf": settings.at_ms, "before": settings.before, **settings.config}
    (report,) = views.rows(AskedView(REPORT, options=options, logs=settings.logs))
    findings = RowsInMemory.of(FINDINGS, _findings(report))
    logs = views.logs if settings.logs is None else settings.logs
    unknown = {
        log.log_dir.path
        for log in logs
        if log.is_live and log.topic != CLUSTER_METADATA and not log.log_dir.has_cleaner_checkpoint
    }
    totals = CompactionTotals.of(report)
    return Compaction(report, findings, totals, settings, sorted(unknown))


def _findings(report: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in report:
        for finding in row["findings"] or ():
            yield {**{name: row[name] for name in _PARTITION}, **finding}
