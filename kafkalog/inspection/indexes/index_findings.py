"""What can be wrong with the files beside a log. Rules: docs/format.md F130 to F137."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.faults import Severity

# Kinds, in the words of docs/format.md F136.
MISSING = "missing"
ORPHAN = "orphan"
EMPTY = "empty"
TRUNCATED = "truncated"
ZEROS = "zeros"
VERSION = "version"
NOT_RISING = "not_rising"
WRONG_POSITION = "position"
OFFSET = "offset"
INNER_OFFSET = "inner_offset"
TIMESTAMP = "timestamp"
INCOMPLETE = "incomplete"
BEYOND_END = "beyond_end"
LOG_DAMAGED = "log_damaged"
MARKER = "marker"
WRONG_FIRST_OFFSET = "first_offset"
STABLE_OFFSET = "stable_offset"
EPOCHS = "leader_epochs"


@dataclass(frozen=True, slots=True)
class IndexFinding:
    """One kind of thing wrong with one file.

    `entry` is the number, from 0, of the first entry concerned and `entries` how many are; None
    and 0 where it is about the file as a whole.
    """

    file: str
    kind: str
    severity: Severity
    detail: str
    entry: int | None = None
    entries: int = 0


def entry_finding(
    file: str, kind: str, severity: Severity, concerned: BoolArray, detail: Callable[[int], str]
) -> Iterator[IndexFinding]:
    """Yield the finding about the entries concerned, if any; `detail` describes the first."""
    entries = np.flatnonzero(concerned)
    if len(entries):
        first = int(entries[0])
        yield IndexFinding(file, kind, severity, detail(first), first, len(entries))


def size_finding(file: str, size: int, entry_bytes: int) -> Iterator[IndexFinding]:
    """Yield the finding about a file that ends inside an entry."""
    odd = size % entry_bytes
    if odd:
        detail = f"{size} bytes, {odd} of them after the last whole entry of {entry_bytes}"
        yield IndexFinding(file, TRUNCATED, Severity.ERROR, detail, size // entry_bytes, 1)


def not_rising(values: LongArray) -> BoolArray:
    """Return which values are not above the one before."""
    first = np.zeros(min(len(values), 1), dtype=bool)
    return np.concatenate((first, values[1:] <= values[:-1]))
