"""The one place that lists directories and opens files, always for reading: local ones, and remote
ones by their URIs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import StringIO
from types import TracebackType
from typing import Protocol

from kafkalog.arguments import known_arguments
from kafkalog.errors import CorruptDataError, OutOfMemoryError, UnsupportedFormatError
from kafkalog.format.faults import Fault
from kafkalog.format.side_files.tiered_manifest import read_tiered_manifest
from kafkalog.format.unreadable import UnreadableRange, UnreadableRanges
from kafkalog.storage.files import local_files
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.read_around import unreadable_reason
from kafkalog.storage.files.read_counts import read_counts
from kafkalog.storage.files.tiered_chunks import ChunkedFile, StoredFile, tiered_manifest_path
from kafkalog.storage.files.unreadable_input import DELETED, note_deleted, note_unlisted
from kafkalog.storage.files.uris import absolute_path, is_remote

# Of files that are read as a whole. An index has 10 MiB, unless segment.index.bytes is raised.
_MOST_READ_BYTES = 64 * 1024 * 1024


def list_directory(path: str) -> list[Entry]:
    """Return the entries of a directory, sorted by name, without files that vanish meanwhile and
    without what is neither a regular file nor a directory.

    Raises FileNotFoundError if there is no such directory.
    """
    if is_remote(path):
        from kafkalog.storage.files import remote_files

        return remote_files.list_directory(path)
    return local_files.list_directory(path)


def readable_entries(
    path: str, listing: Callable[[str], list[Entry]] = list_directory
) -> list[Entry]:
    """Return the entries of a directory as `listing` does; of one that cannot be read none, and
    remember that it could not. Raises FileNotFoundError if there is no such directory."""
    try:
        return listing(path)
    except OSError as error:
        reason = unreadable_reason(error)
        if reason is None:
            raise
        note_unlisted(path, reason)
        return []


def entries_left(path: str, listing: Callable[[str], list[Entry]] = list_directory) -> list[Entry]:
    """Return the entries of a directory that another listing has named; none, and remember it,
    where the directory was deleted or renamed since. Rule: docs/format.md F951."""
    try:
        return listing(path)
    except FileNotFoundError:
        note_deleted(path)
        return []


def special_entries(path: str) -> list[Entry]:
    """Return the entries of a directory that are neither regular files nor directories; remote
    directories and those that were deleted since another listing have none."""
    return [] if is_remote(path) else entries_left(path, local_files.special_entries)


def matching_entries(pattern: str) -> list[Entry]:
    """Return the entry at a path or, without one, what the path matches as a glob; absolute,
    sorted."""
    if is_remote(pattern):
        from kafkalog.storage.files import remote_files

        return remote_files.matching_entries(pattern)
    return local_files.matching_entries(pattern)


def matching_paths(pattern: str) -> list[str]:
    """Return the paths of these entries."""
    return [entry.path for entry in matching_entries(pattern)]


def is_directory(path: str) -> bool:
    """Return whether there is a directory at a path."""
    if is_remote(path):
        from kafkalog.storage.files import remote_files

        entry = remote_files.entry_at(path)
        return entry is not None and entry.is_directory
    return os.path.isdir(path)


def read_text(path: str) -> str | None:
    """Return a small text file, None if there is none. Bytes that are not UTF-8 are replaced.
    Raises the errors of `read_bytes`."""
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        return None
    # Lines end as on any system.
    return StringIO(data.decode("utf-8", errors="replace"), newline=None).read()


def read_bytes(path: str) -> bytes:
    """Return a file beside logs. Raises FileNotFoundError, OutOfMemoryError, and CorruptDataError
    for one of more than 64 MiB, or that cannot be read."""
    try:
        if is_remote(path):
            from kafkalog.storage.files import remote_files

            return remote_files.read_bytes(path, _MOST_READ_BYTES)
        return local_files.read_bytes(path, _MOST_READ_BYTES)
    except MemoryError as error:
        raise OutOfMemoryError(path) from error


def modified_ms(path: str) -> int:
    """Return when a file was last written, in milliseconds."""
    if is_remote(path):
        from kafkalog.storage.files import remote_files

        return remote_files.modified_ms(path)
    return local_files.modified_ms(path)


class Directories:
    """Directories: local ones are read on request; remote ones are listed once with everything
    below them, and answer from that."""

    def __init__(self) -> None:
        self._listed: dict[str, dict[str, int]] = {}

    def entries(self, path: str) -> list[Entry]:
        """Return the entries of a directory, sorted by name. Raises FileNotFoundError if it does
        not exist."""
        if not is_remote(path):
            return list_directory(path)
        from kafkalog.storage.files import remote_files

        if path not in self._listed:
            self._listed |= remote_files.list_tree(path)
        return remote_files.entries_of(path, self._listed[path])

    def read_text(self, directory: str, name: str) -> str | None:
        """Return a small text file in a directory, None if there is none."""
        return read_text(os.path.join(directory, name)) if self.has(directory, name) else None

    def has(self, directory: str, name: str) -> bool:
        """Return whether a directory has a file; also True if only opening it would show."""
        listed = self._listed.get(directory)
        return listed is None or name in listed


class _File(StoredFile, Protocol):
    def read_into(self, position: int, target: memoryview) -> None: ...


def _stored_file(path: str) -> _File:
    if is_remote(path):
        from kafkalog.storage.files.remote_files import RemoteFile

        return RemoteFile(absolute_path(path))
    return local_files.LocalFile(path)


def _tiered_file(path: str, manifest_path: str) -> _File:
    text = read_text(manifest_path)
    file = _stored_file(path)
    try:
        manifest = None if text is None else read_tiered_manifest(text)
        if manifest is not None and manifest.is_encrypted:
            raise UnsupportedFormatError(
                f"{path} is encrypted, which is not supported: leave its topic out, or read it "
                "from a broker"
            )
        is_plain = manifest is None or not manifest.is_compressed
        return file if manifest is None or is_plain else ChunkedFile(file, manifest)
    except CorruptDataError as error:
        file.close()
        raise error.located(error.path or manifest_path, error.position, None) from error
    except UnsupportedFormatError:
        file.close()
        raise


def has_connections() -> bool:
    """Return whether this process has opened remote file systems. Forks must not use them: both
    would read from the same connections, and get each other's answers."""
    # Looked up, not imported: reading a local disk must not import pyarrow.fs.
    systems = sys.modules.get("kafkalog.storage.files.remote_systems")
    return systems is not None and systems.is_connected()


@known_arguments
class InputFile:
    """A file of a size fixed when it was opened, and a place in it for every read.

    As a context manager it raises OutOfMemoryError with its path for a MemoryError within. With
    `as_stored` a tiered segment is what the storage has, and not the log that it becomes.
    """

    def __init__(self, path: str, *, as_stored: bool = False) -> None:
        self.path = path
        manifest = None if as_stored else tiered_manifest_path(path)
        self._file = _stored_file(path) if manifest is None else _tiered_file(path, manifest)
        self.size = self._file.size
        read_counts.files += 1

    @property
    def unreadable(self) -> UnreadableRanges:
        """The requested bytes that could not be read so far."""
        return self._file.unreadable

    @property
    def identity(self) -> tuple[int, ...] | None:
        """What tells a local file, as it was when it was opened, from all others and from what it
        was before; None of other files."""
        return self._file.identity if isinstance(self._file, local_files.LocalFile) else None

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes from `position`, fewer than `size` only at the end of the file.

        Raises CorruptDataError if some of them cannot be read.
        """
        data = self.read_around(position, size)
        end = position + len(data)
        if self.unreadable.overlap(position, end):
            detail = self.unreadable.words(position, end)
            raise CorruptDataError(
                Fault.UNREADABLE.label, detail, position=position, path=self.path
            )
        return data

    def read_around(self, position: int, size: int) -> bytes:
        """Return these bytes, with zeros in place of the `unreadable` ones."""
        data = self._file.read(position, size)
        read_counts.bytes_read += len(data)
        return data

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `position`, with zeros for those that are
        `unreadable`."""
        self._file.read_into(position, target)
        read_counts.bytes_read += len(target)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._file.check_unchanged()
            elif issubclass(kind, MemoryError):
                raise OutOfMemoryError(self.path) from error
        finally:
            self.close()


class DeletedFile(InputFile):
    """A file that was deleted before it was opened: it has `size` bytes, and none can be read."""

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size
        self._file = _NoBytes(path, size)


class _NoBytes:
    """The bytes of a deleted file: zeros, all unreadable."""

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size
        self.unreadable = UnreadableRanges([UnreadableRange(0, size, DELETED)] if size else [])

    def read(self, position: int, size: int) -> bytes:
        return bytes(max(min(size, self.size - position), 0))

    def read_into(self, position: int, target: memoryview) -> None:
        target[:] = bytes(len(target))

    def check_unchanged(self) -> None:
        """Nothing was read."""

    def close(self) -> None:
        """Nothing is open."""
