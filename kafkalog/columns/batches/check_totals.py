"""What checking all bytes comes to, from the rows of view `byte_ranges`, and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkalog.columns.batches.byte_ranges import FAULTY, TRAILING
from kafkalog.words import counted


@dataclass
class CheckTotals:
    """How much was checked, and how much of it is damaged. `trailing_bytes` are behind the last
    batch of a log and none themselves, `lost_logs` have no segment left."""

    segments: int = 0
    partitions: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    faulty_bytes: int = 0
    trailing_bytes: int = 0
    faults: int = 0
    warnings: int = 0
    damaged_segments: int = 0
    lost_logs: int = 0

    def add_range(self, row: Mapping[str, Any]) -> None:
        """Take a row of the view; segments, partitions and lost logs are the caller's to count."""
        self.bytes += row["length"]
        self.batches += row["batches"] or 0
        self.records += row["records"] or 0
        self.faulty_bytes += row["length"] * (row["verdict"] == FAULTY)
        self.trailing_bytes += row["length"] * (row["verdict"] == TRAILING)
        self.faults += row["severity"] == "error"
        self.warnings += row["severity"] == "warning"

    def words(self) -> str:
        """One line: how much was checked, and whether it is sound."""
        checked = (
            f"checked {counted(self.segments, 'segment')} of "
            f"{counted(self.partitions, 'partition')}, {counted(self.bytes, 'byte')}, "
            f"{counted(self.batches, 'batch')}, {counted(self.records, 'record')}"
        )
        remarks = f", {counted(self.warnings, 'warning')}" if self.warnings else ""
        if self.faults:
            lost = f" and {counted(self.lost_logs, 'log')} without one" if self.lost_logs else ""
            return (
                f"DAMAGED: {counted(self.faults, 'fault')} in "
                f"{counted(self.damaged_segments, 'segment')}{lost}{remarks}, "
                f"{counted(self.faulty_bytes, 'byte')} faulty, {self.trailing_bytes:,} trailing; "
                f"{checked}"
            )
        tail = f", {counted(self.trailing_bytes, 'byte')} unfinished" if self.trailing_bytes else ""
        return f"sound{remarks}{tail}: {checked}"
