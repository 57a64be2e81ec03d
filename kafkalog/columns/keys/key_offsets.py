"""The highest offset of each key, in memory that grows with the distinct keys: 24 bytes of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.columns.arrays import binaries, integers
from kafkalog.columns.jit.compiled import BoolArray, ByteArray, LongArray, kernel, long, prefetch
from kafkalog.columns.keys.key_hashes import hash_keys, secret_words

# The columns of view `records` that `KeyOffsets.add` takes, in this order.
KEY_COLUMNS = ("key", "offset")
# Of an entry: both halves of the key's hash, and the offset plus one; 0 is an empty slot.
FIRST, SECOND, NEXT = range(3)
ENTRY_WIDTH = 3
ENTRY_BYTES = 8 * ENTRY_WIDTH
_LEAST_SLOTS = 1024
# Of four slots, three are used at most.
_USED, _OF = 3, 4
# Slots are far apart in memory: so many keys ahead, the processor is made to fetch them.
_AHEAD = 16
MOST_BUCKETS = 2**16
_BUCKET_BITS = 31


class KeyOffsets:
    """The highest offset of each key of a partition. `secret` is that of all whose entries are
    merged, as bytes, and then as `hash_key` takes it; `keyless` counts records without a key, which
    have no entry."""

    def __init__(self, secret: bytes) -> None:
        self._bytes, self.secret = secret, secret_words(secret)
        self._slots = _empty(_LEAST_SLOTS)
        self._used = 0
        self._hashes = np.zeros((0, 2), dtype=np.int64)
        self.keyless = 0

    def __len__(self) -> int:
        return self._used

    def add(self, records: pa.RecordBatch) -> None:
        """Take the records of a batch with KEY_COLUMNS."""
        keys, offsets = records.columns
        hashes, present = self._hashed(keys)
        self.keyless += len(records) - int(np.count_nonzero(present))
        self._put(hashes, integers(offsets) + 1, present)

    def highest_of(self, keys: pa.Array) -> LongArray:
        """Return the highest offset of each of some keys, -1 where there is none."""
        return self._highest(*self._hashed(keys))

    def hashes_of(self, keys: pa.Array) -> LongArray:
        """Return the hashes of some keys, as `put` takes them."""
        return self._hashed(keys)[0].copy()

    def like(self) -> KeyOffsets:
        """Return one without keys, to which hashes of this one's are the same."""
        return KeyOffsets(self._bytes)

    def put(self, hashes: LongArray, offsets: LongArray) -> None:
        """Take the offsets of keys with these hashes."""
        self._put(hashes, offsets + 1, np.ones(len(offsets), dtype=np.bool_))

    def highest(self, hashes: LongArray) -> LongArray:
        """Return the highest offset of each of some keys, -1 where there is none."""
        return self._highest(hashes, np.ones(len(hashes), dtype=np.bool_))

    def merge(self, entries: LongArray) -> None:
        """Take entries of another one."""
        self.put(entries[:, :NEXT].copy(), entries[:, NEXT] - 1)

    def merge_bytes(self, entries: bytes | pa.Buffer) -> None:
        """Take entries of another one, as bytes."""
        self.merge(np.frombuffer(entries, dtype=np.int64).reshape(-1, ENTRY_WIDTH))

    def entries(self) -> LongArray:
        """Return an entry for each key, in no order."""
        return self._slots[self._slots[:, NEXT] > 0]

    def offsets(self) -> LongArray:
        """Return the highest offset of each key, in order."""
        found: LongArray = self._slots[:, NEXT][self._slots[:, NEXT] > 0] - 1
        found.sort()
        return found

    def clear(self) -> None:
        """Forget the keys; the number of records without one stays."""
        self._slots, self._used = _empty(_LEAST_SLOTS), 0

    def _hashed(self, keys: pa.Array) -> tuple[LongArray, BoolArray]:
        """Return the hashes of keys, until the next call, and which keys are there."""
        data, ends, present = binaries(keys)
        if len(self._hashes) < len(keys):
            self._hashes = np.zeros((len(keys), 2), dtype=np.int64)
        hashes = self._hashes[: len(keys)]
        hash_keys(data, ends, self.secret, hashes)
        return hashes, present

    def _highest(self, hashes: LongArray, present: BoolArray) -> LongArray:
        found = np.zeros(len(hashes), dtype=np.int64)
        _find_entries(hashes, present, self._slots, self._memory, found)
        return found - 1

    def _put(self, hashes: LongArray, nexts: LongArray, present: BoolArray) -> None:
        self._make_room(self._used + len(nexts))
        self._used += int(_put_entries(hashes, nexts, present, self._slots, self._memory))

    @property
    def _memory(self) -> ByteArray:
        return self._slots.view(np.uint8).reshape(-1)

    def _make_room(self, keys: int) -> None:
        count = len(self._slots)
        while keys * _OF > count * _USED:
            count *= 2
        if count > len(self._slots):
            slots = _empty(count)
            _move_entries(self._slots, slots)
            self._slots = slots


def in_buckets(entries: LongArray, buckets: int) -> Iterator[LongArray]:
    """Yield the entries by the bucket that their key is in, the same for equal keys; there are
    MOST_BUCKETS at most."""
    if buckets == 1:
        yield entries
        return
    numbers = _bucket_numbers(entries[:, SECOND], buckets)
    order = np.argsort(numbers, kind="stable")
    borders = np.searchsorted(numbers[order], np.arange(1, buckets))
    for places in np.split(order, borders):
        yield entries[places]


def _bucket_numbers(hashes: LongArray, buckets: int) -> NDArray[np.uint16]:
    high = (hashes >> (63 - _BUCKET_BITS)) & ((1 << _BUCKET_BITS) - 1)
    # Numbers of two bytes are sorted by their digits, which takes a fraction of the time.
    return ((high * buckets) >> _BUCKET_BITS).astype(np.uint16)


def _empty(slots: int) -> LongArray:
    return np.zeros((slots, ENTRY_WIDTH), dtype=np.int64)


@kernel
def _put_entries(
    hashes: LongArray, nexts: LongArray, present: BoolArray, slots: LongArray, memory: ByteArray
) -> int:
    """Put what is present into the slots, a power of two and not all used: the larger of two nexts
    stays. `memory` is that of the slots. Return how many keys are new."""
    count = len(nexts)
    mask = long(slots.shape[0] - 1)
    found = long(0)
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(memory, (hashes[i + _AHEAD, 0] & mask) * ENTRY_BYTES)
        if not present[i]:
            continue
        first, second, next_offset = hashes[i, 0], hashes[i, 1], nexts[i]
        slot = first & mask
        for _ in range(mask + 1):
            used = slots[slot, NEXT]
            if used == 0:
                slots[slot, FIRST] = first
                slots[slot, SECOND] = second
                slots[slot, NEXT] = next_offset
                found += 1
                break
            if slots[slot, FIRST] == first and slots[slot, SECOND] == second:
                slots[slot, NEXT] = max(used, next_offset)
                break
            slot = (slot + 1) & mask
    return found


@kernel
def _move_entries(entries: LongArray, slots: LongArray) -> None:
    """Put the entries of other slots into these, a power of two, of which none is used."""
    mask = long(slots.shape[0] - 1)
    for i in range(entries.shape[0]):
        if entries[i, NEXT] == 0:
            continue
        slot = entries[i, FIRST] & mask
        for _ in range(mask + 1):
            if slots[slot, NEXT] == 0:
                slots[slot, FIRST] = entries[i, FIRST]
                slots[slot, SECOND] = entries[i, SECOND]
                slots[slot, NEXT] = entries[i, NEXT]
                break
            slot = (slot + 1) & mask


@kernel
def _find_entries(
    hashes: LongArray, present: BoolArray, slots: LongArray, memory: ByteArray, nexts: LongArray
) -> None:
    """Put the next of each key that has an entry into `nexts`, which is zeros; otherwise as
    `_put_entries`."""
    count = len(nexts)
    mask = long(slots.shape[0] - 1)
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(memory, (hashes[i + _AHEAD, 0] & mask) * ENTRY_BYTES)
        if not present[i]:
            continue
        first, second = hashes[i, 0], hashes[i, 1]
        slot = first & mask
        for _ in range(mask + 1):
            if slots[slot, NEXT] == 0:
                break
            if slots[slot, FIRST] == first and slots[slot, SECOND] == second:
                nexts[i] = slots[slot, NEXT]
                break
            slot = (slot + 1) & mask
