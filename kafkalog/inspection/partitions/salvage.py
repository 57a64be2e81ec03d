"""Writes what is sound of a partition into a new directory, which a broker opens.

Rules: docs/format.md F180 to F184, F252 and F253. Tables: schemas/tables/salvage.json and
lost_ranges.json.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.fault_details import FaultyRange, faulty_range, missing_end
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.sound_batches import batch_bytes, checked_chunks
from kafkalog.columns.table_rows import TableRow
from kafkalog.format.batch_header import LEADER_EPOCH_POSITION
from kafkalog.format.faults import Fault
from kafkalog.inspection.partitions.doubtful_batches import is_misplaced, miscounted, replaced
from kafkalog.storage.cleaning.log_compaction import compact_log
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.output_files import flush_directory
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import RecordedEnd, recorded_end
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.recovery.producer_state import BrokerStartError
from kafkalog.storage.recovery.recovery import RecoverySettings, plan_recovery
from kafkalog.storage.writing.log_settings import NEVER, LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from kafkalog.storage.writing.partition_output import write_partition_metadata

_LARGEST = 2**31 - 1
_UNCOMPACTED = "uncompacted"
_EPOCH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class SalvageSettings:
    """`topic_id` goes to partition.metadata, None to no such file. `compacted` are the topics that
    are compacted as well, each with its delete.retention.ms. With `keeps_doubtful` batches are
    kept that only their offset or their count speaks against."""

    now_ms: int
    index_interval_bytes: int
    topic_id: str | None = None
    compacted: Mapping[str, int] = field(default_factory=dict)
    keeps_doubtful: bool = False

    @property
    def writing(self) -> LogSettings:
        """Segments end where those of the source do, whatever the topic's settings were."""
        return LogSettings(
            segment_bytes=_LARGEST,
            segment_ms=NEVER,
            segment_index_bytes=_LARGEST,
            index_interval_bytes=self.index_interval_bytes,
            max_message_bytes=_LARGEST,
        )

    def with_topic_id(self, topic_id: str | None) -> SalvageSettings:
        """Return the settings for a partition of this topic."""
        return replace(self, topic_id=topic_id)


def salvage_partition(log: PartitionLog, directory: str, settings: SalvageSettings) -> TableRow:
    """Write the sound batches of all segments into `directory`, which must be new.

    The row of table `salvage`; its `lost_ranges` are rows of table `lost_ranges`. Segments keep
    their names; indexes, producer snapshots and leader epochs are rebuilt."""
    delete_retention_ms = settings.compacted.get(log.topic or "")
    if delete_retention_ms is None:
        with _writer(log, directory, settings) as writer:
            row = _salvaged(log, writer, settings)
    else:
        row = _salvaged_and_compacted(log, directory, settings, delete_retention_ms)
    write_partition_metadata(directory, settings.topic_id)
    return {**row, **_start(log, directory, settings)}


def _salvaged(log: PartitionLog, writer: LogWriter, settings: SalvageSettings) -> TableRow:
    salvage = _Salvage(writer, log.is_compacted, recorded_end(log), settings.keeps_doubtful)
    for segment in log.segments:
        salvage.add_segment(segment)
    if not log.segments:
        salvage.note_missing_end(log.path, missing_end(log.log_start, 0, salvage.recorded_end))
    return salvage.row()


def _salvaged_and_compacted(
    log: PartitionLog, directory: str, settings: SalvageSettings, delete_retention_ms: int
) -> TableRow:
    """Return what is sound goes to a directory of its own first: transactions and later records
    must be known before anything is left out."""
    parent, name = os.path.split(directory)
    whole = os.path.join(parent, _UNCOMPACTED, name)
    with _writer(log, whole, settings) as writer:
        row = _salvaged(log, writer, settings)
    (sound,) = find_partitions([whole])
    with _writer(log, directory, settings) as compacted_writer:
        compacted = compact_log(
            sound.segments,
            compacted_writer,
            start_offset=log.log_start,
            end_offset=writer.next_offset,
            now_ms=settings.now_ms,
            delete_retention_ms=delete_retention_ms,
        )
    # What is known of epochs and producers does not become less by cleaning.
    for kept in (LEADER_EPOCHS, f"{writer.next_offset:020d}.snapshot"):
        if os.path.exists(os.path.join(whole, kept)):
            os.replace(os.path.join(whole, kept), os.path.join(directory, kept))
    flush_directory(directory, os.fsync)
    shutil.rmtree(os.path.dirname(whole))
    return {
        **row,
        "compacted_bytes": compacted.source_bytes - compacted.cleaned_bytes,
        "cleaned_offset": compacted.end_offset,
    }


def _writer(log: PartitionLog, directory: str, settings: SalvageSettings) -> LogWriter:
    start_offset = log.segments[0].base_offset or 0 if log.segments else log.log_start
    return LogWriter(
        directory, settings.writing, now_ms=lambda: settings.now_ms, start_offset=start_offset
    )


def _start(log: PartitionLog, directory: str, settings: SalvageSettings) -> TableRow:
    """Return what a broker would make of the new directory."""
    recovery = RecoverySettings(
        is_clean_shutdown=False,
        log_start_offset=log.log_start,
        now_ms=settings.now_ms,
        index_interval_bytes=settings.index_interval_bytes,
    )
    plan = plan_recovery(directory, recovery)
    error = plan.start_error or next((cut.reason for cut in plan.cuts), None)
    return {
        "source_directory": log.path,
        "log_start_offset": plan.log_start_offset,
        "log_end_offset": plan.log_end_offset,
        "broker_starts": error is None,
        "start_error": error,
    }


@dataclass(slots=True)
class _Salvage:
    """A partition while it is copied, and the account of what is not."""

    writer: LogWriter
    is_compacted: bool
    recorded_end: RecordedEnd | None
    keeps_doubtful: bool
    segments: int = 0
    source_bytes: int = 0
    batches: int = 0
    records: int = 0
    kept_bytes: int = 0
    mended_epochs: int = 0
    doubtful_batches: int = 0
    lost: list[dict[str, object]] = field(default_factory=list)
    _open: list[dict[str, object]] = field(default_factory=list)
    # A batch whose offset is wrong, until it shows which offsets there are for it.
    _misplaced: list[int] | None = None

    def row(self) -> TableRow:
        """Return the counts, and what is lost."""
        names = (
            *("segments", "source_bytes", "batches", "records", "kept_bytes", "mended_epochs"),
            "doubtful_batches",
        )
        return {
            **{name: getattr(self, name) for name in names},
            "lost_bytes": self.source_bytes - self.kept_bytes,
            "lost_ranges": self.lost,
        }

    def add_segment(self, segment: SegmentFile) -> None:
        """Copy the sound batches of one segment into a segment of the same name."""
        if self.segments:
            self.writer.roll(segment.base_offset or self.writer.next_offset)
        self.segments += 1
        options = SegmentOptions.of(segment)
        with opened_segment(segment) as file:
            self.source_bytes += file.size
            batches = SegmentBatches(FileWindow(file), options)
            for chunk in checked_chunks(batches, options):
                self._add(chunk, segment, file)
            if segment.next_base_offset is not None:
                self._place(file, segment.next_base_offset)
            size = file.size
        if segment.next_base_offset is None:
            missing = missing_end(batches.next_offset, size, self.recorded_end)
            self.note_missing_end(segment.path, missing)
        self._note_hole(segment, max(batches.next_offset, self.writer.next_offset))

    def _add(self, chunk: Chunk, segment: SegmentFile, file: InputFile) -> None:
        first_offset_of_row = first_offsets(chunk.table).tolist()
        for row, first_offset in zip(chunk.table.tolist(), first_offset_of_row, strict=True):
            doubtful = None
            if row[column.FAULT]:
                doubtful = miscounted(file, row) if self.keeps_doubtful else None
                if doubtful is None:
                    ends_file = row[column.POSITION] + row[column.SIZE] == file.size
                    ends_log = ends_file and segment.next_base_offset is None
                    fault = faulty_range(row, chunk.unreadable, ends_log=ends_log)
                    self._lose(segment, row, fault.fault.label, fault.detail)
                    continue
            self._place(file, first_offset)
            records = 1 if row[column.RECORDS_COUNT] < 0 else row[column.RECORDS_COUNT]
            data = batch_bytes(chunk, row) if doubtful is None else doubtful.data
            try:
                self.writer.append(self._mended(data, row))
            except BrokerStartError as error:
                self._lose(segment, row, "transaction", str(error))
                continue
            self._settle(first_offset)
            self._count(row, records if doubtful is None else doubtful.records)
            self.doubtful_batches += doubtful is not None

    def _count(self, row: list[int], records: int) -> None:
        self.batches += 1
        self.records += records
        self.kept_bytes += row[column.SIZE]

    def _place(self, file: InputFile, next_offset: int) -> None:
        """Write the misplaced batch, if there is one and nothing else is lost before
        `next_offset`, under the offsets of its place."""
        row, self._misplaced = self._misplaced, None
        if row is None or len(self._open) != 1 or not self.keeps_doubtful:
            return
        doubtful = replaced(file, row, row[column.EXPECTED_OFFSET], next_offset)
        if doubtful is None or row[column.EXPECTED_OFFSET] < self.writer.next_offset:
            return
        try:
            self.writer.append(doubtful.data)
        except BrokerStartError:
            return
        self.lost.remove(self._open.pop())
        self._count(row, doubtful.records)
        self.doubtful_batches += 1

    def _mended(self, batch: bytes, row: list[int]) -> bytes:
        """Return the batch under the epoch of those before it, if its own contradicts the next: no
        checksum covers it."""
        if not row[column.LEADER_EPOCH_FAULT]:
            return batch
        self.mended_epochs += 1
        end = LEADER_EPOCH_POSITION + _EPOCH.size
        return batch[:LEADER_EPOCH_POSITION] + _EPOCH.pack(self.writer.leader_epoch) + batch[end:]

    def _lose(self, segment: SegmentFile, row: list[int], kind: str, detail: str) -> None:
        lost: dict[str, object] = {
            "file": segment.path,
            "position": row[column.POSITION],
            "length": row[column.SIZE],
            "kind": kind,
            "detail": detail,
            "first_offset": row[column.EXPECTED_OFFSET],
        }
        self.lost.append(lost)
        self._open.append(lost)
        self._misplaced = row if is_misplaced(row) else None

    def _settle(self, next_offset: int) -> None:
        """Now it shows what offsets the ranges since the last batch can have held."""
        for lost in self._open:
            lost["last_offset"] = next_offset - 1
            if next_offset == lost["first_offset"]:
                lost["first_offset"] = lost["last_offset"] = None
        self._open.clear()

    def _note_hole(self, segment: SegmentFile, next_offset: int) -> None:
        """Offsets between the end of a segment and the next are lost if none was cleaned away."""
        next_base_offset = segment.next_base_offset
        if next_base_offset is None or next_offset >= next_base_offset:
            return
        if self._open or self.is_compacted:
            self._settle(next_base_offset)
            return
        detail = "offsets that are in no segment"
        self._note_offsets(
            segment.path, Fault.SEGMENT_HOLE, detail, next_offset, next_base_offset - 1
        )

    def note_missing_end(self, path: str, missing: FaultyRange | None) -> None:
        """What damage at the end of the log does not account for."""
        if missing is None or self._open:
            return
        first, last = missing.expected_offset, missing.last_offset
        self._note_offsets(path, missing.fault, missing.detail, first, last)

    def _note_offsets(
        self, path: str, kind: Fault, detail: str, first: int, last: int | None
    ) -> None:
        self.lost.append(
            {
                "file": path,
                "position": None,
                "length": 0,
                "kind": kind.label,
                "detail": detail,
                "first_offset": first,
                "last_offset": last,
            }
        )
