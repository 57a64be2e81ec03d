"""Batches with a right checksum that salvage doubts, and keeps on request. F182, F196."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.message_set import write_old_message
from kafkalog.format.record_batch import with_checksum
from kafkalog.inspection.partitions.salvage import SalvageSettings, salvage_partition
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.logs.log_dirs import log_name
from tests.support.logs.samples import batch

LEFT_OUT = SalvageSettings(now_ms=1, index_interval_bytes=0)
KEPT = replace(LEFT_OUT, keeps_doubtful=True)
BATCH = len(batch(0))


def moved(data: bytes, base_offset: int) -> bytes:
    """The batch under another offset, which no checksum covers."""
    return base_offset.to_bytes(8, "big") + data[8:]


def counted(data: bytes, count: int) -> bytes:
    """The batch with a wrong count under a right checksum."""
    return with_checksum(data[:57] + count.to_bytes(4, "big") + data[61:])


def salvaged(
    tmp_path: Path, segments: Mapping[int, Sequence[bytes]], settings: SalvageSettings
) -> tuple[dict[str, Any], bytes]:
    """The row, and all that was written."""
    source = tmp_path / "source" / "orders-0"
    source.mkdir(parents=True)
    for base, batches in segments.items():
        (source / log_name(base)).write_bytes(b"".join(batches))
    (log,) = find_partitions([str(source.parent)])
    target = tmp_path / "target" / "orders-0"
    row = dict(salvage_partition(log, str(target), settings))
    return row, b"".join(path.read_bytes() for path in sorted(target.glob("*.log")))


JUMPS = {
    "within the last segment": {0: [batch(0), moved(batch(3), 1_000_003), batch(6)]},
    "before the next segment": {0: [batch(0), moved(batch(3), 1_000_003)], 6: [batch(6)]},
    "at the beginning of a segment": {0: [batch(0)], 3: [moved(batch(3), 77), batch(6)], 9: []},
    "back": {0: [batch(0), moved(batch(3), 1), batch(6)]},
}


@pytest.mark.parametrize("segments", JUMPS.values(), ids=JUMPS)
def test_a_batch_whose_offset_jumped_is_kept_under_the_offset_of_its_place(
    segments: Mapping[int, Sequence[bytes]], tmp_path: Path
) -> None:
    row, written = salvaged(tmp_path, segments, KEPT)
    assert written == batch(0) + batch(3) + batch(6)
    assert (row["doubtful_batches"], row["lost_ranges"], row["records"]) == (1, [], 9)
    assert row["kept_bytes"] + row["lost_bytes"] == row["source_bytes"]
    assert row["broker_starts"]


def test_it_is_left_out_by_default(tmp_path: Path) -> None:
    row, written = salvaged(tmp_path, JUMPS["within the last segment"], LEFT_OUT)
    (lost,) = row["lost_ranges"]
    assert (lost["kind"], lost["first_offset"], lost["last_offset"]) == ("offset_order", 3, 5)
    assert (written, row["doubtful_batches"]) == (batch(0) + batch(6), 0)


def test_it_is_left_out_where_its_place_has_another_number_of_offsets(tmp_path: Path) -> None:
    # Two batches are missing there, or one that was cleaned: nothing tells which offsets it had.
    segments = {0: [batch(0), moved(batch(3), 1_000_003), batch(9)]}
    row, written = salvaged(tmp_path, segments, KEPT)
    assert (written, row["doubtful_batches"]) == (batch(0) + batch(9), 0)
    (lost,) = row["lost_ranges"]
    assert (lost["first_offset"], lost["last_offset"]) == (3, 8)


def test_it_is_left_out_where_other_damage_is_beside_it(tmp_path: Path) -> None:
    damaged = bytearray(batch(6))
    damaged[70] ^= 1
    segments = {0: [batch(0), moved(batch(3), 1_000_003), bytes(damaged), batch(9)]}
    row, written = salvaged(tmp_path, segments, KEPT)
    assert (written, row["doubtful_batches"]) == (batch(0) + batch(9), 0)
    assert len(row["lost_ranges"]) == 2


def test_a_damaged_batch_is_never_kept(tmp_path: Path) -> None:
    damaged = bytearray(moved(batch(3), 1_000_003))
    damaged[70] ^= 1
    row, written = salvaged(tmp_path, {0: [batch(0), bytes(damaged), batch(6)]}, KEPT)
    assert (written, row["doubtful_batches"]) == (batch(0) + batch(6), 0)


@pytest.mark.parametrize(("count", "readable"), [(4, 3), (2, 1)])
def test_a_wrong_count_under_a_right_checksum_is_kept_as_it_is(
    count: int, readable: int, tmp_path: Path
) -> None:
    # T13: consumers get the records up to where the count goes wrong.
    doubtful = counted(batch(3), count)
    row, written = salvaged(tmp_path, {0: [batch(0), doubtful, batch(6)]}, KEPT)
    assert written == batch(0) + doubtful + batch(6)
    assert (row["doubtful_batches"], row["lost_ranges"]) == (1, [])
    assert row["records"] == 6 + readable
    assert row["log_end_offset"] == 9


def test_old_messages_are_kept_likewise(tmp_path: Path) -> None:
    messages = [write_old_message(offset, 1, b"k", b"value") for offset in range(3)]
    segments = {0: [messages[0], moved(messages[1], 1_000), messages[2]]}
    row, written = salvaged(tmp_path, segments, KEPT)
    assert (written, row["doubtful_batches"]) == (b"".join(messages), 1)
