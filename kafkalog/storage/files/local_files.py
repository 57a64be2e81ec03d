"""Files that the operating system opens."""

from __future__ import annotations

import errno
import glob
import mmap
import os
import resource
from collections.abc import Iterator
from contextlib import suppress

from kafkalog.errors import CorruptDataError, FileCutError, LogDirError
from kafkalog.format.faults import Fault
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.file_access import file_access, rate_limit
from kafkalog.storage.files.read_around import ReadAround, unreadable_reason
from kafkalog.storage.files.regular_files import (
    DIRECTORY,
    check_size,
    kind_of,
    link_kind,
    note_left_out,
    open_regular,
)
from kafkalog.storage.files.unreadable_input import note_unlisted, note_unreadable
from kafkalog.storage.files.uris import absolute_path

# The unit in which the page cache is probed before a read.
_PROBED_BYTES = 128 * 1024


def list_directory(path: str) -> list[Entry]:
    """Return the directories and regular files in a directory, sorted by name, without files that
    vanish meanwhile and without special files, which stderr names."""
    entries = []
    for entry in _entries(path):
        if entry.special is None:
            entries.append(entry)
        else:
            note_left_out(entry.path, entry.special)
    return sorted(entries, key=lambda entry: entry.name)


def special_entries(path: str) -> list[Entry]:
    """Return the special files of a directory, sorted by name: pipes, devices, links that lead
    nowhere."""
    return sorted(
        (entry for entry in _entries(path) if entry.special), key=lambda entry: entry.name
    )


def _entries(path: str) -> Iterator[Entry]:
    with os.scandir(path) as found:
        for each in found:
            entry = _entry(each)
            if entry is not None:
                yield entry


def _entry(found: os.DirEntry[str]) -> Entry | None:
    """Return the entry of a listing, None if it has vanished."""
    special: str | None
    try:
        if found.is_dir():
            return Entry(found.name, found.path, True, 0)
        status = found.stat()
        special, size = kind_of(status.st_mode), status.st_size
    except OSError as error:
        # A link can lead nowhere or in a circle; what it leads to can be unreadable.
        is_circle = error.errno == errno.ELOOP
        if not found.is_symlink() or (unreadable_reason(error) and not is_circle):
            return _unreadable_entry(found, error)
        special, size = link_kind(error), 0
    return Entry(found.name, found.path, False, size, special)


def _unreadable_entry(found: os.DirEntry[str], error: OSError) -> Entry | None:
    if isinstance(error, FileNotFoundError):
        return None
    reason = unreadable_reason(error)
    if reason is None:
        raise error
    note_unlisted(found.path, reason)
    return Entry(found.name, found.path, False, 0, f"unreadable ({reason})")


def matching_entries(pattern: str) -> list[Entry]:
    """Return the path itself if it exists, else what it matches as a glob; absolute, sorted. Raises
    LogDirError for a path that is neither a regular file nor a directory."""
    pattern = absolute_path(pattern)
    if os.path.exists(pattern):
        found = _entry_at(pattern)
        if found.special:
            what = f"{pattern} is {found.special}"
            raise LogDirError(f"{what}: only regular files and directories are read")
        return [found]
    paths = (path for path in sorted(glob.glob(pattern)) if os.path.exists(path))
    return [entry for entry in map(_entry_at, paths) if not entry.special]


def _entry_at(path: str) -> Entry:
    status = os.stat(path)
    kind, name = kind_of(status.st_mode), os.path.basename(path)
    if kind == DIRECTORY:
        return Entry(name, path, True, 0)
    return Entry(name, path, False, status.st_size, kind)


def read_bytes(path: str, most_bytes: int) -> bytes:
    """Return a small file. Raises CorruptDataError for a larger one, and for one that cannot be
    read."""
    try:
        with open(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            check_size(path, size, most_bytes)
            return file.read(size)
    except IsADirectoryError as error:
        detail = "a directory is in the place of the file"
        raise CorruptDataError(Fault.UNREADABLE.label, detail, position=0, path=path) from error
    except OSError as error:
        reason = unreadable_reason(error)
        if reason is None:
            raise
    note_unreadable(path, 0, _size(path), reason)
    detail = f"cannot be read: {reason}"
    raise CorruptDataError(Fault.UNREADABLE.label, detail, position=0, path=path)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def modified_ms(path: str) -> int:
    """Return when a file was last written, in milliseconds."""
    return os.stat(path).st_mtime_ns // 1_000_000


class LocalFile:
    """A file of a size fixed when it was opened: an active segment may grow meanwhile."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor, self.size, reason = _opened(path)
        self._around = ReadAround(path, self.size)
        if reason is not None:
            self._around.give_up(0, self.size, reason)
        self._rate_limit = rate_limit()
        access = file_access()
        keeps_cache = access.drop_page_cache and reason is None
        self._cached = _CacheKeeper(self._descriptor) if keeps_cache else None
        # Whether bytes can be read directly: nothing is unreadable so far.
        self._is_plain = (
            self._cached is None and access.max_bytes_per_second is None and reason is None
        )

    @property
    def unreadable(self) -> UnreadableRanges:
        """The ranges that could not be read so far: zeros replace them."""
        return self._around.unreadable

    @property
    def identity(self) -> tuple[int, ...] | None:
        """Device, inode, size and times of the last changes; None where these differ by now."""
        if self._descriptor < 0:
            return None
        found = os.fstat(self._descriptor)
        if found.st_size != self.size:
            return None
        return found.st_dev, found.st_ino, self.size, found.st_mtime_ns, found.st_ctime_ns

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes from `position`, fewer than `size` only at the end of the file."""
        # Headers are walked by as many reads as there are batches.
        if self._is_plain and position + size <= self.size:
            try:
                data = os.pread(self._descriptor, size, position)
            except OSError:
                data = b""
            if len(data) == size:
                return data
        filled = bytearray(max(min(size, self.size - position), 0))
        self.read_into(position, memoryview(filled))
        return bytes(filled)

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `position`."""
        self._rate_limit.take(len(target))
        self._around.read_into(position, target, self._fill)
        self._is_plain = self._is_plain and not self.unreadable

    def _fill(self, position: int, target: memoryview) -> None:
        read = os.preadv if self._cached is None else self._cached.preadv
        filled = 0
        while filled < len(target):
            count = read(self._descriptor, [target[filled:]], position + filled)
            if count == 0:
                raise FileCutError(
                    f"{self.path} ends at {position + filled} now, it had {self.size} bytes when "
                    "it was opened: it was truncated while being read; read it again"
                )
            filled += count

    def check_unchanged(self) -> None:
        """What is read was there before: brokers only append, and a truncation is detected."""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def _opened(path: str) -> tuple[int, int, str | None]:
    """Return a descriptor and the file's size; for a file that exists and cannot be opened, the
    reason."""
    try:
        descriptor = open_regular(path)
    except OSError as error:
        reason = unreadable_reason(error)
        if reason is None:
            raise
        with suppress(OSError):
            return -1, os.stat(path).st_size, reason
        raise
    return descriptor, os.fstat(descriptor).st_size, None


class _CacheKeeper:
    """Reads a file and leaves the page cache as it was: drops what was not in it.

    Cached pages of a broker or its consumers stay, except those between uncached ones of a probed
    piece; pages that they request between our read and the drop are read from disk again. A read
    that does not wait shows what is cached; mincore works for the owner only.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # Pages that the kernel has begun to read because of the probe.
        self._ours: set[int] = set()
        # Pages from the kernel's read-ahead would look as if they had been there before.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def preadv(self, descriptor: int, targets: list[memoryview], position: int) -> int:
        """As os.preadv, of the first target's first bytes."""
        target = targets[0][:_PROBED_BYTES]
        if self._is_cached(position):
            count = self._read_cached(target, position)
            if count:
                return count
        size = len(target)
        while size > 1 and self._is_cached(position + size - 1):
            size //= 2
        count = os.preadv(descriptor, [target[:size]], position)
        pages = _pages(position, count)
        start, end = pages.start * mmap.PAGESIZE, pages.stop * mmap.PAGESIZE
        os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)
        self._ours.difference_update(pages)
        return count

    def _is_cached(self, position: int) -> bool:
        page = position // mmap.PAGESIZE
        if page not in self._ours and not self._without_waiting(memoryview(_probe), position):
            self._ours.add(page)
        return page not in self._ours

    def _read_cached(self, target: memoryview, position: int) -> int:
        count = self._without_waiting(target, position)
        if count < len(target):
            self._ours.update(_pages(position + count, len(target) - count))
        return count

    def _without_waiting(self, target: memoryview, position: int) -> int:
        """Return how many of the bytes came from the page cache; 0 also if the file system does not
        support the probe.

        The kernel begins to read missing pages, and if a disk answers at once (in virtual machines)
        they are there a moment later: the pages that this thread made disks read are subtracted at
        the end.
        """
        before = _pages_from_disks()
        try:
            count = os.preadv(self._descriptor, [target], position, os.RWF_NOWAIT)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EOPNOTSUPP):
                raise
            return 0
        ours = _pages_from_disks() - before
        if not ours:
            return count
        cached_end = (_pages(position, len(target)).stop - ours) * mmap.PAGESIZE
        return min(count, max(cached_end - position, 0))


def _pages_from_disks() -> int:
    """Return how many pages this thread has made disks read (getrusage(2), in blocks of 512
    bytes)."""
    return -(-resource.getrusage(resource.RUSAGE_THREAD).ru_inblock * 512 // mmap.PAGESIZE)


_probe = bytearray(1)


def _pages(position: int, size: int) -> range:
    """Return the numbers of the pages that hold some of the bytes."""
    return range(position // mmap.PAGESIZE, -(-(position + size) // mmap.PAGESIZE))
