"""Findings in logs and in the files beside them, as rows.

Rules: docs/format.md F130 to F137 and those about damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkalog.columns.batches.byte_ranges import CheckTotals
from kafkalog.inspection.logs.replica_facts import replica_differences, replicated
from kafkalog.storage.log_dir.metadata_snapshots import is_snapshot_file
from kafkalog.storage.log_dir.other_entries import unread_entries
from kafkalog.storage.names import segment_file_name
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.temporary_files import CLEANED, DELETED
from kafkalog.views.engine import AskedView, LocalViews
from kafkalog.views.parallel import in_order
from kafkalog.words import counted

_RANGE_COLUMNS = (
    *("topic", "partition", "file", "file_size", "position", "length", "verdict"),
    *("severity", "kind", "detail", "batches", "records"),
)
_INDEX_COLUMNS = ("directory", "file", "index_findings")
_UNREAD = "unreadable"
_DIVERGED = "diverged"
# Logs that a broker has taken out of use need no files beside them.
_ON_THEIR_WAY_OUT = (DELETED, CLEANED)
# The size of a task, after which progress is shown.
_TASK_BYTES = 32 * 1024 * 1024


class CheckFinding(NamedTuple):
    """A finding in a file; findings in files beside a log have no position."""

    file: str
    position: int | None
    length: int | None
    severity: str
    kind: str
    detail: str


@dataclass
class CheckedLogs:
    """The findings, and how much was checked."""

    totals: CheckTotals = field(default_factory=CheckTotals)
    findings: list[CheckFinding] = field(default_factory=list)
    with_indexes: bool = False

    def add_range(self, row: Mapping[str, Any]) -> None:
        """Add a row of view `byte_ranges`."""
        self.totals.add_range(row)
        if row["kind"] is not None:
            self.findings.append(CheckFinding(*(row[name] for name in CheckFinding._fields)))

    def words(self) -> str:
        """Return one line: how much was checked and whether it is sound, problems first."""
        unread = len({finding.file for finding in self.findings if finding.kind == _UNREAD})
        diverged = sum(finding.kind == _DIVERGED for finding in self.findings)
        words = self._read()
        if diverged:
            words = f"DIVERGED: {counted(diverged, 'replica')} with other records; {words}"
        if unread:
            words = f"UNREADABLE in part or as a whole: {counted(unread, 'file')}; {words}"
        return words

    def _read(self) -> str:
        """Return the line about everything that could be read."""
        logs = self.totals.words()
        if not self.with_indexes:
            return logs
        found = [
            finding
            for finding in self.findings
            if finding.position is None and finding.kind != _UNREAD
        ]
        errors = sum(finding.severity == "error" for finding in found)
        warnings = sum(finding.severity == "warning" for finding in found)
        if not errors + warnings:
            return f"{logs}; indexes sound"
        indexes = f"indexes: {counted(errors, 'error')}, {counted(warnings, 'warning')}"
        return f"{logs}; {indexes}" if self.totals.faults else f"{indexes}; logs {logs}"


def check_logs(
    log_dirs: Sequence[str],
    logs: list[PartitionLog],
    *,
    with_indexes: bool,
    processes: int,
    on_done: Callable[[int], None],
) -> CheckedLogs:
    """Check these logs; `on_done` is called with the number of bytes that have been checked."""
    checked = CheckedLogs(with_indexes=with_indexes)
    segments: dict[tuple[object, ...], bool] = {}
    views = LocalViews(log_dirs, logs, processes, {"maxPartitionBytes": _TASK_BYTES}, on_done)
    asked = [AskedView("byte_ranges", _RANGE_COLUMNS)]
    # View `segments` is about a broker's own disk: docs/remote.md F558.
    on_disk = [log for log in logs if log.tiered_topic_id is None]
    if with_indexes and on_disk:
        asked.append(AskedView("segments", _INDEX_COLUMNS, logs=on_disk))
    ranges, *of_indexes = views.rows(*asked)
    for row in ranges:
        checked.add_range(row)
        is_damaged = row["severity"] == "error"
        if is_snapshot_file(row["file"]):
            checked.totals.damaged_snapshots += is_damaged
            continue
        if row["file_size"] is None:
            checked.totals.lost_logs += is_damaged
            continue
        segment = (row["topic"], row["partition"], row["file"])
        segments[segment] = segments.get(segment, False) or is_damaged
    checked.totals.segments = len(segments)
    checked.totals.partitions = len({segment[:2] for segment in segments})
    checked.totals.damaged_segments = sum(segments.values())
    for rows in of_indexes:
        for row in rows:
            checked.findings += _index_findings(row)
    checked.findings += _unread(logs)
    checked.findings += in_order(_diverged, replicated(logs), processes=processes)
    checked.findings.sort(key=lambda finding: (finding.file, finding.position or 0))
    return checked


def _diverged(logs: Sequence[PartitionLog]) -> Iterator[CheckFinding]:
    """Yield where replicas have other records than the best one. Rule: docs/format.md F927."""
    for found in replica_differences(logs):
        yield CheckFinding(found.path, found.position, found.size, "error", _DIVERGED, found.detail)


def _unread(logs: Sequence[PartitionLog]) -> Iterator[CheckFinding]:
    """Yield entries that are named like Kafka's files but are not regular files."""
    for entry in unread_entries(logs):
        name = segment_file_name(os.path.basename(entry.path))
        severity = "warning" if name is not None and name.kind != ".log" else "error"
        yield CheckFinding(entry.path, None, None, severity, _UNREAD, entry.what)


def _index_findings(row: dict[str, Any]) -> Iterator[CheckFinding]:
    name = segment_file_name(os.path.basename(row["file"]))
    if name is None or name.mark in _ON_THEIR_WAY_OUT:
        return
    for finding in row["index_findings"] or ():
        file = finding["file"]
        if file.startswith("."):
            file = name.stem + file + name.mark
        path = os.path.join(row["directory"], file)
        yield CheckFinding(
            path, None, None, finding["severity"], finding["kind"], finding["detail"]
        )
