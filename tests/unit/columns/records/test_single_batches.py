"""Batches that are decoded together have the records that each has alone."""

from __future__ import annotations

import pytest

from kafkalog.columns.records.single_batches import batch_records, records_of_batches
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType


def batch(first: int, records: int = 3, codec: str = "NONE") -> bytes:
    return write_batch(
        [
            Record(offset, 1000 * offset, 0, None, b"value")
            for offset in range(first, first + records)
        ],
        BatchFields(compression=CompressionType[codec]),
    )


def offsets_of(batches: list[bytes], lasts: list[int]) -> list[list[int] | None]:
    return [
        None if found is None else found.offsets.tolist()
        for found in records_of_batches(batches, lasts)
    ]


@pytest.mark.parametrize("codec", ["NONE", "GZIP", "ZSTD"])
def test_neighbours_and_batches_with_gaps_between_them(codec: str) -> None:
    batches = [batch(0, codec=codec), batch(3, codec=codec), batch(90, 1, codec=codec)]
    found = records_of_batches(batches, [2, 5, 90])
    assert [each.offsets.tolist() for each in found if each] == [[0, 1, 2], [3, 4, 5], [90]]
    assert [each.timestamps_ms.tolist() for each in found if each] == [
        [0, 1000, 2000],
        [3000, 4000, 5000],
        [90_000],
    ]
    assert all(each is not None and set(each.timestamp_types.tolist()) == {0} for each in found)


def test_a_damaged_batch_hides_none_of_its_neighbours() -> None:
    damaged = bytearray(batch(3))
    damaged[-1] ^= 1
    assert batch_records(bytes(damaged)) is None
    assert offsets_of([batch(0), bytes(damaged), batch(6)], [2, 5, 8]) == [
        [0, 1, 2],
        None,
        [6, 7, 8],
    ]


def test_a_batch_whose_records_were_all_removed_has_none() -> None:
    emptied = write_batch([], BatchFields(base_offset=3, last_offset=5))
    assert offsets_of([batch(0), emptied, batch(6)], [2, 5, 8]) == [[0, 1, 2], None, [6, 7, 8]]


def test_nothing_is_asked() -> None:
    assert records_of_batches([], []) == []
