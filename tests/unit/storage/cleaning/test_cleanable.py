"""Which part of a log would be cleaned. Rules: F240, F241; T42."""

from dataclasses import replace

import pytest

from kafkalog.storage.cleaning.cleanable import (
    CleanableLog,
    CleanablePart,
    CleanableSegment,
    cleanable_part,
)

NOW_MS = 1_000
# Five segments of ten offsets, of 1, 2, 4, 8 and 16 bytes; the last is the active one.
SEGMENTS = [CleanableSegment(10 * n, 2**n, 100 * n) for n in range(5)]
LOG = CleanableLog(SEGMENTS, 20, log_start_offset=0, log_end_offset=50, last_stable_offset=50)


def part(log: CleanableLog, lag_ms: int = 0) -> CleanablePart:
    return cleanable_part(log, now_ms=NOW_MS, min_compaction_lag_ms=lag_ms)


def test_from_the_checkpoint_to_the_active_segment() -> None:
    found = part(LOG)
    assert found == CleanablePart(20, 40, is_reset=False, clean_bytes=3, dirty_bytes=12)
    assert found.dirty_ratio == 12 / 15


def test_without_a_checkpoint_from_the_log_start() -> None:
    found = part(replace(LOG, checkpoint=None, log_start_offset=5))
    # A segment in which the first dirty offset lies counts on both sides.
    assert found == CleanablePart(5, 40, is_reset=False, clean_bytes=1, dirty_bytes=15)


@pytest.mark.parametrize("checkpoint", [9, 51])
def test_a_checkpoint_outside_the_log_does_not_count(checkpoint: int) -> None:
    log = replace(LOG, segments=SEGMENTS[1:], checkpoint=checkpoint, log_start_offset=10)
    assert part(log) == CleanablePart(10, 40, is_reset=True, clean_bytes=0, dirty_bytes=14)


def test_a_checkpoint_at_the_end_counts() -> None:
    assert not part(replace(LOG, checkpoint=50)).is_reset


@pytest.mark.parametrize(("stable", "end"), [(39, 30), (30, 30), (29, 20), (20, 20), (3, 20)])
def test_nothing_from_the_last_stable_offsets_segment_on(stable: int, end: int) -> None:
    # T17.
    assert part(replace(LOG, last_stable_offset=stable)).first_uncleanable_offset == end


def test_nothing_from_the_first_young_dirty_segment_on() -> None:
    # Segment 30 has the largest timestamp 300: with a lag of 700 it is just old enough.
    assert part(LOG, 700).first_uncleanable_offset == 40
    assert part(LOG, 701).first_uncleanable_offset == 30
    # Clean segments may be as young as they like.
    young = [replace_time(SEGMENTS[0], NOW_MS), *SEGMENTS[1:]]
    assert part(replace(LOG, segments=young), 700).first_uncleanable_offset == 40


def test_the_largest_lag_counts_from_the_first_batches_of_dirty_segments() -> None:
    # F241: not of clean segments, nor of the active one; 0 and -1 do not count.
    times_ms = (5, 0, 70, 60, 50)
    segments = [
        segment._replace(first_batch_timestamp_ms=time_ms)
        for segment, time_ms in zip(SEGMENTS, times_ms, strict=True)
    ]
    assert part(replace(LOG, segments=segments)).dirty_since_ms == 60
    assert part(replace(LOG, segments=segments, checkpoint=19)).dirty_since_ms == 60
    assert part(replace(LOG, segments=segments, checkpoint=9)).dirty_since_ms == 5
    assert part(replace(LOG, segments=segments, checkpoint=50)).dirty_since_ms is None
    assert part(LOG).dirty_since_ms is None


def replace_time(segment: CleanableSegment, largest_timestamp_ms: int) -> CleanableSegment:
    return segment._replace(largest_timestamp_ms=largest_timestamp_ms)


def test_a_log_with_nothing_in_it_has_no_ratio() -> None:
    empty = CleanableLog([CleanableSegment(0, 0, -1)], None, 0, 0, 0)
    assert part(empty).dirty_ratio is None
