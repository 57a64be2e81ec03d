"""Which bytes of logs, and which files beside them, are intact?

Tables: checksum_report, a row per segment and per log that has lost all of its own; faults, a row
per damaged batch or byte range and per oddity. Rules: docs/format.md F130 to F137, F927 and those
about damage.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches.byte_ranges import VALID, CheckTotals, united_times
from kafkalog.columns.table_rows import ROWS_PER_BATCH, TableRow, table_batch
from kafkalog.errors import LogDirError
from kafkalog.format.faults import Fault
from kafkalog.inspection.logs.replica_facts import replica_differences, replicated
from kafkalog.inspection.partitions.wrong_times import SegmentTimes, wrong_time_lines
from kafkalog.storage.log_dir.metadata_snapshots import is_snapshot_file
from kafkalog.storage.log_dir.other_entries import unread_entries
from kafkalog.storage.names import segment_file_name
from kafkalog.storage.partition_log import PartitionLog, SoundFile
from kafkalog.storage.recovery.temporary_files import CLEANED, DELETED
from kafkalog.views.engine import AskedView, Rows, Views
from kafkalog.views.planning.directory_reads import directory_reads
from kafkalog.words import counted, first_names

REPORT, FAULTS = "checksum_report", "faults"
# Each row of `CheckedSegments` is a row of one of these tables.
_CHECKED = pa.schema([(name, pa.struct(list(arrow_schema(name)))) for name in (REPORT, FAULTS)])
_INDEX_COLUMNS = ("directory", "file", "index_findings")
_TIME_COLUMNS = ("topic", "file", "least_timestamp_ms", "max_timestamp_ms")
_SOUND = "sound"
_UNREAD, _DIVERGED, _HOLE = "unreadable", "diverged", Fault.SEGMENT_HOLE.label
_MOST_NAMES = 5
# Logs that a broker has taken out of use need no files beside them.
_ON_THEIR_WAY_OUT = (DELETED, CLEANED)
_SEGMENT = (
    *("cluster_id", "broker_id", "input_path", "topic", "partition", "file"),
    *("segment_base_offset", "is_last_segment"),
)
_OF_SEGMENT = itemgetter(*_SEGMENT)
_COUNTED = {"error": "faults", "warning": "warnings", "information": "remarks"}
_SUMS = (
    *("batches", "records", "valid_bytes", "faulty_bytes", "trailing_bytes"),
    *_COUNTED.values(),
)


class CheckedSegments:
    """Makes a row for each segment and for each finding in it of the rows of view `byte_ranges`,
    where those of a segment follow each other. Of its two columns, REPORT and FAULTS, one is a row
    of that table and the other is null."""

    def __init__(self) -> None:
        self._segment: tuple[object, ...] | None = None
        self._report: dict[str, Any] = {}
        self._made: list[tuple[str, TableRow]] = []

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take ranges, and yield rows once they are many."""
        for row in batch.to_pylist():
            segment = _OF_SEGMENT(row)
            if segment != self._segment:
                self._end_segment()
                self._segment = segment
                _begin(self._report, row)
            _add(self._report, row)
            if row["kind"] is not None:
                self._made.append((FAULTS, row))
            if len(self._made) >= ROWS_PER_BATCH:
                yield self._batch()

    def end(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are left."""
        self._end_segment()
        if self._made:
            yield self._batch()

    def _end_segment(self) -> None:
        if self._report:
            self._made.append((REPORT, _ended(self._report)))
        self._segment, self._report = None, {}

    def _batch(self) -> pa.RecordBatch:
        arrays = [_column(name, self._made) for name in (REPORT, FAULTS)]
        self._made = []
        return pa.RecordBatch.from_arrays(arrays, names=[REPORT, FAULTS])


class CheckFinding(NamedTuple):
    """A finding in a file; findings in files beside a log have no position."""

    file: str
    position: int | None
    length: int | None
    severity: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Checks:
    """Rows of tables `checksum_report` and `faults`; what the segments come to; and the findings in
    files beside logs, None where these were not checked, in what is named like a file and cannot be
    read as one, and in replicas that have other records."""

    report: Rows
    faults: Rows
    totals: CheckTotals
    beside: Sequence[CheckFinding] | None
    others: Sequence[CheckFinding]

    @property
    def findings(self) -> list[CheckFinding]:
        """All findings, by file and position."""
        in_logs = (
            CheckFinding(*(row[name] for name in CheckFinding._fields)) for row in self.faults
        )
        found = [*in_logs, *(self.beside or ()), *self.others]
        return sorted(found, key=lambda finding: (finding.file, finding.position or 0))

    def time_lines(self, now_ms: int) -> Iterator[str]:
        """Yield lines about times that cannot be right, by the headers of sound batches, or that
        none is wrong. F1248"""
        times = (SegmentTimes(*(row[name] for name in _TIME_COLUMNS)) for row in self.report)
        wrong = [*wrong_time_lines(times, now_ms)]
        yield from wrong
        if not wrong and self.totals.records:
            records = counted(self.totals.records, "record")
            yield f"wrong times: none in {records}: no time is before 2000 or ahead of the clock"

    @property
    def missing(self) -> Counter[str]:
        """How many offsets are in no segment, by partition; those that the cleaner may have taken
        do not count. Rule: docs/format.md F73."""
        missing: Counter[str] = Counter()
        for row in self.faults:
            if row["kind"] == _HOLE and row["severity"] != "information":
                count = row["last_offset"] - row["base_offset"] + 1
                missing[f"{row['topic']}-{row['partition']}"] += count
        return missing

    def words(self) -> str:
        """Return one line: how much was checked and whether it is sound, problems first."""
        unread = {each.file for each in self.findings if each.kind == _UNREAD}
        diverged = sum(each.kind == _DIVERGED for each in self.others)
        words = self._read()
        if missing := self.missing:
            here = "" if self.totals.faults else "what is here is "
            words = f"{missing_words(missing)}; {here}{words}"
        if diverged:
            words = f"DIVERGED: {counted(diverged, 'replica')} with other records; {words}"
        if unread:
            words = f"UNREADABLE in part or as a whole: {counted(len(unread), 'file')}; {words}"
        return words

    def _read(self) -> str:
        """Return the line about everything that could be read."""
        logs = self.totals.words()
        if self.beside is None:
            return logs
        found = [each.severity for each in self.beside if each.kind != _UNREAD]
        errors, warnings = found.count("error"), found.count("warning")
        if not errors + warnings:
            return f"{logs}; indexes sound"
        indexes = f"indexes: {counted(errors, 'error')}, {counted(warnings, 'warning')}"
        return f"{logs}; {indexes}" if self.totals.faults else f"{indexes}; logs {logs}"


def missing_words(missing: Counter[str]) -> str:
    """Return what `Checks.missing` comes to."""
    names = first_names([*missing], _MOST_NAMES)
    verb = "is" if missing.total() == 1 else "are"
    return f"NOT COMPLETE: {counted(missing.total(), 'offset')} of {names} {verb} in no segment"


def refuse_without_segments(log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> None:
    """Raise LogDirError where there is nothing to check."""
    if not any(log.segments for log in logs) and not directory_reads(list(logs)):
        raise LogDirError(f"{', '.join(log_dirs)}: there is no segment to check")


def asked_checks() -> AskedView:
    """Return the view that `checked` goes by."""
    return AskedView("byte_ranges", None, schema=_CHECKED, fold=CheckedSegments)


def checks(views: Views, *, with_indexes: bool) -> Checks:
    """Check each byte of the logs of the views, whether replicas have the same records, and the
    files beside them if `with_indexes`."""
    logs = views.logs
    asked = [asked_checks()]
    # View `segments` is about a broker's own disk: docs/remote.md F558.
    on_disk = [log for log in logs if log.tiered_topic_id is None]
    if with_indexes and on_disk:
        asked.append(AskedView("segments", _INDEX_COLUMNS, logs=on_disk))
    found, *of_indexes = views.rows(*asked)
    beside = [finding for rows in of_indexes for row in rows for finding in _index_findings(row)]
    return checked(views, found, beside if with_indexes else None)


def checked(views: Views, found: Rows, beside: Sequence[CheckFinding] | None) -> Checks:
    """Return the answer, given the rows of `asked_checks` and what is beside the logs; replicas are
    compared."""
    report = found.of_table(REPORT)
    others = [*_unread(views.logs), *views.tasks(_diverged, replicated(views.logs))]
    return Checks(report, found.of_table(FAULTS), check_totals(report), beside, others)


def with_sound_files(logs: Sequence[PartitionLog], report: Rows) -> list[PartitionLog]:
    """Return the logs with what rows of table REPORT say of files without any finding."""
    sound = {
        row["file"]: SoundFile(*(row[name] for name in ("bytes", *SoundFile._fields[1:])))
        for row in report
        if row["verdict"] == _SOUND and row["batches"] and row["valid_bytes"] == row["bytes"]
    }
    return [log.knowing(sound) for log in logs]


def check_totals(reports: Iterable[Mapping[str, Any]]) -> CheckTotals:
    """Return what rows of table REPORT come to."""
    totals = CheckTotals()
    partitions = set()
    for row in reports:
        is_damaged, is_snapshot = row["verdict"] == "damaged", is_snapshot_file(row["file"])
        is_segment = row["bytes"] is not None and not is_snapshot
        totals.segments += is_segment
        totals.damaged_segments += is_segment and is_damaged
        totals.damaged_snapshots += is_snapshot and is_damaged
        totals.lost_logs += is_damaged and row["bytes"] is None
        if is_segment and row["topic"] is not None and row["partition"] is not None:
            partitions.add((row["topic"], row["partition"]))
        for name in ("batches", "records", "faulty_bytes", "trailing_bytes", "faults", "warnings"):
            setattr(totals, name, getattr(totals, name) + row[name])
        totals.bytes += row["faulty_bytes"] if is_snapshot else row["bytes"] or 0
    totals.partitions = len(partitions)
    return totals


def _begin(report: dict[str, Any], row: TableRow) -> None:
    report.update({name: row[name] for name in _SEGMENT}, bytes=row["file_size"])
    report.update(dict.fromkeys(_SUMS, 0))


def _add(report: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Add a range to the row of its segment; ranges come in the order of their positions."""
    report["batches"] += row["batches"]
    report["records"] += row["records"]
    report[f"{row['verdict']}_bytes"] += row["length"]
    if row["severity"] is not None:
        report[_COUNTED[row["severity"]]] += 1
    if row["severity"] == "error":
        offset = row["expected_offset"] if row["base_offset"] is None else row["base_offset"]
        report.setdefault("first_fault", row["kind"])
        report.setdefault("first_fault_position", row["position"])
        report.setdefault("first_fault_offset", offset)
    if row["verdict"] == VALID and row["batches"]:
        first, last = row["base_offset"], row["last_offset"]
        report |= united_times(report, row)
        report["base_offset"] = min(report.get("base_offset", first), first)
        report["last_offset"] = max(report.get("last_offset", last), last)


def _ended(report: dict[str, Any]) -> TableRow:
    has_remarks = report["warnings"] + report["remarks"]
    verdict = "damaged" if report["faults"] else "remarks" if has_remarks else _SOUND
    return {**report, "verdict": verdict}


def _column(table: str, rows: list[tuple[str, TableRow]]) -> pa.Array:
    """Return the rows of the table, null where a row is of another."""
    columns = table_batch(table, [row if name == table else {} for name, row in rows], {})
    nulls = np.array([name != table for name, _ in rows], dtype=np.bool_)
    # Not from a mask, for which each process would import pyarrow.compute.
    valid = fixed_width(nulls, pa.bool_(), nulls).buffers()[0]
    return pa.Array.from_buffers(
        pa.struct(list(columns.schema)), len(rows), [valid], children=columns.columns
    )


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
