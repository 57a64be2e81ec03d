"""How often keys occur, in bounded memory: sketches that tasks make and the report merges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kafkalog.report.contents import TRACKED_KEYS

Hashes = NDArray[np.uint64]

# The number of distinct keys follows from so many of the smallest hashes, within 2 %.
_SMALLEST = 4096
_NO_HASHES = np.zeros(0, np.uint64)


@dataclass
class KeySketch:
    """The most frequent keys by the sketch of Misra and Gries ("Finding repeated elements", 1982;
    merged as in Agarwal et al., "Mergeable summaries", 2012): the count of a key is too low by at
    most a part in TRACKED_KEYS of all. The smallest hashes estimate the number of keys (Bar-Yossef
    et al., "Counting distinct elements in a data stream", 2002). `samples` are the beginnings of
    the keys, or empty."""

    hashes: Hashes = field(default_factory=_NO_HASHES.copy)
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    samples: NDArray[np.object_] = field(default_factory=lambda: np.zeros(0, object))
    smallest: Hashes = field(default_factory=_NO_HASHES.copy)

    def merge(self, other: KeySketch) -> None:
        """Add what another sketch counted."""
        hashes = np.concatenate((self.hashes, other.hashes))
        found, first, places = np.unique(hashes, return_index=True, return_inverse=True)
        counts = np.zeros(len(found), np.int64)
        np.add.at(counts, places, np.concatenate((self.counts, other.counts)))
        kept, self.counts = _kept(counts)
        self.hashes = found[kept]
        self.samples = np.concatenate((self.samples, other.samples))[first[kept]]
        self.smallest = _distinct(np.concatenate((self.smallest, other.smallest)))[0][:_SMALLEST]

    @property
    def distinct(self) -> int:
        """How many keys there are, about."""
        if len(self.smallest) < _SMALLEST:
            return len(self.smallest)
        return round((_SMALLEST - 1) * 2**64 / int(self.smallest[-1]))

    def most_frequent(self, count: int) -> list[tuple[int, int, bytes]]:
        """Return hash, count and sample of the most frequent keys."""
        columns = (self.hashes.tolist(), self.counts.tolist(), self.samples)
        found = zip(*columns, strict=True)
        # Hashes are other ones on each page: of equal counts the order is that of the keys.
        return sorted(found, key=lambda each: (-each[1], each[2], each[0]))[:count]


def sketch_of(hashes: Hashes, samples: Sequence[bytes] | None = None) -> KeySketch:
    """Return the sketch of keys, given a hash of each, and the beginning of each."""
    if samples is None:
        found, counts = _distinct(hashes)
    else:
        found, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    kept, left = _kept(counts)
    own = np.full(len(kept), b"", object)
    if samples is not None:
        own[:] = [samples[i] for i in first[kept]]
    return KeySketch(found[kept], left, own, found[:_SMALLEST])


def _kept(counts: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the places of the keys that a sketch keeps, and what it leaves of their counts."""
    if len(counts) > TRACKED_KEYS:
        counts = counts - np.partition(counts, -TRACKED_KEYS - 1)[-TRACKED_KEYS - 1]
    places = np.flatnonzero(counts > 0)
    return places, counts[places]


def _distinct(hashes: Hashes) -> tuple[Hashes, NDArray[np.int64]]:
    """Return the hashes in their order, each once, and how often each occurs. numpy's `unique`
    sorts places, or hashes again: both take several times as long."""
    in_order = np.sort(hashes)
    is_first = np.ones(len(in_order), bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    begins = np.flatnonzero(is_first)
    return in_order[begins], np.diff(np.append(begins, len(in_order)))
