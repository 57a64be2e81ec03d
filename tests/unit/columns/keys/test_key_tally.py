"""Keys counted in bounded memory. Rules: docs/command-line.md F1245 to F1247."""

import numpy as np
import pyarrow as pa
import pytest

from kafkalog.columns.keys import key_tally
from kafkalog.columns.keys.key_tally import NEAR_RECORDS, TALLY_COLUMNS, KeyTally

SECRET = bytes(range(16))


def batch(
    keys: list[bytes | None],
    values: list[bytes | None],
    times: list[int] | None = None,
    producer_id: int | None = None,
    first_offset: int = 0,
) -> pa.RecordBatch:
    count = len(keys)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "offset": pa.array(range(first_offset, first_offset + count), pa.int64()),
        "timestampMs": pa.array(times or range(count), pa.int64()),
        "timestampType": pa.array([0] * count, pa.int32()),
        "producerId": pa.array([producer_id] * count, pa.int64()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in TALLY_COLUMNS], TALLY_COLUMNS)


def tally(*batches: pa.RecordBatch) -> KeyTally:
    found = KeyTally(SECRET)
    for each in batches:
        found.add(each)
    return found


def test_keys_tombstones_and_records_without_a_key_are_counted() -> None:
    found = tally(batch([b"a", b"b", None, b"a", b""], [b"1", None, b"22", b"333", b""]))
    assert (found.records, found.distinct.count, found.distinct.level) == (5, 3, 0)
    assert (found.keyless, found.tombstones, found.bytes) == (1, 1, 3 + 6)
    assert (found.largest_bytes, found.largest_offset) == (4, 3)
    row = found.row()
    by_key = dict(zip(row["heavy_keys"], row["heavy_bytes"].tolist(), strict=True))
    assert by_key == {b"a": 2 + 4, b"b": 1, b"": 0}
    assert row["heavy_missed"] == 0


def test_a_number_of_many_keys_is_an_estimate_within_one_percent() -> None:
    # F1245
    found = tally(
        *(
            batch([b"%d" % each for each in range(first, first + 50_000)], [b"v"] * 50_000)
            for first in range(0, 300_000, 50_000)
        )
    )
    assert found.distinct.level > 0
    assert len(found.distinct.hashes) <= key_tally.MOST_DISTINCT
    assert found.distinct.count == pytest.approx(300_000, rel=0.02)


def test_tallies_of_tasks_that_have_the_same_keys_are_merged() -> None:
    # F1245: one has a level, the other none.
    many = tally(batch([b"%d" % each for each in range(100_000)], [b"v"] * 100_000))
    few = tally(batch([b"1", b"2", b"new"], [b"v"] * 3))
    merged = KeyTally.of(few.row())
    merged.merge(many.row())
    assert merged.records == 100_003
    assert merged.distinct.count == pytest.approx(100_001, rel=0.02)
    exact = KeyTally.of(few.row())
    exact.merge(few.row())
    assert (exact.distinct.count, exact.distinct.level) == (3, 0)


def test_the_heaviest_of_many_keys_is_found_and_misses_no_more_than_it_says() -> None:
    # F1246: each batch has 2,000 new keys, and a record of the heavy one among them.
    random = np.random.default_rng(4)
    found = KeyTally(SECRET)
    for number in range(40):
        keys: list[bytes | None] = [b"%d-%d" % (number, each) for each in range(2000)]
        keys[int(random.integers(2000))] = b"heavy"
        found.add(batch(keys, [b"x" * (500 if key == b"heavy" else 5) for key in keys]))
    row = found.row()
    by_key = dict(zip(row["heavy_keys"], row["heavy_bytes"].tolist(), strict=True))
    true = 40 * (500 + len("heavy"))
    assert len(by_key) <= key_tally.MOST_HEAVY
    assert true - row["heavy_missed"] <= by_key[b"heavy"] <= true
    assert max(by_key, key=lambda key: by_key[key]) == b"heavy"


def test_records_repeat_others_that_are_near_also_in_an_earlier_batch() -> None:
    # F1247
    first = batch([b"a", b"b"], [b"1", b"2"], [10, 20])
    again = batch([b"a", b"b", b"b"], [b"1", b"2", b"3"], [10, 99, 20], first_offset=2)
    found = tally(first, again)
    assert (found.repeats.count, found.resent.count) == (2, 1)


def test_records_of_idempotent_producers_are_not_resent() -> None:
    # F1247
    first = batch([b"a"], [b"1"], [10], producer_id=7)
    found = tally(first, batch([b"a"], [b"1"], [10], producer_id=7, first_offset=1))
    assert (found.repeats.count, found.resent.count) == (1, 0)


def test_records_far_apart_and_tombstones_do_not_repeat() -> None:
    # F1247
    between: list[bytes | None] = [b"%d" % each for each in range(NEAR_RECORDS)]
    found = tally(batch([b"a", *between, b"a"], [b"1", *between, b"1"]))
    assert found.repeats.count == 0
    assert tally(batch([b"a", b"a"], [None, None])).repeats.count == 0


@pytest.mark.parametrize("border", range(0, 3001, 250))
def test_a_partition_that_tasks_divide_has_the_same_repeats(border: int) -> None:
    # F1247
    random = np.random.default_rng(7)
    numbers = random.integers(0, 900, 3000).tolist()
    keys: list[bytes | None] = [b"%d" % number for number in numbers]
    times = random.integers(0, 4, 3000).tolist()
    whole = tally(batch(keys, keys, times))
    merged = KeyTally.of(tally(batch(keys[:border], keys[:border], times[:border])).row())
    for first, end in ((border, border + 300), (border + 300, 3000)):
        part = tally(batch(keys[first:end], keys[first:end], times[first:end], None, first))
        merged.merge(part.row())
    assert merged.repeats.count == whole.repeats.count
    assert merged.resent.count == whole.resent.count
    assert 100 < whole.resent.count < whole.repeats.count


def test_partitions_do_not_repeat_each_other() -> None:
    one = tally(batch([b"a"], [b"1"]))
    both = KeyTally.of(one.row())
    both.merge(one.row(), follows=False)
    assert (both.records, both.repeats.count, both.resent.count) == (2, 0, 0)
