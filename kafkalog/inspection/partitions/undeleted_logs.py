"""A partition that a broker has taken out of use, copied under its own name.

Rules: docs/format.md F92, F94 and F197.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.table_rows import TableRow
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

_LOG = ".log"
_COPIED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Segment:
    """The files of a segment by their kinds, and its offsets [base_offset, end_offset)."""

    base_offset: int
    end_offset: int
    files: Mapping[str, Entry]

    @property
    def log(self) -> Entry:
        return self.files[_LOG]


@dataclass(slots=True)
class _Copies:
    """What was copied, and what was not."""

    bytes: int = 0
    unreadable_bytes: int = 0
    left_out: list[str] = field(default_factory=list)


def undeleted_log(log: DeletedLog, scratch: str, topic_id: str | None) -> TableRow:
    """Copy a partition into a directory of its own name in `scratch`: the segments it has, and the
    deleted ones whose offsets are in none of them. A `topic_id` takes the place of its own."""
    directory = os.path.join(scratch, log.name)
    os.mkdir(directory)
    entries = [entry for entry in entries_left(log.path) if not entry.is_directory]
    copies = _Copies()
    kept = sorted(_segments(entries, ""), key=lambda each: each.base_offset)
    live = len(kept)
    for deleted in sorted(_segments(entries, DELETED), key=lambda each: each.base_offset):
        reason = _why_left_out(deleted, kept)
        if reason is None:
            kept.append(deleted)
        else:
            copies.left_out.append(f"{deleted.log.path}: {reason}")
    for entry in (*(file for each in kept for file in each.files.values()), *_beside(entries)):
        _copy(entry, os.path.join(directory, entry.name.removesuffix(DELETED)), copies)
    write_partition_metadata(directory, topic_id)
    flush_directory(directory, os.fsync)
    return {
        "topic": log.topic,
        "partition": log.partition,
        "topic_id": topic_id or log.topic_id,
        "source": log.path,
        "segments": len(kept),
        "deleted_segments": len(kept) - live,
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
            yield _Segment(base_offset, _end_offset(files[_LOG], base_offset), files)


def _end_offset(log: Entry, base_offset: int) -> int:
    options = SegmentOptions(base_offset, check_crcs=False)
    segment = SegmentFile(log.path, base_offset, None, log.size, log.path)
    with opened_segment(segment) as file:
        end_offset = SegmentHeaders(FileWindow(file), options).walk()
    return max(end_offset, base_offset)


def _why_left_out(deleted: _Segment, kept: Sequence[_Segment]) -> str | None:
    first, end = deleted.base_offset, deleted.end_offset
    if first == end:
        return "no batch in it can be read" if deleted.log.size else "it is empty"
    for each in kept:
        if first == each.base_offset or (first < each.end_offset and each.base_offset < end):
            return f"its offsets {first} to {end - 1} are in {each.log.name}"
    return None


def _beside(entries: Sequence[Entry]) -> Iterator[Entry]:
    for entry in entries:
        is_snapshot = snapshot_offset(entry.name) is not None
        if is_snapshot or entry.name in (PARTITION_METADATA, LEADER_EPOCHS):
            yield entry


def _copy(entry: Entry, target: str, copies: _Copies) -> None:
    """Copy a file: a log with zeros for what cannot be read of it, another only as a whole, for a
    broker would take it as it is."""
    try:
        source = InputFile(entry.path)
    except FileNotFoundError:
        note_deleted(entry.path)
        copies.left_out.append(f"{entry.path}: it was deleted while it was read")
        return
    with source as file:
        output = OutputFile(target)
        try:
            for position in range(0, file.size, _COPIED_BYTES):
                output.append(file.read_around(position, _COPIED_BYTES))
            output.flush(os.fsync)
        finally:
            output.close()
        if file.unreadable and not target.endswith(_LOG):
            os.unlink(target)
            copies.left_out.append(f"{entry.path}: it cannot be read")
            return
        copies.bytes += output.size
        copies.unreadable_bytes += sum(each.length for each in file.unreadable)
