"""Files in a partition's directory that are on their way in or out, and what a broker that starts
does with them. Rule: docs/format.md F117.
"""

from __future__ import annotations

from collections.abc import Collection

DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
_OFFSET_DIGITS = 20


def finished_swaps(names: Collection[str]) -> list[str]:
    """Return the `.swap` files that take the place of others.

    A file that is still being cleaned shows that the cleaning which made those of its offset or
    of later ones was not done.
    """
    swaps = [name for name in names if name.endswith(SWAP)]
    least_cleaned = min((_offset(name) for name in names if name.endswith(CLEANED)), default=None)
    return [name for name in swaps if least_cleaned is None or _offset(name) < least_cleaned]


def dropped_files(names: Collection[str]) -> list[str]:
    """Return the files, of all in the directory, that go before any other is looked at."""
    kept = set(finished_swaps(names))
    return [
        name
        for name in names
        if name.endswith((DELETED, CLEANED, SWAP))
        and not name.endswith(".checkpoint.deleted")
        and name not in kept
    ]


def is_replaced(name: str, first_offset: int, end_offset: int) -> bool:
    """Return whether a file goes because swapped segments cover [first_offset, end_offset)."""
    return not name.endswith(SWAP) and first_offset <= _offset(name) < end_offset


def _offset(name: str) -> int:
    """Return the offset that a name begins with, -1 if there is none."""
    digits = name[:_OFFSET_DIGITS]
    return int(digits) if len(digits) == _OFFSET_DIGITS and digits.isdecimal() else -1
