"""What does a broker do to its log directories at its next start, and what is lost then?

Tables: recovery_plan, a row per partition; producer_sequences, a row per irregularity in the
sequence numbers of idempotent producers. Rules: docs/format.md F113 to F124, docs/recovery.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.columns.table_rows import RowTotals
from kafkalog.views.engine import AskedView, Options, Rows, Views
from kafkalog.words import counted, first_names

PLAN, SEQUENCES = "recovery_plan", "producer_sequences"
# So many places are named at which consumers stop.
_MOST_STOPS = 5


@dataclass(frozen=True, slots=True)
class RecoveryRequest:
    """How the broker stopped (`shutdown`, as the source's option), `index.interval.bytes` of the
    topics, and the present."""

    shutdown: str
    index_interval_bytes: int
    now_ms: int

    def asked(self, table: str) -> AskedView:
        """Return the view with the rows of a table."""
        options: Options = {
            "shutdown": self.shutdown,
            "indexIntervalBytes": self.index_interval_bytes,
            "asOf": self.now_ms,
        }
        return AskedView(table, options=options)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Rows of table `recovery_plan`, and what they come to."""

    plan: Rows
    totals: RecoveryTotals
    findings: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, plan: Rows) -> Recovery:
        """Return the plan with its totals and findings, from one pass over its rows."""
        totals = RecoveryTotals()
        findings = []
        for row in plan:
            totals.add(row)
            if is_finding(row):
                findings.append(row)
        return cls(plan, totals, findings)


def recovery(views: Views, settings: RecoveryRequest) -> tuple[Recovery, Rows]:
    """Return the plan, and the rows of table `producer_sequences`, which come with it."""
    plan, sequences = views.rows(settings.asked(PLAN), settings.asked(SEQUENCES))
    return Recovery.of(plan), sequences


def recovery_plan(views: Views, settings: RecoveryRequest) -> Recovery:
    """Return the plan alone."""
    (plan,) = views.rows(settings.asked(PLAN))
    return Recovery.of(plan)


def sequence_words(sequences: Rows) -> str:
    """Return a line about the rows of table `producer_sequences`."""
    if sequences.is_empty:
        return "no irregular sequence numbers"
    return f"{counted(len(sequences.table), 'batch')} with irregular sequence numbers"


def is_finding(row: Mapping[str, Any]) -> bool:
    """Return whether a partition loses something at the start or soon after, has lost it before,
    keeps damage that the broker then serves, or keeps a broker from starting."""
    damage = ("lost_bytes", "missing_offsets", "remaining_faults", "padded_time_indexes")
    return any(row[name] for name in damage) or not row["broker_starts"]


@dataclass
class RecoveryTotals(RowTotals):
    """How many partitions there are, what is lost of them, and what could be saved."""

    partitions: int = 0
    start_errors: int = 0
    cut_partitions: int = 0
    short_partitions: int = 0
    lost_bytes: int = 0
    salvageable_bytes: int = 0
    salvageable_records: int = 0
    missing_offsets: int = 0
    remaining_faults: int = 0
    padded_time_indexes: int = 0
    stops: list[str] = field(default_factory=list)
    findings: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of table `recovery_plan`."""
        self.partitions += 1
        self.start_errors += not row["broker_starts"]
        self.cut_partitions += bool(row["lost_bytes"])
        self.short_partitions += bool(row["missing_offsets"])
        self.add_values(row, "lost_bytes", "salvageable_bytes", "salvageable_records")
        self.add_values(row, "missing_offsets", "remaining_faults", "padded_time_indexes")
        if row["consumers_stop_at"] is not None:
            self.stops.append(f"{row['topic']}-{row['partition']}@{row['consumers_stop_at']}")
        self.findings += is_finding(row)

    def words(self) -> str:
        """Return one line: whether a broker starts, and what is lost then."""
        parts = [self._start_words()]
        if self.missing_offsets:
            parts.append(
                f"MISSING by checkpoints or indexes: {counted(self.missing_offsets, 'offset')} at "
                f"the end of {counted(self.short_partitions, 'partition')}"
            )
        if self.lost_bytes:
            parts.append(
                f"LOST: {counted(self.lost_bytes, 'byte')} in "
                f"{counted(self.cut_partitions, 'partition')}, of which "
                f"{counted(self.salvageable_bytes, 'byte')} with "
                f"{counted(self.salvageable_records, 'record')} are sound and can be salvaged"
            )
        if self.remaining_faults:
            parts.append(
                f"{counted(self.remaining_faults, 'fault')} would stay in what it serves: salvage "
                "leaves out damage, and cannot fill a hole in the offsets"
            )
        if self.padded_time_indexes:
            parts.append(
                f"TAKEN FOR 1970: {counted(self.padded_time_indexes, 'segment')} whose time index "
                "ends with zeros: retention by time deletes them soon after the start; remove "
                "their .index and .timeindex first, and the broker recreates them"
            )
        if not self.findings:
            parts.append("nothing is lost")
        return "; ".join(parts)

    def _start_words(self) -> str:
        if self.start_errors:
            return (
                f"NO START: {counted(self.start_errors, 'partition')} of {self.partitions} "
                "would keep a broker from starting"
            )
        starts = f"a broker gets through with all of {counted(self.partitions, 'partition')}"
        if self.stops:
            starts += f", but CONSUMERS STOP at {first_names(self.stops, _MOST_STOPS)}"
        return starts
