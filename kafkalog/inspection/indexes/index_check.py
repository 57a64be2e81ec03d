"""The check of a segment's indexes against its batch headers, in one walk over them.

What brokers of any version write is sound, what they would not is a finding; any bytes give
findings, at most one of each kind for each file. Rules: docs/format.md F130 to F136.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import new_table
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.faults import Severity
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.indexes import OFFSET_ENTRY, TIME_ENTRY, used_bytes
from kafkalog.inspection.indexes.header_walk import HeaderTable
from kafkalog.inspection.indexes.index_findings import MISSING, ZEROS, IndexFinding
from kafkalog.inspection.indexes.offset_index_check import OffsetIndexCheck
from kafkalog.inspection.indexes.time_index_check import TimeIndexCheck
from kafkalog.inspection.indexes.transaction_index_check import TransactionIndexCheck

# The newest format before 0.11: messages with timestamps, and no batches yet.
_LARGEST_OLD_MAGIC = 1

_Check = OffsetIndexCheck | TimeIndexCheck | TransactionIndexCheck


@dataclass(frozen=True, slots=True)
class SegmentIndexes:
    """The contents of the indexes beside a log file, None where there is no such file.

    `is_active`: a broker may still write to the segment. `is_trimmed`: it has been closed since,
    so that no free places are left in its indexes. `has_none_of_times`: no segment of the partition
    has a time index, and the partition has no leader epochs.
    """

    base_offset: int
    index: bytes | None
    timeindex: bytes | None
    txnindex: bytes | None
    is_active: bool
    is_trimmed: bool
    has_none_of_times: bool = False


def check_indexes(tables: Iterable[LongArray], indexes: SegmentIndexes) -> list[IndexFinding]:
    """Return what is wrong with the indexes of the log whose batch tables these are.

    The tables cover the file; of each only what the headers show is used.
    """
    base_offset = min(indexes.base_offset, LARGEST_OFFSET)
    checks = list(_checks(indexes, base_offset))
    headers = HeaderTable(new_table(0), base_offset)
    largest_magic = 0
    for table in tables:
        headers = HeaderTable(table, headers)
        largest_magic = max(largest_magic, int(table[:, column.MAGIC].max(initial=0)))
        for check in checks:
            check.add(headers)
    findings = [*_missing(indexes, headers, largest_magic), *_free_places(indexes)]
    for check in checks:
        findings += check.findings(headers)
    return findings


def _checks(indexes: SegmentIndexes, base_offset: int) -> Iterator[_Check]:
    if indexes.index is not None:
        used = used_bytes(indexes.index, OFFSET_ENTRY.size)
        yield OffsetIndexCheck(indexes.index, used, base_offset)
    if indexes.timeindex is not None:
        used = used_bytes(indexes.timeindex, TIME_ENTRY.size)
        yield TimeIndexCheck(indexes.timeindex, used, base_offset, is_active=indexes.is_active)
    if indexes.txnindex is not None:
        yield TransactionIndexCheck(indexes.txnindex, base_offset)


def _missing(
    indexes: SegmentIndexes, end: HeaderTable, largest_magic: int
) -> Iterator[IndexFinding]:
    # Brokers make it at the first append: a segment rolled since, such as that of a topic whose
    # records have all expired, has none after a clean stop.
    if indexes.index is None and end.end > 0:
        detail = "not there: a broker that starts reads the whole of a live segment to make it"
        yield IndexFinding(".index", MISSING, Severity.WARNING, detail)
    # Messages have timestamps since 0.10.0, segments time indexes since 0.10.1.
    is_of_0_10_0 = indexes.has_none_of_times and largest_magic <= _LARGEST_OLD_MAGIC
    if indexes.timeindex is None and end.latest_ms != NO_VALUE and not is_of_0_10_0:
        detail = "not there: a broker that starts makes an empty one, by which no time is found"
        yield IndexFinding(".timeindex", MISSING, Severity.WARNING, detail)


def _free_places(indexes: SegmentIndexes) -> Iterator[IndexFinding]:
    if indexes.is_active and not indexes.is_trimmed:
        return
    for kind, data, entry_bytes in (
        (".index", indexes.index, OFFSET_ENTRY.size),
        (".timeindex", indexes.timeindex, TIME_ENTRY.size),
    ):
        used = used_bytes(data or b"", entry_bytes)
        zeros = len(data or b"") - used
        # One place alone can be the entry of the time 0 for the segment's first offset.
        may_be_entry = kind == ".timeindex" and used == 0
        if zeros >= entry_bytes * (1 + may_be_entry):
            detail = f"{zeros} zero bytes after the entries, which a broker takes for entries"
            yield IndexFinding(kind, ZEROS, Severity.ERROR, detail)
