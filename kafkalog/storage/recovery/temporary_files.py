"""Files in a partition's directory that are on their way in or out, or have names that a broker
does not expect, and what it does with them when it starts. Rules: docs/format.md F117 and F961.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
REFUSED_NAME = (
    "a broker ends at such a name, which does not begin with an offset of 64 bits and a dot"
)
_OFFSET_DIGITS = 20
# Files that a broker takes for part of a log by the end of their name.
_PARTS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", CLEANED, SWAP)
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}")


def refused_names(names: Iterable[str]) -> list[str]:
    """Return the files whose names end as those of a log's parts and do not begin with an offset: a
    broker ends when it meets one. Rule: F961."""
    return sorted(name for name in names if name.endswith(_PARTS) and not _has_offset(name))


def _has_offset(name: str) -> bool:
    number = name[: name.index(".")]
    matches = _NUMBER.fullmatch(number)
    return matches is not None and -(2**63) <= int(number) < 2**63


def odd_base_offset(name: str) -> int | None:
    """Return the offset in the name of a log that has not 20 digits; None for other names."""
    number = name.removesuffix(".log")
    is_odd = name.endswith(".log") and number.isdecimal() and len(number) != _OFFSET_DIGITS
    return int(number) if is_odd and int(number) < 2**63 else None


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
