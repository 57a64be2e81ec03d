"""What the keys of a partition come to, in memory that does not grow with them.

Rules: docs/command-line.md F1245 to F1247.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import binaries, integers
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.keys.key_hashes import hash_keys, secret_words

# The columns of view `records` that `KeyTally.add` takes.
TALLY_COLUMNS = ("key", "value", "offset", "timestampMs", "timestampType", "producerId")
# So many distinct keys are counted one by one; of more, a share chosen by their hashes is.
MOST_DISTINCT = 2**16
# So many keys have their bytes counted; of more, those with the fewest lose theirs.
MOST_HEAVY = 4096
# A record repeats another one if they are at most so many records apart.
NEAR_RECORDS = 1000
# So many bytes of a key are kept, to be shown.
KEPT_KEY_BYTES = 200
_CREATE_TIME = 0


class DistinctKeys:
    """How many distinct keys there are: of a key counts whether its hash ends with `level` zero
    bits, and the level rises where more than MOST_DISTINCT are counted."""

    def __init__(self, level: int = 0, hashes: LongArray | None = None) -> None:
        self.level = level
        self.hashes = np.empty(0, dtype=np.int64) if hashes is None else hashes

    def add(self, hashes: LongArray, level: int = 0) -> None:
        """Add hashes that end with `level` zero bits."""
        self.level = max(self.level, level)
        self.hashes = np.union1d(self._chosen(self.hashes), self._chosen(hashes))
        while len(self.hashes) > MOST_DISTINCT:
            self.level += 1
            self.hashes = self._chosen(self.hashes)

    @property
    def count(self) -> int:
        """How many there are: an estimate unless `level` is 0."""
        return len(self.hashes) << self.level

    def _chosen(self, hashes: LongArray) -> LongArray:
        chosen: LongArray = hashes[hashes & ((1 << self.level) - 1) == 0]
        return chosen


class HeavyKeys:
    """The keys that have most bytes. What is counted of a key is at most `missed` bytes too
    little, and 0 as long as there are no more than MOST_HEAVY keys (Misra and Gries)."""

    def __init__(self) -> None:
        self.missed = 0
        self.hashes, self.bytes, self.records = (np.empty(0, dtype=np.int64) for _ in range(3))
        self.keys = pa.array([], pa.binary())
        self._waiting: list[tuple[LongArray, LongArray, LongArray, pa.Array]] = []
        self._count = 0

    def add(self, hashes: LongArray, sizes: LongArray, records: LongArray, keys: pa.Array) -> None:
        """Add keys, each once, with the bytes and the number of their records."""
        self._waiting.append((hashes, sizes, records, keys))
        self._count += len(hashes)
        if self._count > 4 * MOST_HEAVY:
            self.settle()

    def settle(self) -> None:
        """Sum up what was added."""
        parts = [(self.hashes, self.bytes, self.records, self.keys), *self._waiting]
        hashes, sizes, records = (np.concatenate([part[i] for part in parts]) for i in range(3))
        keys = pa.concat_arrays([part[3] for part in parts])
        self._waiting, self._count = [], 0
        self.hashes, firsts, codes = np.unique(hashes, return_index=True, return_inverse=True)
        self.bytes, self.records = (_summed(codes, each, len(firsts)) for each in (sizes, records))
        if len(self.hashes) > MOST_HEAVY:
            cut = int(np.partition(self.bytes, -MOST_HEAVY - 1)[-MOST_HEAVY - 1])
            self.missed += cut
            kept = np.flatnonzero(self.bytes > cut)
            self.hashes, self.records = self.hashes[kept], self.records[kept]
            self.bytes, firsts = self.bytes[kept] - cut, firsts[kept]
        self.keys = keys.take(pa.array(firsts))


class Repeats:
    """How many contents, as hashes in the order of a log, repeat one at most NEAR_RECORDS before;
    `head` and `tail` are the first and the last of them, for what lies beside them."""

    def __init__(self) -> None:
        self.count = 0
        self.head, self.tail = (np.empty(0, dtype=np.int64) for _ in range(2))

    def add(self, contents: LongArray) -> None:
        """Add what follows."""
        self.count += int(np.count_nonzero(_is_repeat(self.tail, contents)))
        self._pass_by(contents, contents)

    def follow(self, count: int, head: LongArray, tail: LongArray) -> None:
        """Add what follows and was counted elsewhere."""
        self.count += count + int(np.count_nonzero(_is_repeat(self.tail, head)))
        self.count -= int(np.count_nonzero(_is_repeat(self.tail[:0], head)))
        self._pass_by(head, tail)

    def _pass_by(self, head: LongArray, tail: LongArray) -> None:
        self.head = np.concatenate([self.head, head])[:NEAR_RECORDS]
        self.tail = np.concatenate([self.tail, tail])[-NEAR_RECORDS:]


class KeyTally:
    """What the records of a partition come to, in the order of their offsets. `secret` is that of
    all whose tallies are merged."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret_words(secret)
        self.distinct, self.heavy = DistinctKeys(), HeavyKeys()
        self.records = self.keyless = self.tombstones = self.bytes = 0
        self.first_offset: int | None = None
        self.largest_bytes, self.largest_offset = -1, -1
        self.repeats, self.resent = Repeats(), Repeats()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records with TALLY_COLUMNS."""
        columns = {name: batch.column(name) for name in TALLY_COLUMNS}
        keys, key_ends, has_key = self._hashed(columns["key"])
        values, value_ends, has_value = self._hashed(columns["value"])
        sizes = np.diff(key_ends).astype(np.int64) + np.diff(value_ends)
        self.records += len(batch)
        self.keyless += int(np.count_nonzero(~has_key))
        self.tombstones += int(np.count_nonzero(has_key & ~has_value))
        self.bytes += int(sizes.sum())
        offsets = integers(columns["offset"])
        if self.first_offset is None and len(offsets):
            self.first_offset = int(offsets[0])
        self._note_largest(sizes, offsets)
        self._add_keys(keys, sizes, columns["key"], has_key)
        # Odd numbers keep the hashes of key and value apart.
        contents = keys * np.where(has_key, 3, 5) + values * 7
        self._note_repeats(contents, columns, has_value)

    def merge(self, row: Mapping[str, Any], *, follows: bool = True) -> None:
        """Add what another tally's `row` has: of the records that follow in the same partition, or
        of another partition."""
        for name in ("records", "keyless", "tombstones", "bytes"):
            setattr(self, name, getattr(self, name) + row[name])
        for name, known in (("repeats", self.repeats), ("resent", self.resent)):
            if follows:
                head, tail = (_longs(row[f"{name}_{end}"]) for end in ("head", "tail"))
                known.follow(row[name], head, tail)
            else:
                known.count += row[name]
        if row["largest_bytes"] > self.largest_bytes:
            self.largest_bytes, self.largest_offset = row["largest_bytes"], row["largest_offset"]
        self.distinct.add(_longs(row["hashes"]), row["level"])
        hashes, sizes, records = (
            _longs(row[f"heavy_{name}"]) for name in ("hashes", "bytes", "records")
        )
        self.heavy.add(hashes, sizes, records, pa.array(row["heavy_keys"], pa.binary()))
        self.heavy.missed += row["heavy_missed"]
        self.heavy.settle()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the tally of a row."""
        found = cls(bytes(16))
        found.merge(row)
        return found

    def row(self) -> dict[str, Any]:
        """Return it as a row, of TALLY_SCHEMA."""
        self.heavy.settle()
        names = ("records", "keyless", "tombstones", "bytes")
        return {
            **{name: getattr(self, name) for name in names},
            "first_offset": self.first_offset,
            "repeats": self.repeats.count,
            "repeats_head": self.repeats.head,
            "repeats_tail": self.repeats.tail,
            "resent": self.resent.count,
            "resent_head": self.resent.head,
            "resent_tail": self.resent.tail,
            "largest_bytes": self.largest_bytes,
            "largest_offset": self.largest_offset,
            "level": self.distinct.level,
            "hashes": self.distinct.hashes,
            "heavy_hashes": self.heavy.hashes,
            "heavy_bytes": self.heavy.bytes,
            "heavy_records": self.heavy.records,
            "heavy_keys": self.heavy.keys.to_pylist(),
            "heavy_missed": self.heavy.missed,
        }

    def _hashed(self, payloads: pa.Array) -> tuple[LongArray, Any, BoolArray]:
        data, ends, is_present = binaries(payloads)
        hashes = np.empty((len(payloads), 2), dtype=np.int64)
        hash_keys(data, ends, self._secret, hashes)
        return hashes[:, 0].copy(), ends, is_present

    def _note_largest(self, sizes: LongArray, offsets: LongArray) -> None:
        largest = int(np.argmax(sizes)) if len(sizes) else 0
        if len(sizes) and sizes[largest] > self.largest_bytes:
            self.largest_bytes = int(sizes[largest])
            self.largest_offset = int(offsets[largest])

    def _add_keys(
        self, hashes: LongArray, sizes: LongArray, keys: pa.Array, has_key: BoolArray
    ) -> None:
        rows = np.flatnonzero(has_key)
        if not len(rows):
            return
        found, firsts, codes = np.unique(hashes[rows], return_index=True, return_inverse=True)
        self.distinct.add(found)
        taken = pc.binary_slice(keys.take(pa.array(rows[firsts])), 0, KEPT_KEY_BYTES)
        records = np.bincount(codes, minlength=len(found)).astype(np.int64)
        self.heavy.add(found, _summed(codes, sizes[rows], len(found)), records, taken)

    def _note_repeats(
        self, contents: LongArray, columns: Mapping[str, pa.Array], has_value: BoolArray
    ) -> None:
        """Count records with a value that repeat one shortly before, and of these those that a
        producer without idempotence sent with the same time: a retry."""
        contents = contents[has_value]
        self.repeats.add(contents)
        is_plain = _is_value(columns["producerId"], None) | _is_value(columns["producerId"], -1)
        is_plain &= _is_value(columns["timestampType"], _CREATE_TIME)
        # Records of idempotent producers are left out: brokers drop their retries.
        times = integers(columns["timestampMs"])[has_value]
        self.resent.add((contents + times * 11)[is_plain[has_value]])


TALLY_SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in ("records", "keyless", "tombstones", "bytes")),
        *((name, pa.int64()) for name in ("first_offset", "repeats", "resent")),
        *((name, pa.int64()) for name in ("largest_bytes", "largest_offset")),
        *((f"repeats_{end}", pa.list_(pa.int64())) for end in ("head", "tail")),
        *((f"resent_{end}", pa.list_(pa.int64())) for end in ("head", "tail")),
        *(("level", pa.int32()), ("hashes", pa.list_(pa.int64()))),
        *((f"heavy_{name}", pa.list_(pa.int64())) for name in ("hashes", "bytes", "records")),
        *(("heavy_keys", pa.list_(pa.binary())), ("heavy_missed", pa.int64())),
    ]
)


def _is_repeat(before: LongArray, contents: LongArray) -> BoolArray:
    """Return which contents are the same as one at most NEAR_RECORDS earlier."""
    every = np.concatenate([before, contents])
    order = np.argsort(every, kind="stable")
    in_order = every[order]
    is_same = (in_order[1:] == in_order[:-1]) & (np.diff(order) <= NEAR_RECORDS)
    found = np.zeros(len(every), dtype=np.bool_)
    found[order[1:][is_same]] = True
    repeats: BoolArray = found[len(before) :]
    return repeats


def _is_value(numbers: pa.Array, value: int | None) -> BoolArray:
    mask = pc.is_null(numbers) if value is None else pc.fill_null(pc.equal(numbers, value), False)
    found: BoolArray = mask.to_numpy(zero_copy_only=False)
    return found


def _summed(codes: LongArray, values: LongArray, count: int) -> LongArray:
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, codes, values)
    return found


def _longs(values: Any) -> LongArray:
    return np.array(values, dtype=np.int64)
