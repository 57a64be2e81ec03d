"""Where a log ended at a past time. Rules: F1043, F1322."""

from pathlib import Path

import pytest

from kafkalog.format.transaction_marker import COMMIT
from kafkalog.inspection.logs.past_ends import past_end
from kafkalog.inspection.partitions.transactions import PastTime, stable_offset_row
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.logs.damageable_logs import SampleLog

AT_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
NOW_MS = AT_MS + 9 * HOUR_MS


def written(sample: SampleLog, log_dir: Path) -> PartitionLog:
    sample.write(log_dir / "orders-0", 4096)
    (log,) = find_partitions([str(log_dir)])
    return log


def sample_log() -> SampleLog:
    """A log whose records and markers have times that are AT_MS and their offsets."""
    return SampleLog(AT_MS)


def test_a_producer_ahead_of_the_readers_clock_does_not_end_a_log(tmp_path: Path) -> None:
    # F1322, F930: records 0 to 4; the clock of the producer of 5 and 6 is a year ahead.
    sample = sample_log()
    sample.add(5)
    sample.start_ms += 365 * 24 * HOUR_MS
    sample.add(2)
    sample.start_ms = AT_MS
    sample.add(3)
    log = written(sample, tmp_path)
    assert past_end(log, AT_MS + 8, NOW_MS) == 7
    assert past_end(log, AT_MS + 9, NOW_MS) == 10


@pytest.mark.parametrize(("after_ms", "end"), [(4, 3), (5, 6), (7, 6), (8, 9)])
def test_markers_have_the_last_word(tmp_path: Path, after_ms: int, end: int) -> None:
    # F1043: before the marker at 5 are the records 3 and 4 of a producer an hour ahead.
    sample = sample_log()
    sample.add(3, 7, in_transaction=True)
    sample.start_ms += HOUR_MS
    sample.add(2)
    sample.start_ms = AT_MS
    sample.end(7, COMMIT)
    sample.add(3)
    assert past_end(written(sample, tmp_path), AT_MS + after_ms, NOW_MS) == end


def test_of_a_log_that_begins_later_nothing_is_known(tmp_path: Path) -> None:
    # F1322
    sample = sample_log()
    sample.next_offset = 4
    sample.add(3)
    log = written(sample, tmp_path)
    assert past_end(log, AT_MS + 3, NOW_MS) is None
    assert stable_offset_row(log, PastTime(AT_MS + 3, NOW_MS)) == {}
    assert past_end(log, AT_MS + 6, NOW_MS) == 7


def test_a_log_that_begins_with_offset_0_was_empty_before(tmp_path: Path) -> None:
    # F1322
    sample = sample_log()
    sample.add(3)
    assert past_end(written(sample, tmp_path), AT_MS - 1, NOW_MS) == 0
