"""Questions about runs of intervals, many at once: `starts` and `ends` are their first intervals
and those behind the last. See `offset_intervals`.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import NO_VALUE


def sums(values: LongArray, starts: LongArray, ends: LongArray) -> LongArray:
    """The sum of each run, 0 of an empty one."""
    running = np.concatenate(([0], np.cumsum(values)))
    found: LongArray = running[ends] - running[starts]
    return found


def largest(values: LongArray, starts: LongArray, ends: LongArray) -> LongArray:
    """The largest value of each run, -1 of an empty one."""
    found = np.full(len(starts), NO_VALUE, dtype=np.int64)
    lengths = ends - starts
    # Of every interval the largest of the `width` from there on; two of these cover a run.
    width, tops = 1, values
    while len(tops):
        rows = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        found[rows] = np.maximum(tops[starts[rows]], tops[ends[rows] - width])
        tops = np.maximum(tops[:-width], tops[width:])
        width *= 2
    return found


def first_in(is_held: BoolArray, starts: LongArray, ends: LongArray) -> LongArray:
    """The first interval of each run that holds something, -1 for none."""
    held = np.flatnonzero(is_held)
    places = np.searchsorted(held, starts)
    found = np.append(held, len(is_held))[places]
    return np.where(found < ends, found, NO_VALUE)


def last_in(is_held: BoolArray, starts: LongArray, ends: LongArray) -> LongArray:
    """The last interval of each run that holds something, -1 for none."""
    held = np.flatnonzero(is_held)
    places = np.searchsorted(held, ends)
    found = np.concatenate(([NO_VALUE], held))[places]
    return np.where(found >= starts, found, NO_VALUE)
