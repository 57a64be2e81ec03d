"""Bytes of segments as they are copied: by the kernel where both files are on this machine, and
without the records of erased persons. Rules: docs/restore.md F1044 and F1200.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.inspection.erasure.erased_files import batch_at, left_of_batch
from kafkalog.inspection.erasure.file_search import FileSearch, search_file
from kafkalog.inspection.erasure.input_files import InputEntry, Part
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.questions.restore.partitions.partition_plans import Piece
from kafkalog.storage.files.files import InputFile, modified_ms
from kafkalog.storage.files.output_files import OutputFile
from kafkalog.storage.files.tiered_chunks import tiered_manifest_path
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.names import any_base_offset

_PIECE_BYTES = 4 * 1024 * 1024
_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class Suppressed:
    """What was looked for in the bytes that were copied: the records that were left out, values
    that could not be decoded, and bytes of batches that could not be searched."""

    records: int = 0
    undecoded: int = 0
    unsearched: int = 0

    def add(self, other: Suppressed) -> None:
        """Count what was found elsewhere too."""
        self.records += other.records
        self.undecoded += other.undecoded
        self.unsearched += other.unsearched


@dataclass
class PieceCopies:
    """Copies pieces of files into new ones, without suppressed records, and counts these."""

    suppression: Suppression | None = None
    found: Suppressed = field(default_factory=Suppressed)
    _searches: dict[str, FileSearch] = field(default_factory=dict)

    def copy(self, pieces: Sequence[Piece], target: str, end_offset: int | None = None) -> None:
        """Copy bytes of files into a new file, one piece after the other; a file system that can
        share them does. The time of the last change is that of the first file. Where the log ends
        at `end_offset`, it still does without its last record. Raises OSError."""
        written = OutputFile(target)
        try:
            for piece in pieces:
                if self.suppression is not None:
                    self._copy_searched(piece, written, end_offset, self.suppression)
                elif is_stored_as_read(piece.path):
                    written.append_range(piece.path, piece.start, piece.end)
                else:
                    with InputFile(piece.path) as source:
                        _copy_read(source, piece.start, piece.end, written)
        finally:
            written.close()
        if pieces:
            _keep_time(pieces[0].path, target)

    def _copy_searched(
        self, piece: Piece, written: OutputFile, end_offset: int | None, suppression: Suppression
    ) -> None:
        hits = self._hits(piece, suppression)
        with InputFile(piece.path) as source:
            done = piece.start
            for position, offsets in hits.items():
                if not piece.start <= position < piece.end:
                    continue
                _copy_read(source, done, position, written)
                batch = batch_at(source, position)
                written.append(left_of_batch(batch, offsets, end_offset))
                self.found.records += len(offsets)
                done = position + len(batch)
            _copy_read(source, done, piece.end, written)

    def _hits(self, piece: Piece, suppression: Suppression) -> Mapping[int, frozenset[int]]:
        """Return the offsets of the suppressed records by the positions of their batches."""
        search = self._searches.get(piece.path)
        if search is None:
            search = self._searches[piece.path] = _searched(piece.path, suppression)
            self.found.undecoded += search.undecoded
        self.found.unsearched += sum(
            max(min(each.end, piece.end) - max(each.position, piece.start), 0)
            for each in search.unsearched
        )
        return search.hits.by_batch()


def _searched(path: str, suppression: Suppression) -> FileSearch:
    with InputFile(path) as file:
        size = file.size
    entry = InputEntry(
        *(path, os.path.basename(path), path, size, Part.LOG),
        base_offset=any_base_offset(os.path.basename(path)),
        is_tiered=tiered_manifest_path(path) is not None,
    )
    return search_file(entry, suppression.wanted)


def is_stored_as_read(path: str) -> bool:
    """Return whether a file is on this machine, and not in compressed chunks."""
    return not is_remote(path) and tiered_manifest_path(path) is None


def _copy_read(source: InputFile, start: int, end: int, written: OutputFile) -> None:
    while start < end:
        data = source.read(start, min(end - start, _PIECE_BYTES))
        if not data:
            raise OSError(None, "the file became shorter while it was read", source.path)
        written.append(data)
        start += len(data)


def _keep_time(source: str, target: str) -> None:
    if is_remote(source):
        modified_ns = modified_ms(source) * _NS_PER_MS
        os.utime(target, ns=(modified_ns, modified_ns))
        return
    found = os.stat(source)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
