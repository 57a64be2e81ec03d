"""Files of object stores and other remote file systems: listed in few requests, read in ranges."""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from pyarrow import ArrowException, fs

from kafkalog.errors import CorruptDataError, RemoteFileError
from kafkalog.format.faults import Fault
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.file_access import file_access, rate_limit
from kafkalog.storage.files.read_ahead import PartError, PartReads, ReadAhead
from kafkalog.storage.files.regular_files import check_size
from kafkalog.storage.files.remote_systems import file_system
from kafkalog.storage.files.storage_settings import without_secrets
from kafkalog.storage.files.unreadable_input import DELETED
from kafkalog.storage.files.uris import absolute_path

_GLOB = re.compile(r"[*?\[]")
_NOT_FOUND = "is not there"
# In place of a size.
_DIRECTORY = -1
# The answers of a busy store: they say nothing about the file.
_BUSY = re.compile(r"slow_?down|unavailable|throttl|\b(429|503)\b", re.IGNORECASE)


@contextmanager
def _request(uri: str, doing: str) -> Iterator[None]:
    """Errors of the file system as errors of ours, with the URI and without secrets."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, _NOT_FOUND, uri) from None
    except (OSError, ArrowException) as error:
        reason = without_secrets(str(error).partition("\n")[0], file_access().settings())
        # Not chained: what it was made from may have secrets in it.
        raise RemoteFileError(uri, doing, reason) from None


def _opened(uri: str) -> tuple[Any, str]:
    with _request(uri, "connecting"):
        return file_system(uri, file_access().settings())


def entry_at(uri: str) -> Entry | None:
    """Return the file or directory of a URI, None if there is neither."""
    system, path = _opened(uri)
    with _request(uri, "looking for it"):
        info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        return None
    is_directory = info.type == fs.FileType.Directory
    return Entry(posixpath.basename(uri), uri, is_directory, 0 if is_directory else info.size)


def list_directory(uri: str) -> list[Entry]:
    """Return the entries of a directory, sorted by name. Raises FileNotFoundError if it does not
    exist."""
    return entries_of(uri, list_tree(uri, recursive=False)[uri])


def list_tree(uri: str, *, recursive: bool = True) -> dict[str, dict[str, int]]:
    """Return the names in a directory and in each one below it with the sizes of the files, from
    one listing, which takes a request for each thousand objects of a store.

    Raises FileNotFoundError if there is no such directory.
    """
    system, root = _opened(uri)
    with _request(uri, "listing it"):
        infos = system.get_file_info(fs.FileSelector(root, recursive=recursive))
    tree = _Tree(uri, root)
    infos.reverse()
    while infos:  # each goes when it is done: there can be millions
        tree.add(infos.pop())
    return tree.found


def entries_of(directory: str, names: Mapping[str, int]) -> list[Entry]:
    """Return the entries of a directory, sorted by name, from what `list_tree` says of it."""
    return [
        Entry(name, f"{directory}/{name}", True, 0)
        if (size := names[name]) == _DIRECTORY
        else Entry(name, f"{directory}/{name}", False, size)
        for name in sorted(names)
    ]


class _Tree:
    """What a listing has found below a directory, each in the directory that it is in."""

    def __init__(self, uri: str, root: str) -> None:
        self._uri, self._root = uri, root.strip("/")
        self.found: dict[str, dict[str, int]] = {uri: {}}
        self._above, self._names = self._root, self.found[uri]

    def add(self, info: Any) -> None:
        path = info.path.strip("/")
        above, _, name = path.rpartition("/")
        if path == self._root:
            return  # an object that stands for the directory itself
        if above != self._above:
            below = above.removeprefix(self._root).lstrip("/")
            self._above = above
            self._names = self.found[self._directory(below.split("/") if below else [])]
        size = info.size
        # Only what has no size can be a directory: its type takes longer to ask for.
        if size is None and info.type == fs.FileType.Directory:
            self._directory(path.removeprefix(self._root).lstrip("/").split("/"))
        else:
            self._names.setdefault(name, size)

    def _directory(self, below: list[str]) -> str:
        """Return the directory of these names, one in the other; stores do not list all of them."""
        parent = self._uri
        for name in below:
            path = f"{parent}/{name}"
            if path not in self.found:
                self.found[path] = {}
                self.found[parent].setdefault(name, _DIRECTORY)
            parent = path
        return parent


def matching_entries(pattern: str) -> list[Entry]:
    """Return the entry at a URI or, without one, what the URI matches as a glob; sorted."""
    pattern = absolute_path(pattern)
    scheme, _, rest = pattern.partition("://")
    if not _GLOB.search(rest):
        entry = entry_at(pattern)
        return [] if entry is None else [entry]
    parts = rest.split("/")
    first = next(number for number, part in enumerate(parts) if _GLOB.search(part))
    matches = [Entry("", f"{scheme}://" + "/".join(parts[:first]), True, 0)]
    for part in parts[first:]:
        places = [place.path for place in matches if place.is_directory]
        if _GLOB.search(part):
            matches = [entry for place in places for entry in _matching(place, part)]
        else:
            found = (entry_at(f"{place}/{part}") for place in places)
            matches = [entry for entry in found if entry is not None]
    return sorted(matches, key=lambda entry: entry.path)


def _matching(directory: str, pattern: str) -> list[Entry]:
    try:
        entries = list_directory(directory)
    except FileNotFoundError:
        return []
    return [
        entry
        for entry in entries
        if fnmatchcase(entry.name, pattern)
        and (not entry.name.startswith(".") or pattern.startswith("."))
    ]


def read_bytes(uri: str, most_bytes: int) -> bytes:
    """Return a small file. Raises CorruptDataError for a larger one, and for one that cannot be
    read."""
    file = RemoteFile(uri)
    try:
        check_size(uri, file.size, most_bytes)
        data = file.read(0, file.size)
        if file.unreadable:
            detail = file.unreadable.words(0, file.size)
            raise CorruptDataError(Fault.UNREADABLE.label, detail, position=0, path=uri)
        return data
    finally:
        file.close()


def modified_ms(uri: str) -> int:
    """Return when a file was last written, in milliseconds. Raises FileNotFoundError."""
    system, path = _opened(uri)
    with _request(uri, "looking for it"):
        info = system.get_file_info(path)
    if info.type != fs.FileType.File:
        raise FileNotFoundError(errno.ENOENT, _NOT_FOUND, uri)
    return int(info.mtime_ns or 0) // 1_000_000


class RemoteFile:
    """A remote file of the size that it had when it was opened."""

    def __init__(self, uri: str) -> None:
        self.path = uri
        self._system, self._name = _opened(uri)
        self._rate_limit = rate_limit()
        self._requests = 0
        with _request(uri, "opening it"):
            self._file = self._system.open_input_file(self._name)
            self.size = int(self._file.size())
            self._state = self._file.metadata()
        self._parts = PartReads(uri, self.size, self._fetch)
        self._ahead = ReadAhead(self._parts.fetch, self.size)

    @property
    def unreadable(self) -> UnreadableRanges:
        """The ranges that could not be fetched so far: zeros replace them."""
        return self._parts.unreadable

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes from `position`, fewer than `size` only at the end of the file."""
        data = bytearray(max(min(size, self.size - position), 0))
        self.read_into(position, memoryview(data))
        return bytes(data)

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `position`."""
        self._ahead.read_into(position, target)

    def _fetch(self, position: int, size: int) -> bytes:
        pieces: list[bytes] = []
        end = position + size
        self._rate_limit.take(size)
        while position < end:
            piece = self._range(position, end - position)
            pieces.append(piece)
            position += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _range(self, position: int, size: int) -> bytes:
        self._requests += 1
        doing = f"reading {size} bytes from position {position}"
        try:
            with _request(self.path, doing):
                piece: bytes = self._file.read_at(size, position)
        except (RemoteFileError, FileNotFoundError) as error:
            # Stores report a missing object in many ways.
            if entry_at(self.path) is None:
                raise PartError(DELETED) from None
            if isinstance(error, RemoteFileError):
                if _BUSY.search(error.reason):
                    raise
                raise PartError(error.reason) from None
            raise RemoteFileError(self.path, doing, "it was missing for a moment") from None
        if not piece:
            reason = f"it ends there, and had {self.size} bytes when it was opened"
            raise RemoteFileError(self.path, doing, reason)
        return piece

    def check_unchanged(self) -> None:
        """Raise RemoteFileError for a file that was replaced between two requests for its bytes:
        they may be of two files. Objects are replaced whole, even for an append; other files have
        no ETag, and a longer one has grown."""
        if self._requests < 2:
            return
        try:
            with _request(self.path, "checking that it is still the same"):
                now = self._system.open_input_file(self._name)
                state, size = now.metadata(), int(now.size())
                now.close()
        except FileNotFoundError:
            return  # deleted since, and nothing in its place
        if size < self.size or state != self._state:
            raise RemoteFileError(
                self.path, "reading it", "it was replaced by another while it was read"
            )

    def close(self) -> None:
        self._ahead.close()
        self._file.close()
