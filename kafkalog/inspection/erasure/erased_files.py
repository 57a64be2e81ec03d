"""New files without a person's records: the batches concerned are written again, all other bytes
are copied. Rules: docs/erasure.md F1100 to F1104 and F1113 to F1115.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.appended_indexes import AppendedIndexes
from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.erased_batch import offset_holder, without_records
from kafkalog.errors import LogDirError, UnsupportedFormatError
from kafkalog.format.batch_header import LOG_OVERHEAD, V2_HEADER_BYTES, read_header
from kafkalog.inspection.erasure.file_search import FileSearch
from kafkalog.inspection.erasure.input_files import InputEntry
from kafkalog.storage.files.files import InputFile, read_text
from kafkalog.storage.files.output_files import OutputFile, write_file
from kafkalog.storage.files.tiered_chunks import tiered_manifest_path
from kafkalog.storage.files.uris import is_remote
from kafkalog.words import counted

DELETE_OBJECTS = (
    "objects with a manifest of Aiven's plug-in are not written again: give the log directories "
    "without them, and delete the objects through the broker"
)
# So much stays in a processor's cache between reading, its checksum and writing.
_PIECE_BYTES = 256 * 1024
# Those that say where batches are; .txnindex has offsets only, which stay.
INDEXES = (".index", ".timeindex")


class Rewritten(NamedTuple):
    """A batch that was written again: where it was, where it is now, empty if nothing is left."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of the new directory. The checksums are SHA-256, of the input and of what was
    written, None where they were not wanted; `rewritten` are the batches that were written
    again."""

    entry: InputEntry
    path: str
    size: int
    before: str | None
    after: str | None
    rewritten: tuple[Rewritten, ...] = ()

    @property
    def batches(self) -> int:
        """How many batches were written again."""
        return len(self.rewritten)

    def copied(self) -> Iterator[tuple[int, int, int]]:
        """Yield the ranges that were copied: start and end in the input, start in this file."""
        old = new = 0
        for each in self.rewritten:
            yield old, each.old_start, new
            old, new = each.old_end, each.new_end
        yield old, old + self.size - new, new


class _Copy:
    """Writes a new file from pieces of another, and computes the checksums of both if wanted."""

    def __init__(
        self, source: InputFile, target: OutputFile, *, hashes: bool, in_pieces: bool = True
    ) -> None:
        self._source, self._target = source, target
        self._piece = memoryview(bytearray(_PIECE_BYTES))
        self._before = hashlib.sha256() if hashes else None
        # Until a batch is written again both files are the same, and so are their checksums.
        self._after: Any = None
        is_as_stored = not is_remote(source.path) and tiered_manifest_path(source.path) is None
        # A whole file may share its blocks. Parts of one are copied faster in pieces.
        self._by_kernel = is_as_stored and not hashes and not in_pieces
        self.rewritten: list[Rewritten] = []

    def copy(self, start: int, end: int) -> None:
        """Write these bytes of the source, the next ones. Raises LogDirError where it has become
        shorter."""
        if self._by_kernel and not self._source.unreadable and end > start:
            self._copy_within_kernel(start, end)
            return
        for position in range(start, end, _PIECE_BYTES):
            # Bytes that a disk does not give back become zeros: the search has named them.
            data = self._piece[: min(_PIECE_BYTES, end - position)]
            self._source.read_into(position, data)
            self._add(data, data)
            self._target.append(data)

    def _copy_within_kernel(self, start: int, end: int) -> None:
        size = self._target.size
        try:
            self._target.append_range(self._source.path, start, end)
        except OSError:
            # A disk that does not give everything back: the other way does what it can.
            self._by_kernel = False
            self.copy(start + self._target.size - size, end)

    def replace(self, position: int, old: bytes, new: bytes) -> None:
        """Write other bytes in place of the next ones of the source, at this position."""
        self._add(old, new)
        start = self._target.size
        self._target.append(new)
        self.rewritten.append(Rewritten(position, position + len(old), start, self._target.size))

    def _add(self, old: bytes | memoryview, new: bytes | memoryview) -> None:
        if self._before is None:
            return
        if self._after is None and old is not new:
            self._after = self._before.copy()
        self._before.update(old)
        if self._after is not None:
            self._after.update(new)

    @property
    def checksums(self) -> tuple[str | None, str | None]:
        if self._before is None:
            return None, None
        before = self._before.hexdigest()
        return before, before if self._after is None else self._after.hexdigest()


def copied_file(entry: InputEntry, path: str, *, hashes: bool) -> WrittenFile:
    """Copy a file, with its times. Raises LogDirError for one that has another size by now."""
    with InputFile(entry.path, as_stored=True) as source:
        refuse_changed(entry, source)
        target = OutputFile(path)
        try:
            copy = _Copy(source, target, hashes=hashes, in_pieces=False)
            copy.copy(0, source.size)
            target.flush(os.fsync)
        finally:
            target.close()
    _keep_times(entry, path)
    return WrittenFile(entry, path, entry.size, *copy.checksums)


def erased_file(search: FileSearch, path: str, *, hashes: bool) -> WrittenFile:
    """Write a log file without the records that were found in it; it is not forced to disk yet.
    Raises LogDirError for one that has another size by now."""
    entry = search.entry
    by_batch = search.hits.by_batch()
    with InputFile(entry.path) as source:
        refuse_changed(entry, source)
        target = OutputFile(path)
        try:
            copy = _Copy(source, target, hashes=hashes)
            _write_erased(copy, source, by_batch, search.end_offset)
            size = target.size
        finally:
            target.close()
    _keep_times(entry, path)
    return WrittenFile(entry, path, size, *copy.checksums, tuple(copy.rewritten))


def _write_erased(
    copy: _Copy, source: InputFile, by_batch: Mapping[int, frozenset[int]], end_offset: int | None
) -> None:
    done = 0
    for position, offsets in by_batch.items():
        copy.copy(done, position)
        batch = batch_at(source, position)
        copy.replace(position, batch, left_of_batch(batch, offsets, end_offset))
        done = position + len(batch)
    copy.copy(done, source.size)


def left_of_batch(batch: bytes, offsets: frozenset[int], end_offset: int | None) -> bytes:
    """Return a batch without records, and with what keeps the end of the log where it was."""
    left = without_records(batch, offsets)
    last = None if end_offset is None else end_offset - 1
    if read_header(batch, 0).magic < 2 and last in offsets:
        return left + offset_holder(end_offset - 1 if end_offset else 0)
    return left


def batch_at(source: InputFile, position: int) -> bytes:
    """Return the batch at a position of a file."""
    head = source.read(position, V2_HEADER_BYTES)
    size = LOG_OVERHEAD + int.from_bytes(head[8:LOG_OVERHEAD], "big")
    return source.read(position, size)


def unwritable_objects(searches: Iterable[FileSearch]) -> Iterator[str]:
    """Yield what to say of each object with records to erase that has a manifest beside it: such an
    object is made of chunks, which are not written again. Rule: F1332."""
    for each in searches:
        manifest, found = tiered_manifest_path(each.entry.path), int(each.hits.erased.sum())
        if manifest and found and read_text(manifest) is not None:
            yield f"{each.entry.path} has {counted(found, 'record')} to erase"


def refuse_unwritable_objects(searches: Iterable[FileSearch]) -> None:
    """Raise UnsupportedFormatError that names each of them."""
    objects = [*unwritable_objects(searches)]
    if objects:
        raise UnsupportedFormatError(f"{'; '.join(objects)}: {DELETE_OBJECTS}")


def refuse_changed(entry: InputEntry, source: InputFile) -> None:
    """Raise LogDirError for a file that has another size than when it was listed."""
    if source.size != entry.size:
        raise LogDirError(
            f"{entry.path} had {entry.size} bytes and has {source.size}: somebody writes to it; "
            "stop the broker, or give a copy of its directory"
        )


def _keep_times(entry: InputEntry, path: str) -> None:
    """Give a file the times of another: retention goes by them where records have none."""
    if not is_remote(entry.path):
        status = os.stat(entry.path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def erased_indexes(
    log: WrittenFile, indexes: Mapping[str, InputEntry], *, hashes: bool
) -> Iterator[WrittenFile]:
    """Write the offset and the time index of a new log file, as far as the old one has them;
    `indexes` are the files beside logs by their paths."""
    written = _indexes(log.path, log.entry.base_offset or 0)
    for kind, data in zip(INDEXES, written, strict=True):
        entry = indexes.get(index_path(log.entry.path, kind))
        if entry is None:
            continue
        path = index_path(log.path, kind)
        write_file(path, data, os.fsync)
        _keep_times(entry, path)
        after = hashlib.sha256(data).hexdigest() if hashes else None
        before = hashlib.sha256(_whole(entry)).hexdigest() if hashes else None
        yield WrittenFile(entry, path, len(data), before, after)


def _whole(entry: InputEntry) -> bytes:
    with InputFile(entry.path, as_stored=True) as file:
        return file.read(0, file.size)


def index_path(log_path: str, kind: str) -> str:
    """Return the path of an index of a log file that may be marked."""
    stem, _, mark = log_path.rpartition(".log")
    return f"{stem}{kind}{mark}"


def _indexes(path: str, base_offset: int) -> tuple[bytes, bytes]:
    """Return offset and time index of a log file, with entries as a broker adds them."""
    indexes = AppendedIndexes(base_offset)
    options = SegmentOptions(base_offset, check_crcs=False)
    with InputFile(path) as file:
        # The file was written a moment ago: reading it is cheaper than jumping from one header to
        # the next.
        for chunk in SegmentBatches(FileWindow(file), options).chunks():
            sound = chunk.table[chunk.table[:, column.FAULT] == 0]
            indexes.add(sound, sound[:, column.POSITION])
    return indexes.index, indexes.timeindex
