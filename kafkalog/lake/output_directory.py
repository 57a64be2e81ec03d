"""The directory that a table's files are written to: on this machine, or in an object store."""

from __future__ import annotations

import fcntl
import os
import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyarrow import fs

from kafkalog.storage.files.file_access import file_access
from kafkalog.storage.files.output_files import (
    flush_directory,
    flush_file,
    make_directories,
    write_file,
)
from kafkalog.storage.files.remote_systems import file_system
from kafkalog.storage.files.uris import absolute_path, is_remote


class OutputDirectory:
    """A directory to write to; `path` is a local path or a URI. Paths of files are relative to it,
    with `/`.

    Every method raises OSError, with the file's path, where the file system does.
    """

    def __init__(self, path: str) -> None:
        self.path = absolute_path(path)
        self._is_remote = is_remote(self.path)
        if self._is_remote:
            self._system, self._root = file_system(self.path, file_access().settings())
        else:
            self._system, self._root = fs.LocalFileSystem(), self.path

    def __reduce__(self) -> tuple[type[OutputDirectory], tuple[str]]:
        return OutputDirectory, (self.path,)

    def location(self, path: str) -> str:
        """Return a file's whole path or URI."""
        return posixpath.join(self.path, path)

    def create(self, path: str) -> Any:
        """Return a new file to write to, a pyarrow.NativeFile; its directory is created."""
        self._make_folder_of(path)
        return self._system.open_output_stream(self._place(path))

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None without one."""
        try:
            with self._system.open_input_stream(self._place(path)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def open(self, path: str) -> Any:
        """Return a file to read from, a pyarrow.NativeFile."""
        return self._system.open_input_file(self._place(path))

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file in place of one of that name; readers see the one or the other."""
        if self._is_remote:
            with self._system.open_output_stream(self._place(path)) as file:
                file.write(data)
            return
        self._make_folder_of(path)
        write_file(self._place(path), data, os.fsync)

    def flush(self, paths: Iterable[str]) -> None:
        """Force files and their names to disk; an object store has them when they are complete."""
        if self._is_remote:
            return
        folders = set()
        for place in map(self._place, paths):
            with open(place, "rb") as file:
                flush_file(file.fileno(), place, os.fsync)
            folders.add(posixpath.dirname(place))
        for folder in sorted(folders):
            flush_directory(folder, os.fsync)

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Wait until no other process has this file locked, and hold it. An object store has no
        locks."""
        if self._is_remote:
            yield
            return
        self._make_folder_of(path)
        descriptor = os.open(self._place(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def move(self, path: str, target: str) -> None:
        """Give a file another name; an object store copies it."""
        self._make_folder_of(target)
        self._system.move(self._place(path), self._place(target))

    def delete(self, path: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self._system.delete_file(self._place(path))

    def delete_folder(self, path: str) -> None:
        """Remove a folder with all that is in it."""
        self._system.delete_dir(self._place(path))

    def exists(self, path: str) -> bool:
        """Return whether there is a file."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return a file's size in bytes, None without one."""
        (found,) = self._system.get_file_info([self._place(path)])
        return int(found.size) if found.type == fs.FileType.File else None

    def files(self, folder: str = "") -> list[fs.FileInfo]:
        """Return what pyarrow knows of all files below a folder; none without it."""
        selector = fs.FileSelector(self._place(folder), allow_not_found=True, recursive=True)
        return [
            each for each in self._system.get_file_info(selector) if each.type == fs.FileType.File
        ]

    def names(self, folder: str = "") -> list[str]:
        """Return the names of files and folders in a folder; none without it, and of a file."""
        selector = fs.FileSelector(self._place(folder), allow_not_found=True)
        try:
            return [each.base_name for each in self._system.get_file_info(selector)]
        except NotADirectoryError:
            return []

    def relative(self, found: fs.FileInfo) -> str:
        """Return the path of one of `files` as the other methods take it."""
        return posixpath.relpath(found.path, self._root)

    def _make_folder_of(self, path: str) -> None:
        if not self._is_remote:
            make_directories(posixpath.dirname(self._place(path)), os.fsync)

    def _place(self, path: str) -> str:
        return posixpath.join(self._root, path) if path else self._root
