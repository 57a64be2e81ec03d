"""What there is of each segment in a partition's directory, and whether its side files are sound:
view `segments`, schemas/tables/segments.json. Batch headers are read, payloads are not.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from operator import itemgetter
from typing import TypeVar

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import is_wrapper
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.table_rows import TableRow
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import COMPRESSION_BITS, NO_VALUE
from kafkalog.format.faults import Severity
from kafkalog.format.side_files.leader_epochs import CarriedEpoch, with_carried
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.format.side_files.quorum_state import QUORUM_STATE
from kafkalog.inspection.indexes.index_check import SegmentIndexes, check_indexes
from kafkalog.inspection.indexes.index_findings import MISSING, ORPHAN, IndexFinding
from kafkalog.inspection.indexes.side_file_check import (
    carried_epoch_findings,
    leader_epoch_findings,
    quorum_state_findings,
    snapshot_findings,
    topic_id_findings,
)
from kafkalog.inspection.logs.carried_epochs import table_epochs
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import InputFile, entries_left, modified_ms, read_bytes, read_text
from kafkalog.storage.files.unreadable_input import note_deleted
from kafkalog.storage.log_dir.segment_files import LOG, FoundSegment, SegmentStatus, found_segments
from kafkalog.storage.names import segment_file_name, snapshot_offset
from kafkalog.storage.partition_log import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    PartitionLog,
    SegmentFile,
)
from kafkalog.storage.reading.renamed_files import current_path, note_deleted_segment
from kafkalog.storage.recovery.temporary_files import CLEANED

_Read = TypeVar("_Read")
_OFFSET = itemgetter(0)
SOUND, FINDINGS = "sound", "findings"


def segment_rows(log: PartitionLog) -> Iterator[TableRow]:
    """Yield a row for every segment in the partition's directory. A segment of which a file is
    deleted meanwhile is left out, and the run says so (F950)."""
    entries = [entry for entry in entries_left(log.path) if not entry.is_directory]
    texts = _Texts(log.path)
    all_snapshots = _by_offset(entries)
    has_none_of_times = not any(_shows_time_indexes(entry.name) for entry in entries)
    carried: list[CarriedEpoch] = []
    segments = found_segments(log, entries)
    active = next((each for each in segments if each.status is SegmentStatus.ACTIVE), None)
    for segment in segments:
        snapshots = _snapshots(segment, all_snapshots)
        try:
            found, account = _checked(log, segment, has_none_of_times=has_none_of_times)
            for entry in snapshots:
                data = _contents(read_bytes, entry.path, entry.name, found)
                found += [] if data is None else snapshot_findings(entry.name, data)
            file_columns = _file_columns(log, segment)
        except FileNotFoundError as error:
            _note_deleted(log, segment, str(error.filename))
            continue
        if segment.status in (SegmentStatus.LIVE, SegmentStatus.ACTIVE):
            for each in account.carried_epochs:
                with_carried(carried, each)
        # Where every log file is lost, the last indexes have the row.
        if segment is (active or segments[-1]):
            found += texts.findings()
            if log.is_live and texts.has_epochs:
                found += carried_epoch_findings(log, texts.epochs, carried)
        yield {
            "topic_id": texts.topic_id,
            **file_columns,
            "snapshot_bytes": sum(entry.size for entry in snapshots) if snapshots else None,
            **account.columns(),
            **_verdict(found),
        }


def _shows_time_indexes(name: str) -> bool:
    """Return whether a file beside segments is of a broker that writes time indexes: leader epochs
    came later than these. Rule: F133."""
    found = segment_file_name(name)
    return name == LEADER_EPOCHS or (found is not None and found.kind == ".timeindex")


def _note_deleted(log: PartitionLog, segment: FoundSegment, missing: str) -> None:
    """Remember the segment if its log file has been deleted, otherwise the file beside it."""
    path, name = segment.file.path, segment.name
    if missing != path and current_path(path) == path:
        note_deleted(missing)
        return
    next_base_offset = segment.next_base_offset
    size = segment.file.size
    note_deleted_segment(SegmentFile(path, name.base_offset, next_base_offset, size, log.path))


class _Texts:
    """The partition's small text files, which are in the row of its active segment."""

    def __init__(self, directory: str) -> None:
        self._findings: list[IndexFinding] = []
        epochs, metadata, quorum = (
            _contents(read_text, os.path.join(directory, name), name, self._findings)
            for name in (LEADER_EPOCHS, PARTITION_METADATA, QUORUM_STATE)
        )
        self.epochs = epochs
        # What could not be read is not compared.
        self.has_epochs = not any(each.file == LEADER_EPOCHS for each in self._findings)
        self._findings += leader_epoch_findings(epochs or "")
        if metadata:
            self._findings += topic_id_findings(metadata)
        if quorum is not None:
            self._findings += quorum_state_findings(quorum)
        self.topic_id: str | None = None
        with suppress(CorruptDataError):
            self.topic_id = read_topic_id(metadata or "")

    def findings(self) -> list[IndexFinding]:
        return self._findings


def _contents(
    read: Callable[[str], _Read | None], path: str, name: str, found: list[IndexFinding]
) -> _Read | None:
    """Return what is in a file; None, and a finding, where it cannot be read."""
    try:
        return read(path)
    except CorruptDataError as error:
        found.append(IndexFinding(name, error.fault, Severity.ERROR, error.detail))
        return None


def _by_offset(entries: Sequence[Entry]) -> list[tuple[int, Entry]]:
    """Return the producer snapshots among the entries, by the offsets in their names."""
    found = [
        (offset, entry) for entry in entries if (offset := snapshot_offset(entry.name)) is not None
    ]
    return sorted(found, key=_OFFSET)


def _snapshots(segment: FoundSegment, all_snapshots: Sequence[tuple[int, Entry]]) -> list[Entry]:
    """Return the producer snapshots at the segment's offsets, of the last segment those after it
    too."""
    if (
        segment.status not in (SegmentStatus.ACTIVE, SegmentStatus.LIVE, SegmentStatus.NOT_SERVED)
        or segment.name.mark
    ):
        return []
    first = bisect_left(all_snapshots, segment.name.base_offset, key=_OFFSET)
    end = segment.next_base_offset
    last = None if end is None else bisect_left(all_snapshots, end, key=_OFFSET)
    return [entry for _, entry in all_snapshots[first:last]]


def _file_columns(log: PartitionLog, segment: FoundSegment) -> TableRow:
    files = segment.files
    sizes = {kind: entry.size for kind, entry in files.items()}
    return {
        "directory": log.path,
        "file": segment.file.path,
        "segment_base_offset": segment.name.base_offset,
        "status": segment.status.value,
        "status_reason": segment.reason,
        "size": sizes.get(LOG),
        "modified_ms": modified_ms(segment.file.path),
        "index_bytes": sizes.get(".index"),
        "timeindex_bytes": sizes.get(".timeindex"),
        "txnindex_bytes": sizes.get(".txnindex"),
    }


def _verdict(found: Sequence[IndexFinding]) -> TableRow:
    kinds = {finding.kind for finding in found if finding.severity >= Severity.WARNING}
    verdict = SOUND if not kinds else MISSING if kinds == {MISSING} else FINDINGS
    findings = [{**asdict(finding), "severity": finding.severity.name.lower()} for finding in found]
    return {"index_verdict": verdict, "index_findings": findings}


def _checked(
    log: PartitionLog, segment: FoundSegment, *, has_none_of_times: bool
) -> tuple[list[IndexFinding], HeaderAccount]:
    account = HeaderAccount()
    base_offset = segment.name.base_offset
    if LOG not in segment.files:
        detail = "without its log: a broker that starts drops it"
        orphans = [IndexFinding(kind, ORPHAN, Severity.WARNING, detail) for kind in segment.files]
        return orphans, account
    options = SegmentOptions(base_offset, segment.next_base_offset, check_crcs=False)
    with InputFile(segment.file.path) as file:
        chunks = SegmentHeaders(FileWindow(file), options).chunks()
        tables = (account.noted(chunk.table) for chunk in chunks)
        unread: list[IndexFinding] = []
        indexes = _indexes(log, segment, unread)
        indexes = replace(indexes, has_none_of_times=has_none_of_times)
        found = check_indexes(tables, indexes)
    hidden = {(finding.file, MISSING) for finding in unread}
    return unread + [each for each in found if (each.file, each.kind) not in hidden], account


def _indexes(
    log: PartitionLog, segment: FoundSegment, unread: list[IndexFinding]
) -> SegmentIndexes:
    index, timeindex, txnindex = (
        _contents(read_bytes, segment.files[kind].path, kind, unread)
        if kind in segment.files
        else None
        for kind in (".index", ".timeindex", ".txnindex")
    )
    is_last = segment.next_base_offset is None
    return SegmentIndexes(
        base_offset=segment.name.base_offset,
        index=index,
        timeindex=timeindex,
        txnindex=txnindex,
        is_active=is_last and segment.name.mark in ("", CLEANED),
        is_trimmed=log.is_trimmed,
    )


class HeaderAccount:
    """Sums up the batch headers of a segment."""

    def __init__(self) -> None:
        self._batches = self._records = self._unframed = 0
        self._counts_all = True
        self._first: int | None = None
        self._last: int | None = None
        self._first_ms: int | None = None
        self._least_ms: int | None = None
        self._latest_ms = NO_VALUE
        self._epochs: list[int] = []
        self.carried_epochs: list[CarriedEpoch] = []
        # Of the records those of control batches.
        self.control_records = 0
        # The bytes of batches by the number of their codec.
        self.codec_bytes: LongArray = np.zeros(COMPRESSION_BITS + 1, dtype=np.int64)

    def noted(self, table: LongArray) -> LongArray:
        """Return the table, once it is taken account of."""
        for each in table_epochs(table):
            with_carried(self.carried_epochs, each)
        sound = table[table[:, column.FAULT] == 0]
        self._unframed += int(table[table[:, column.FAULT] != 0, column.SIZE].sum())
        if len(sound):
            counts = sound[:, column.RECORDS_COUNT]
            self._batches += len(sound)
            self._records += int(counts.clip(0).sum())
            self.control_records += int(counts[column.is_control(sound)].clip(0).sum())
            self._counts_all &= bool((counts != NO_VALUE).all())
            self._note_offsets(sound)
            self._latest_ms = max(self._latest_ms, int(sound[:, column.MAX_TIMESTAMP].max()))
            self._note_first_time(sound)
            self._note_epochs(sound[:, column.LEADER_EPOCH])
            np.add.at(
                self.codec_bytes,
                sound[:, column.ATTRIBUTES] & COMPRESSION_BITS,
                sound[:, column.SIZE],
            )
        return table

    def _note_offsets(self, sound: LongArray) -> None:
        if self._last is None and not is_wrapper(sound[:1])[0]:
            self._first = int(sound[0, column.BASE_OFFSET])
        self._last = int(sound[-1, column.LAST_OFFSET])

    def _note_first_time(self, sound: LongArray) -> None:
        times = column.first_timestamps(sound)
        times = times[times != NO_VALUE]
        if len(times) and self._first_ms is None:
            self._first_ms = int(times[0])
        least = column.least_timestamp(sound)
        if least is not None:
            self._least_ms = least if self._least_ms is None else min(self._least_ms, least)

    def _note_epochs(self, epochs: LongArray) -> None:
        known = epochs[epochs != NO_VALUE]
        if len(known):
            first, *_ = (*self._epochs, int(known[0]))
            self._epochs = [first, int(known[-1])]

    def columns(self) -> TableRow:
        """Return the account as columns of the view."""
        epochs = self._epochs
        return {
            "base_offset": self._first,
            "last_offset": self._last,
            "batches": self._batches,
            "records": self._records if self._counts_all else None,
            "unframed_bytes": self._unframed,
            "first_timestamp_ms": self._first_ms,
            "least_timestamp_ms": self._least_ms,
            "max_timestamp_ms": None if self._latest_ms == NO_VALUE else self._latest_ms,
            "first_leader_epoch": epochs[0] if epochs else None,
            "last_leader_epoch": epochs[-1] if epochs else None,
        }
