"""A new directory that is there as a whole or not at all, however the writing ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kafkalog.errors import LogDirError
from kafkalog.exit_codes import stopped_by_exceptions
from kafkalog.storage.files import unfinished
from kafkalog.storage.files.output_files import (
    Flush,
    existing_target,
    flush_directory,
    new_directory,
)
from kafkalog.storage.files.uris import is_remote


@contextmanager
def whole_directory(path: str, flush: Flush) -> Iterator[str]:
    """A new directory to write into, beside `path`, that gets this name when everything is written.

    A run that fails or is stopped leaves nothing. The next one that writes beside it removes what a
    killed process has left. Raises LogDirError as new_directory does, and while another process is
    writing to `path`.
    """
    if is_remote(path):
        raise LogDirError(f"{path}: a directory of this machine is written, not one of a store")
    target = os.path.abspath(path)
    if os.path.lexists(target):
        raise existing_target(path)
    for other in unfinished.remove_leftovers(target):
        raise LogDirError(f"{other}: another process is writing it: wait for it to end")
    scratch = unfinished.unfinished_path(target, unfinished.DIRECTORY)
    new_directory(scratch)
    lock = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        unfinished.lock(lock)
        with stopped_by_exceptions():
            yield scratch
        flush_directory(scratch, flush)
        if os.path.lexists(target):
            raise existing_target(path)
        os.rename(scratch, target)
    except BaseException:
        unfinished.remove(scratch)
        raise
    finally:
        os.close(lock)
    flush_directory(os.path.dirname(target), flush)
