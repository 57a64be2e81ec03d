"""A partition that a broker has taken out of use, copied under its own name.

Rules: docs/format.md F92, F94 and F197.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.table_rows import TableRow
from kafkalog.format.batch_header import DELETE_HORIZON_BIT
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import InputFile, entries_left
from kafkalog.storage.files.output_files import OutputFile, flush_directory
from kafkalog.storage.files.unreadable_input import note_deleted
from kafkalog.storage.log_dir.deleted_logs import DeletedLog
from kafkalog.storage.names import segment_file_name, snapshot_offset
from kafkalog.storage.partition_log import LEADER_EPOCHS, PARTITION_METADATA, SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.recovery.temporary_files import DELETED
from kafkalog.storage.writing.partition_output import write_partition_metadata
from kafkalog.words import first_names

_LOG = ".log"
_COPIED_BYTES = 4 * 1024 * 1024
_MOST_NAMES = 3
# Of batches that are compared: which they are, how many records they have, and which.
_COMPARED = (
    *(column.BASE_OFFSET, column.LAST_OFFSET, column.LEADER_EPOCH),
    *(column.RECORDS_COUNT, column.CRC, column.ATTRIBUTES),
)
_LAST, _COUNT, _CRC, _BITS = 1, 3, 4, 5


@dataclass(frozen=True, slots=True)
class _Segment:
    """A log file, where its batches end, and the files of the segment. With `is_cut` only what is
    below the end is kept, and its indexes are not: a broker makes them."""

    log: SegmentFile
    end_offset: int
    files: Sequence[Entry]
    is_deleted: bool
    is_cut: bool = False

    @property
    def base_offset(self) -> int:
        return self.log.base_offset or 0

    def kept_files(self) -> Iterator[tuple[Entry, int | None]]:
        """Yield the files to copy, each with how many bytes, None for all."""
        for entry in self.files:
            if not self.is_cut:
                yield entry, None
            elif entry.path == self.log.path:
                yield entry, self._size_below_end()

    def _size_below_end(self) -> int:
        with opened_segment(self.log) as file:
            for chunk in _headers(self.log, file).chunks():
                is_cut = chunk.table[:, column.LAST_OFFSET] >= self.end_offset
                if is_cut.any():
                    return int(chunk.table[int(is_cut.argmax()), column.POSITION])
            return file.size


@dataclass(slots=True)
class _Copies:
    """What was copied, and what was not."""

    bytes: int = 0
    unreadable_bytes: int = 0
    left_out: list[str] = field(default_factory=list)


def undeleted_log(log: DeletedLog, scratch: str, topic_id: str | None) -> TableRow:
    """Copy a partition into a directory of its own name in `scratch`: the segments it has and the
    deleted ones; of those that overlap, the ones that have all records. A `topic_id` takes the
    place of its own."""
    directory = os.path.join(scratch, log.name)
    os.mkdir(directory)
    entries = [entry for entry in entries_left(log.path) if not entry.is_directory]
    copies = _Copies()
    deleted = _with_batches(_segments(entries, DELETED), copies)
    live = [*_segments(entries, "")]
    groups = _overlapping([*live, *deleted])
    kept = [each for group in groups for each in _chosen(group, copies)]
    files = (file for each in kept for file in each.kept_files())
    for entry, size in (*files, *((entry, None) for entry in _beside(entries))):
        _copy(entry, size, os.path.join(directory, entry.name.removesuffix(DELETED)), copies)
    write_partition_metadata(directory, topic_id)
    flush_directory(directory, os.fsync)
    return {
        "topic": log.topic,
        "partition": log.partition,
        "topic_id": topic_id or log.topic_id,
        "source": log.path,
        "segments": len(kept),
        "deleted_segments": sum(each.is_deleted for each in kept),
        "replaced_segments": len(live) - sum(not each.is_deleted for each in kept),
        "start_offset": min((each.base_offset for each in kept), default=None),
        "end_offset": max((each.end_offset for each in kept), default=None),
        "bytes": copies.bytes,
        "unreadable_bytes": copies.unreadable_bytes,
        "left_out": copies.left_out,
    }


def _segments(entries: Sequence[Entry], mark: str) -> Iterator[_Segment]:
    """Yield the segments whose files have this mark; a name of tiered storage is none of a
    broker's."""
    by_name = {entry.name: entry for entry in entries}
    found: dict[int, dict[str, Entry]] = {}
    for entry in entries:
        name = segment_file_name(entry.name)
        if name is not None and name.mark == mark and name.stem.isdecimal():
            found.setdefault(name.base_offset, {})[name.kind] = entry
    for base_offset, files in found.items():
        snapshot = f"{base_offset:020d}.snapshot"
        if mark and snapshot + mark in by_name and snapshot not in by_name:
            files[snapshot] = by_name[snapshot + mark]
        if _LOG in files:
            entry = files[_LOG]
            log = SegmentFile(entry.path, base_offset, None, entry.size, entry.path)
            yield _Segment(log, _end_offset(log), [*files.values()], bool(mark))


def _end_offset(log: SegmentFile) -> int:
    with opened_segment(log) as file:
        end_offset = _headers(log, file).walk()
    return max(end_offset, log.base_offset or 0)


def _with_batches(deleted: Iterable[_Segment], copies: _Copies) -> Iterator[_Segment]:
    """Yield the segments that have a batch; the others are left out."""
    for each in deleted:
        if each.end_offset > each.base_offset:
            yield each
        else:
            reason = "no batch in it can be read" if each.log.size else "it is empty"
            copies.left_out.append(f"{each.log.path}: {reason}")


def _overlapping(segments: Iterable[_Segment]) -> Iterator[list[_Segment]]:
    """Yield segments in the order of their offsets, those together that overlap."""
    group: list[_Segment] = []
    end = -1
    for each in sorted(segments, key=lambda each: each.base_offset):
        if group and each.base_offset >= end:
            yield group
            group = []
        group.append(each)
        end = max(end, each.end_offset, each.base_offset + 1)
    if group:
        yield group


def _chosen(group: Sequence[_Segment], copies: _Copies) -> list[_Segment]:
    """Return which of segments that overlap to keep: the live ones, unless those with the deleted
    ones have all their batches and more records, as where the cleaner has replaced them. F197"""
    live = [each for each in group if not each.is_deleted]
    kept = live
    if len(live) < len(group):
        restored = _restored(group)
        if _has_all(restored, live) and not _has_all(live, restored):
            kept = restored
    for each in group:
        if each.is_deleted and not _has_all(kept, [each]):
            names = first_names([os.path.basename(other.log.path) for other in kept], _MOST_NAMES)
            copies.left_out.append(
                f"{each.log.path}: its offsets {each.base_offset} to {each.end_offset - 1} overlap "
                f"those of {names}, which has other records"
            )
    return kept


def _restored(group: Sequence[_Segment]) -> list[_Segment]:
    """Return a segment for each base offset, the deleted one of two: each cut where the next one
    begins, if this and those after it have what is cut off; otherwise the next one is left out."""
    by_base = {each.base_offset: each for each in sorted(group, key=lambda each: each.is_deleted)}
    waiting = [by_base[base] for base in sorted(by_base)]
    kept: list[_Segment] = []
    while waiting:
        each, *waiting = waiting
        while waiting and waiting[0].base_offset < each.end_offset:
            begin = waiting[0].base_offset
            if _has_all(waiting, [each], begin):
                each = replace(each, end_offset=begin, is_cut=True)
            else:
                del waiting[0]
        if next(_sound_batches([each]), None) is not None:
            kept.append(each)
    return kept


def _has_all(
    segments: Sequence[_Segment], others: Sequence[_Segment], from_offset: int = 0
) -> bool:
    """Return whether segments have each sound batch of other ones from an offset on, with as many
    records or more. A batch that the cleaner has written again has its offsets and its leader
    epoch."""
    waiting, rest = np.empty((0, len(_COMPARED)), np.int64), _sound_batches(segments)
    for rows in _sound_batches(others, from_offset):
        while not len(waiting) or waiting[-1, _LAST] < rows[-1, _LAST]:
            more = next(rest, None)
            if more is None:
                break
            waiting = np.concatenate((waiting, more))
        places = np.searchsorted(waiting[:, _LAST], rows[:, _LAST])
        if int(places.max()) >= len(waiting):
            return False
        found = waiting[places]
        is_same = (found[:, :_COUNT] == rows[:, :_COUNT]).all(axis=1)
        counts = found[:, _COUNT], rows[:, _COUNT]
        # With a time when deletes are to be removed a batch has another checksum.
        is_equal = (found[:, _CRC] == rows[:, _CRC]) | (rows[:, _BITS] & DELETE_HORIZON_BIT != 0)
        has_records = (counts[0] > counts[1]) | ((counts[0] == counts[1]) & is_equal)
        if not (is_same & has_records & (counts[1] >= 0)).all():
            return False
        waiting = waiting[waiting[:, _LAST] > rows[-1, _LAST]]
    return True


def _sound_batches(segments: Sequence[_Segment], from_offset: int = 0) -> Iterator[LongArray]:
    """Yield the sound batches from an offset on by their headers, a few at a time."""
    for each in segments:
        with opened_segment(each.log) as file:
            for chunk in _headers(each.log, file).chunks():
                rows = chunk.table[chunk.table[:, column.FAULT] == 0]
                is_kept = rows[:, column.LAST_OFFSET] >= from_offset
                if each.is_cut:
                    is_kept &= rows[:, column.LAST_OFFSET] < each.end_offset
                if is_kept.any():
                    yield rows[is_kept][:, _COMPARED]


def _headers(log: SegmentFile, file: InputFile) -> SegmentHeaders:
    return SegmentHeaders(FileWindow(file), SegmentOptions.of(log, check_crcs=False))


def _beside(entries: Sequence[Entry]) -> Iterator[Entry]:
    for entry in entries:
        is_snapshot = snapshot_offset(entry.name) is not None
        if is_snapshot or entry.name in (PARTITION_METADATA, LEADER_EPOCHS):
            yield entry


def _copy(entry: Entry, size: int | None, target: str, copies: _Copies) -> None:
    """Copy a file, or its first bytes: a log with zeros for what cannot be read of it, another only
    as a whole, for a broker would take it as it is."""
    try:
        source = InputFile(entry.path)
    except FileNotFoundError:
        note_deleted(entry.path)
        copies.left_out.append(f"{entry.path}: it was deleted while it was read")
        return
    with source as file:
        output = OutputFile(target)
        try:
            end = file.size if size is None else size
            for position in range(0, end, _COPIED_BYTES):
                output.append(file.read_around(position, min(_COPIED_BYTES, end - position)))
            output.flush(os.fsync)
        finally:
            output.close()
        if file.unreadable and not target.endswith(_LOG):
            os.unlink(target)
            copies.left_out.append(f"{entry.path}: it cannot be read")
            return
        copies.bytes += output.size
        copies.unreadable_bytes += sum(each.length for each in file.unreadable)
