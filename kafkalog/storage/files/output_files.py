"""Writing files and directories: each is written beside its place, under a name that cannot be
guessed, and takes its name when it is whole."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO

from kafkalog.errors import LogDirError, OptionError
from kafkalog.exit_codes import stopped_by_exceptions
from kafkalog.storage.files import unfinished

# Files that only brokers write: nothing of ours is written beside them.
_BROKER_FILES = (".lock", "meta.properties")

# Forces what was written through a descriptor to disk.
Flush = Callable[[int], None]

# File systems that keep the names in directories by themselves answer with these.
_NOTHING_TO_FLUSH = (errno.EBADF, errno.EINVAL, errno.ENOTSUP)

# Not between these file systems, or not on this system.
_NOT_IN_KERNEL = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
_IN_KERNEL_BYTES = 64 * 1024 * 1024

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Files that are already open: by their own names, never by the target of a link.
_OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


def refuse_unwritable(option: str, directory: str) -> None:
    """Raise OptionError for a local path that is not a directory, cannot be created, or may not be
    written to. Call it before the work that needs the directory."""
    found = os.path.abspath(directory)
    while not os.path.lexists(found):
        found = os.path.dirname(found)
    if not os.path.isdir(found):
        raise OptionError(option, directory, f"a directory, or a path for one: {found} is a file")
    if not os.access(found, os.W_OK | os.X_OK):
        raise OptionError(option, directory, f"a directory that you may write to, unlike {found}")


def refuse_unwritable_file(option: str, path: str, made: str | None = None) -> None:
    """Raise OptionError if no file can be written to a path. Call it before the work, which first
    creates the directory `made`."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    is_made = made is not None and os.path.commonpath((os.path.realpath(made), folder)) == folder
    if not is_made and not os.path.isdir(folder):
        allowed = f"a file in a directory that is there, which {folder} is not"
        raise OptionError(option, path, allowed)
    if os.path.isdir(target):
        raise OptionError(option, path, "a file: this is a directory")
    refuse_unwritable(option, folder)
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise OptionError(option, path, "a file that may be written: this one is read-only")


def refuse_existing_directory(option: str, path: str) -> None:
    """Raise LogDirError for an output directory that exists, and OptionError if it cannot be
    created. Call it before the work."""
    if os.path.lexists(path):
        raise existing_target(path)
    refuse_unwritable(option, os.path.dirname(os.path.abspath(path)))


def new_directory(path: str) -> None:
    """Create a new directory and its parents.

    Raises LogDirError if it exists, or would be in or below a broker's log directory.
    """
    refuse_log_directory(path)
    make_directories(os.path.dirname(os.path.abspath(path)), os.fsync)
    try:
        os.mkdir(path)
    except FileExistsError:
        raise existing_target(path) from None


def refuse_log_directory(path: str) -> None:
    """Raise LogDirError for a path in or below a broker's log directory."""
    parent = os.path.dirname(os.path.realpath(path))
    names: tuple[str, ...] = _BROKER_FILES
    while parent != os.path.dirname(parent):
        if any(os.path.exists(os.path.join(parent, name)) for name in names):
            raise LogDirError(
                f"{path}: {parent} is a broker's log directory, nothing is written there"
            )
        # Further up a lock can be anybody's.
        parent, names = os.path.dirname(parent), _BROKER_FILES[1:]


def existing_target(path: str) -> LogDirError:
    """Return the error for an output directory that exists."""
    return LogDirError(f"{path} exists: kafkalog writes to new directories only")


class OutputFile:
    """A new file that grows at its end. Raises FileExistsError if it exists."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, _NEW_FILE, 0o644)
        self.size = 0

    def append(self, data: bytes | memoryview) -> None:
        """Write all of `data` at the end."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            error.filename = self.path  # such as where the disk is full
            raise
        self.size += len(data)

    def append_range(self, path: str, start: int, end: int) -> None:
        """Write these bytes of another file of this machine at the end, within the kernel: a file
        system that can shares the blocks. Raises LogDirError for a file that ends before."""
        with open(path, "rb") as source:
            while start < end:
                size = min(end - start, _IN_KERNEL_BYTES)
                try:
                    count = os.copy_file_range(source.fileno(), self._descriptor, size, start)
                except OSError as error:
                    if error.errno not in _NOT_IN_KERNEL:
                        error.filename = self.path
                        raise
                    data = os.pread(source.fileno(), size, start)
                    self.append(data)
                    count, self.size = len(data), self.size - len(data)
                if not count:
                    raise LogDirError(f"{path}: shorter than it was a moment ago: stop the broker")
                start += count
                self.size += count

    def flush(self, flush: Flush) -> None:
        """Force what was written to disk. Raises OSError with the file's path."""
        flush_file(self._descriptor, self.path, flush)

    def close(self) -> None:
        os.close(self._descriptor)


def write_file(path: str, data: bytes, flush: Flush) -> None:
    """Write a small file in place of one of that name, never seen half written. Raises OSError with
    the file's path."""
    try:
        with whole_file(path, flush) as file:
            file.write(data)
    except OSError as error:
        error.filename = error.filename or path  # such as where the disk is full
        raise


@contextmanager
def whole_file(path: str, flush: Flush = os.fsync, *, at_once: bool = False) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` when it is complete and flushed, with the permissions of
    the existing one; if writing fails, that one stays and nothing else is left.

    With `at_once` it replaces `path` while it is still empty, so that readers can watch it grow. A
    link at `path` is replaced, never followed.
    """
    scratch = unfinished.unfinished_path(path, unfinished.FILE)
    replaced = _status(path)
    mode = 0o666 if replaced is None else stat.S_IMODE(replaced.st_mode) & 0o777
    descriptor = os.open(scratch, _NEW_FILE, mode)
    try:
        with open(descriptor, "wb") as file:
            unfinished.lock(descriptor)
            if replaced is not None:
                _take_over(file.fileno(), replaced)
            if at_once:
                os.replace(scratch, path)
            yield file
            file.flush()
            flush_file(file.fileno(), path, flush)
        if not at_once:
            os.replace(scratch, path)
        flush_directory(os.path.dirname(path) or os.curdir, flush)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(scratch)


def _status(path: str) -> os.stat_result | None:
    """Return device and inode of the regular file at a path; None without one."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _take_over(descriptor: int, replaced: os.stat_result) -> None:
    """Give a new file the permissions of another, and its owner if that is allowed."""
    with suppress(PermissionError):
        os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode) & 0o777)


@contextmanager
def given_file(option: str, path: str, *, at_once: bool = False) -> Iterator[BinaryIO]:
    """Yield the file that a user names, or that a link names, as `whole_file` does; a path that is
    not a regular file, such as /dev/null, /dev/stdout or a pipe, is written directly.

    Raises OptionError if the path's directory does not exist or writing is not allowed, and
    StoppedError for a signal that ends the process, so that nothing unfinished is left. What killed
    processes have left beside the path is removed.
    """
    if is_written_directly(path):
        with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), "wb") as file:
            yield file
        return
    refuse_unwritable_file(option, path)
    unfinished.remove_leftovers(os.path.realpath(path))
    # A file that is in place at once leaves nothing to remove.
    ending = nullcontext() if at_once else stopped_by_exceptions()
    try:
        with ending, whole_file(os.path.realpath(path), at_once=at_once) as file:
            yield file
    except OSError as error:
        error.filename = error.filename or path  # such as where the disk is full
        if error.errno is not None:
            error.strerror = os.strerror(error.errno)  # Arrow's text names itself
        raise


def is_written_directly(path: str) -> bool:
    """Return whether a path is not a regular file, or is one that the process has open."""
    if os.path.abspath(path).startswith(_OPEN_FILES):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def make_directories(path: str, flush: Flush) -> None:
    """Create a directory and its parents where they are missing, and force their names to disk."""
    parent = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        return
    make_directories(parent, flush)
    with suppress(FileExistsError):
        os.mkdir(path)
    flush_directory(parent, flush)


def flush_file(descriptor: int, path: str, flush: Flush) -> None:
    """Force an open file to disk. Raises OSError with its path."""
    try:
        flush(descriptor)
    except OSError as error:
        error.filename = path
        raise


@contextmanager
def flushed_meanwhile(path: str) -> Iterator[None]:
    """Force a file to disk while the block runs: the processor has nothing to do with that. Raises
    OSError with the file's path."""
    with ThreadPoolExecutor(1) as other:
        flushed = other.submit(_flush_whole, path)
        yield
        flushed.result()


def _flush_whole(path: str) -> None:
    with open(path, "rb") as file:
        flush_file(file.fileno(), path, os.fsync)


def flush_directory(path: str, flush: Flush) -> None:
    """Force the names of a directory's files to disk, where its file system does that on request.

    Raises OSError with the directory's path.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # one that files may be written to, and that may not be read
    try:
        flush_file(descriptor, path, flush)
    except OSError as error:
        if error.errno not in _NOTHING_TO_FLUSH:
            raise
    finally:
        os.close(descriptor)
