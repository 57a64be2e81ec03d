"""Files with secrets: read only where no other user of the machine can read or change them."""

from __future__ import annotations

import os
import stat

from kafkalog.errors import OptionError
from kafkalog.storage.files.own_directories import is_own
from kafkalog.storage.files.regular_files import open_regular

_MOST_BYTES = 1024 * 1024


def read_secret_file(option: str, path: str) -> bytes:
    """Return the content of a file with secrets. Raises OptionError for one that cannot be read, is
    large, or is open to others: it belongs to root or the effective user, and no other user may
    read or write it, but for the group of a file of root."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            found = os.fstat(file.fileno())
            if not _is_secret(found):
                raise OptionError(
                    option,
                    path,
                    "a file that belongs to you or root and that others cannot read: "
                    "chown and chmod 600",
                )
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        reason = f"a file that can be read: {error.strerror or error}"
        raise OptionError(option, path, reason) from None
    if len(content) > _MOST_BYTES:
        raise OptionError(option, path, f"a file of {_MOST_BYTES} bytes at most")
    return content


def _is_secret(found: os.stat_result) -> bool:
    # Secrets of root are often open to the group that a service runs in.
    may_read = stat.S_IROTH | (stat.S_IRGRP if found.st_uid else 0)
    return is_own(found) and not found.st_mode & may_read
