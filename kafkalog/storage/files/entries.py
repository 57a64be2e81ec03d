"""An entry of a directory listing."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A name in a directory; `size` is 0 for a directory. `special` describes an entry that is
    neither a directory nor a regular file and is never opened."""

    name: str
    path: str
    is_directory: bool
    size: int
    special: str | None = None
