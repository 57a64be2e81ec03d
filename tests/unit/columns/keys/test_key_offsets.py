"""The highest offset of each key, against a dictionary."""

import random

import numpy as np
import pyarrow as pa
import pytest

from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.columns.keys.key_offsets import KEY_COLUMNS, KeyOffsets, in_buckets

SECRET = bytes(range(SECRET_BYTES))
Pairs = list[tuple[bytes | None, int]]


def batch(pairs: Pairs) -> pa.RecordBatch:
    keys = pa.array([key for key, _ in pairs], pa.binary())
    offsets = pa.array([offset for _, offset in pairs], pa.int64())
    return pa.RecordBatch.from_arrays([keys, offsets], names=KEY_COLUMNS)


def random_pairs(count: int, keys: int, seed: int = 1) -> Pairs:
    numbers = random.Random(seed)
    chosen = [numbers.choice([None, b"", b"k%d" % numbers.randrange(keys)]) for _ in range(count)]
    return list(zip(chosen, numbers.sample(range(10 * count), count), strict=True))


def highest(pairs: Pairs) -> list[int]:
    found: dict[bytes, int] = {}
    for key, offset in pairs:
        if key is not None:
            found[key] = max(offset, found.get(key, -1))
    return sorted(found.values())


@pytest.mark.parametrize("keys", [1, 100, 100_000])
def test_the_highest_offset_of_each_key_stays(keys: int) -> None:
    pairs = random_pairs(6000, keys)
    found = KeyOffsets(SECRET)
    for start in range(0, len(pairs), 700):
        found.add(batch(pairs[start : start + 700]))
    assert found.offsets().tolist() == highest(pairs)
    assert len(found) == len(highest(pairs))
    assert found.keyless == sum(key is None for key, _ in pairs)


def test_the_highest_offset_is_found_by_key() -> None:
    pairs = random_pairs(3000, 500)
    found = KeyOffsets(SECRET)
    found.add(batch(pairs))
    expected = dict(sorted(((key, at) for key, at in pairs if key), key=lambda pair: pair[1]))
    asked = [None, b"k3", b"missing", *expected]
    highest_of = found.highest_of(pa.array(asked, pa.binary())).tolist()
    assert highest_of == [expected.get(key, -1) if key else -1 for key in asked]


def test_a_slice_of_a_batch_is_read_as_its_own() -> None:
    pairs = random_pairs(300, 20)
    found = KeyOffsets(SECRET)
    found.add(batch(pairs).slice(100, 50))
    assert found.offsets().tolist() == highest(pairs[100:150])


@pytest.mark.parametrize("buckets", [1, 2, 7])
def test_entries_that_are_merged_by_bucket_give_the_same(buckets: int) -> None:
    parts = [random_pairs(1000, 300, seed) for seed in range(4)]
    merged = [KeyOffsets(SECRET) for _ in range(buckets)]
    for part in parts:
        own = KeyOffsets(SECRET)
        own.add(batch(part))
        for each, entries in zip(merged, in_buckets(own.entries(), buckets), strict=True):
            each.merge(entries)
    offsets = np.sort(np.concatenate([each.offsets() for each in merged]))
    assert offsets.tolist() == highest([pair for part in parts for pair in part])
    assert all(len(each) > 300 // buckets // 2 for each in merged)


def test_nothing_is_left_after_clear_but_the_count_of_records_without_a_key() -> None:
    found = KeyOffsets(SECRET)
    found.add(batch([(b"a", 1), (None, 2)]))
    found.clear()
    assert (len(found), found.offsets().tolist(), found.keyless) == (0, [], 1)
    found.add(batch([(b"a", 0)]))
    assert found.offsets().tolist() == [0]


def test_keys_are_taken_by_their_hashes() -> None:
    pairs: Pairs = [pair for pair in random_pairs(3000, 50) if pair[0] is not None]
    found, again = KeyOffsets(SECRET), KeyOffsets(SECRET).like()
    known: dict[bytes | None, int] = {}
    for start in range(0, len(pairs), 700):
        some = pairs[start : start + 700]
        hashes = found.hashes_of(pa.array([key for key, _ in some], pa.binary()))
        found.put(hashes, np.array([offset for _, offset in some]))
        again.add(batch(some))
        for key, offset in some:
            known[key] = max(offset, known.get(key, -1))
        expected = [known[key] for key, _ in some]
        assert found.highest(hashes).tolist() == expected
        assert again.highest(hashes).tolist() == expected
