"""The tables of the checksum job, from view `byte_ranges`: schemas/tables/checksum_report.json, a
row per segment and per log that has lost all of its own, and schemas/tables/faults.json, a row per
damaged batch or byte range and per oddity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.batches.byte_ranges import VALID, CheckTotals
from kafkalog.columns.table_rows import ROWS_PER_BATCH, TableRow, table_batch
from kafkalog.storage.log_dir.metadata_snapshots import is_snapshot_file

REPORT, FAULTS = "checksum_report", "faults"
# Each row of `checked_segments` is a row of one of these tables.
CHECKED = pa.schema([(name, pa.struct(list(arrow_schema(name)))) for name in (REPORT, FAULTS)])
_SEGMENT = (
    *("cluster_id", "broker_id", "input_path", "topic", "partition", "file"),
    *("segment_base_offset", "is_last_segment"),
)
_COUNTED = {"error": "faults", "warning": "warnings", "information": "remarks"}
_SUMS = (
    *("batches", "records", "valid_bytes", "faulty_bytes", "trailing_bytes"),
    *_COUNTED.values(),
)


def checked_segments(ranges: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each segment and for each finding in it. Of its two columns, REPORT and
    FAULTS, one is a row of that table and the other is null. The rows of a segment follow each
    other in `ranges`."""
    found = _rows(row for batch in ranges for row in batch.to_pylist())
    while some := [*islice(found, ROWS_PER_BATCH)]:
        arrays = [_column(name, some) for name in (REPORT, FAULTS)]
        yield pa.RecordBatch.from_arrays(arrays, names=[REPORT, FAULTS])


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


def _rows(ranges: Iterator[TableRow]) -> Iterator[tuple[str, TableRow]]:
    """Yield tables and rows of them."""
    for _, of_segment in groupby(ranges, itemgetter(*_SEGMENT)):
        report: dict[str, Any] = {}
        for row in of_segment:
            _add(report or _begin(report, row), row)
            if row["kind"] is not None:
                yield FAULTS, row
        yield REPORT, _ended(report)


def _begin(report: dict[str, Any], row: TableRow) -> dict[str, Any]:
    report.update({name: row[name] for name in _SEGMENT}, bytes=row["file_size"])
    report.update(dict.fromkeys(_SUMS, 0))
    return report


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
        report["base_offset"] = min(report.get("base_offset", first), first)
        report["last_offset"] = max(report.get("last_offset", last), last)


def _ended(report: dict[str, Any]) -> TableRow:
    has_remarks = report["warnings"] + report["remarks"]
    verdict = "damaged" if report["faults"] else "remarks" if has_remarks else "sound"
    return {**report, "verdict": verdict}


def _column(table: str, rows: list[tuple[str, TableRow]]) -> pa.Array:
    """Return the rows of the table, null where a row is of another."""
    columns = table_batch(table, [row if name == table else {} for name, row in rows], {})
    nulls = np.array([name != table for name, _ in rows], dtype=np.bool_)
    return pa.StructArray.from_arrays(
        columns.columns, fields=list(columns.schema), mask=fixed_width(nulls, pa.bool_())
    )
