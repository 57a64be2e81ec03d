"""Lag where the log is damaged, and what is read to count it. F310 to F317."""

import time
from pathlib import Path

import numpy as np
import pytest

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.lag.lag_bounds import KnownCommits
from kafkalog.inspection.lag.lag_columns import LagAccounts, lag_accounts
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.wire.compression import CompressionType
from tests.support.lag.lag_identity import assert_parts_add_up
from tests.support.logs.log_dirs import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    add_meta_properties,
    checkpoint_text,
)

NOW_MS = time.time_ns() // 1_000_000

START_MS = 1_700_000_000_000
PER_BATCH = 10


def batch(first: int, count: int = PER_BATCH) -> bytes:
    """Records a second apart, the first of the log at START_MS."""
    records = [
        Record(offset, START_MS + 1000 * offset, 0, b"key", b"value" * 20)
        for offset in range(first, first + count)
    ]
    return write_batch(records, BatchFields())


def written(
    tmp_path: Path,
    *segments: tuple[int, bytes],
    checkpoints: dict[str, int] | None = None,
    is_clean: bool = False,
) -> PartitionLog:
    add_meta_properties(tmp_path)
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for base, data in segments:
        (directory / f"{base:020d}.log").write_bytes(data)
    for name, offset in (checkpoints or {}).items():
        (tmp_path / name).write_text(checkpoint_text({("orders", 0): offset}))
    if is_clean:
        (tmp_path / ".kafka_cleanshutdown").touch()
    (log,) = find_partitions([str(tmp_path)])
    return log


def asked(log: PartitionLog, *committed: int, at_ms: int | None = None) -> LagAccounts:
    moments: LongArray | None = None if at_ms is None else np.full(len(committed), at_ms)
    found = lag_accounts(log, np.array(committed), moments, read_committed=False, now_ms=NOW_MS)
    assert_parts_add_up(found)
    return found


@pytest.fixture
def batches() -> list[bytes]:
    return [batch(first) for first in range(0, 50, PER_BATCH)]


@pytest.mark.parametrize("place", ["payload", "framing"])
def test_damage_hides_offsets_and_what_the_next_record_is(
    place: str, batches: list[bytes], tmp_path: Path
) -> None:
    # F314, F315
    broken = bytearray(batches[2])
    if place == "payload":
        broken[-3] ^= 0xFF
    else:
        broken[8:12] = (len(broken) + 5).to_bytes(4, "big")
    batches[2] = bytes(broken)
    log = written(tmp_path, (0, b"".join(batches)))
    found = asked(log, 5, 20, 25, 30)
    assert found.damaged.tolist() == [10, 10, 5, 0]
    assert found.readable_records.tolist() == [35, 20, 20, 20]
    assert found.next_offset.tolist() == [5, -1, -1, 30]
    assert found.consumed_timestamp_ms.tolist() == [START_MS + 4000, START_MS + 19000, -1, -1]


def test_a_flipped_bit_that_no_answer_needs_is_not_looked_for(
    batches: list[bytes], tmp_path: Path
) -> None:
    # F317: the third batch is not decoded, and headers say nothing of it.
    broken = bytearray(batches[2])
    broken[-3] ^= 0xFF
    batches[2] = bytes(broken)
    found = asked(written(tmp_path, (0, b"".join(batches))), 5)
    assert found.damaged.tolist() == [0]


def test_a_count_that_the_offsets_do_not_allow_is_damage(
    batches: list[bytes], tmp_path: Path
) -> None:
    # F314
    broken = bytearray(batches[2])
    broken[57:61] = (1000).to_bytes(4, "big")
    batches[2] = bytes(broken)
    found = asked(written(tmp_path, (0, b"".join(batches))), 0)
    assert found.damaged.tolist() == [10]
    assert found.gaps.tolist() == [0]


@pytest.mark.parametrize(("count", "is_cleaned"), [(0, False), (0, True), (9, False)])
def test_a_count_that_nothing_explains_is_damage(
    count: int, is_cleaned: bool, batches: list[bytes], tmp_path: Path
) -> None:
    # F314, F317: a batch without records is a header alone, and fewer than appended only the
    # cleaner leaves.
    broken = bytearray(batches[2])
    broken[57:61] = count.to_bytes(4, "big")
    batches[2] = bytes(broken)
    checkpoints = {CLEANED: 50} if is_cleaned else {}
    found = asked(written(tmp_path, (0, b"".join(batches)), checkpoints=checkpoints), 0)
    assert (found.damaged.tolist(), found.gaps.tolist()) == ([10], [0])
    assert found.readable_records.tolist() == [40]


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_a_missing_segment_is_damage_unless_the_log_was_cleaned(
    is_cleaned: bool, batches: list[bytes], tmp_path: Path
) -> None:
    # F314, F313
    checkpoints = {CLEANED: 30} if is_cleaned else {}
    log = written(
        tmp_path, (0, b"".join(batches[:2])), (30, b"".join(batches[3:])), checkpoints=checkpoints
    )
    found = asked(log, 0, 25)
    hidden, gaps = ([0, 0], [10, 5]) if is_cleaned else ([10, 5], [0, 0])
    assert found.damaged.tolist() == hidden
    assert found.gaps.tolist() == gaps


def test_what_the_log_lacks_below_its_high_watermark_is_damage(
    batches: list[bytes], tmp_path: Path
) -> None:
    # F314, F311: after a clean stop the high watermark is not above the log's end.
    marks = {HIGH_WATERMARKS: 60}
    log = written(tmp_path, (0, b"".join(batches)), checkpoints=marks, is_clean=True)
    found = asked(log, 45, 55, 60, 70)
    assert found.lag.tolist() == [15, 5, 0, -10]
    assert found.damaged.tolist() == [10, 5, 0, 0]
    assert found.ahead_of_log.tolist() == [0, 0, 0, 10]
    assert found.next_offset.tolist() == [45, -1, -1, -1]


def test_offsets_below_the_log_start_are_lost(batches: list[bytes], tmp_path: Path) -> None:
    # F310; T31: the log starts inside a batch.
    log = written(tmp_path, (0, b"".join(batches)), checkpoints={LOG_STARTS: 13})
    found = asked(log, 4, 13, 14)
    assert found.below_log_start.tolist() == [9, 0, 0]
    assert found.readable_records.tolist() == [37, 37, 36]
    assert found.next_offset.tolist() == [13, 13, 14]
    assert found.consumed_timestamp_ms.tolist() == [-1, -1, START_MS + 13_000]


def test_a_moment_before_what_is_left_of_the_log_is_not_known(
    batches: list[bytes], tmp_path: Path
) -> None:
    # F312
    log = written(tmp_path, (10, b"".join(batches[1:])), checkpoints={LOG_STARTS: 10})
    before = asked(log, 5, 12, at_ms=START_MS + 5000)
    assert before.is_before_log.tolist() == [True, True]
    later = asked(log, 5, 12, at_ms=START_MS + 15_500)
    assert later.is_before_log.tolist() == [False, False]
    assert later.high_watermark.tolist() == [16, 16]
    assert later.below_log_start.tolist() == [5, 0]


def test_a_timestamp_from_the_future_does_not_end_a_log_for_ever(
    batches: list[bytes], tmp_path: Path
) -> None:
    # F312: the clock of its producer was wrong.
    far_ms = 4_102_444_800_000
    batches[1] = write_batch(
        [Record(offset, far_ms, 0, None, b"x") for offset in range(10, 20)], BatchFields()
    )
    log = written(tmp_path, (0, b"".join(batches)))
    assert asked(log, 0, at_ms=START_MS + 35_500).high_watermark.tolist() == [36]
    assert asked(log, 0, at_ms=START_MS + 9_000).high_watermark.tolist() == [20]


def test_what_was_committed_of_an_earlier_log_of_the_name_shows_nothing(
    batches: list[bytes], tmp_path: Path
) -> None:
    # F312: 9,000 is above the end of today; the commit of 30 counts from its own time on.
    log = written(tmp_path, (0, b"".join(batches)))
    committed, at_ms = np.array([9000, 30, 4]), START_MS + np.array([1000, 5000, 6000])
    assert KnownCommits.of(at_ms, committed).reached_by(log, at_ms).tolist() == [0, 30, 30]


def test_of_a_large_log_the_batches_at_asked_offsets_are_decoded_and_no_more(
    tmp_path: Path,
) -> None:
    # F317: 1,000 batches; three offsets inside of one, one between two, and the end.
    data = b"".join(batch(first) for first in range(0, 10_000, PER_BATCH))
    log = written(tmp_path, (0, data))
    found = asked(log, 5003, 5005, 5007)
    assert found.work.decoded_batches == 1
    assert found.work.headers <= 1000
    assert found.readable_records.tolist() == [4997, 4995, 4993]
    between = asked(log, 5000)
    # The first record to come, and the last that was consumed.
    assert between.work.decoded_batches == 2
    at_end = asked(log, 10_000)
    assert at_end.work.decoded_batches == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages_of_old_formats_are_decompressed_and_counted_apart(
    magic: int, tmp_path: Path
) -> None:
    # F313, F317: their headers do not tell how many there are.
    sets = [
        write_message_set(
            [
                Record(offset, START_MS + offset, 0, None, b"x")
                for offset in range(first, first + 5)
            ],
            magic,
            CompressionType.GZIP,
        )
        for first in range(0, 50, 5)
    ]
    log = written(tmp_path, (0, b"".join(sets)))
    found = asked(log, 20, 23)
    assert found.readable_records.tolist() == [30, 27]
    # Those from offset 20 on, and the one whose last record was consumed.
    assert found.work.decompressed_sets == 7
    assert found.work.decoded_batches == 0
