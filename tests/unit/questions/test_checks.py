"""The rows of tables `checksum_report` and `faults`, made without Spark."""

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.questions.checks import (
    FAULTS,
    REPORT,
    CheckedSegments,
    check_totals,
    checks,
    with_sound_files,
)
from kafkalog.questions.recovery import RecoveryRequest, recovery_plan
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import AskedView, LocalViews
from kafkalog.views.options.options import Shutdown
from tests.support.logs.samples import batch
from tests.support.repository import EXAMPLES

DAMAGED = EXAMPLES / "damaged"


def test_a_row_for_each_segment_and_each_finding_in_it() -> None:
    """The damage was done by hand: recovery.json of the example describes it."""
    views = LocalViews([str(DAMAGED)], find_partitions([str(DAMAGED)]), processes=1)
    asked = AskedView("byte_ranges", fold=CheckedSegments)
    batches = [*asked.reduced(views.batches(AskedView("byte_ranges")))]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert all((row[REPORT] is None) != (row[FAULTS] is None) for row in rows)
    reports = [row[REPORT] for row in rows if row[REPORT] is not None]
    (log,) = find_partitions([str(DAMAGED)])
    assert {row["file"]: row["bytes"] for row in reports} == {
        segment.path: Path(segment.path).stat().st_size for segment in log.segments
    }
    for row in reports:
        assert row["valid_bytes"] + row["faulty_bytes"] + row["trailing_bytes"] == row["bytes"]
    first = {
        Path(row["file"]).name: (row["first_fault"], row["first_fault_position"], row["faults"])
        for row in reports
        if row["verdict"] == "damaged"
    }
    assert first == {
        "00000000000000000000.log": ("checksum", 23728, 1),
        "00000000000000002663.log": ("zeros", 7979, 2),
    }
    found = [row[FAULTS] for row in rows if row[FAULTS] is not None]
    assert [(row["kind"], row["position"], row["length"]) for row in found] == [
        ("checksum", 23728, 1558),
        ("zeros", 7979, 4096),
        ("garbage", 12075, 3879),
    ]
    totals = check_totals(reports)
    assert (totals.segments, totals.partitions, totals.damaged_segments) == (7, 1, 2)
    assert (totals.faults, totals.faulty_bytes) == (3, 1558 + 4096 + 3879)


@pytest.mark.parametrize("example", ["damaged", "kafka-4.4", "kafka-0.10"])
@pytest.mark.parametrize("shutdown", [Shutdown.CLEAN, Shutdown.UNCLEAN])
def test_sound_files_need_no_second_reading_for_a_plan(example: str, shutdown: Shutdown) -> None:
    # F1331
    paths = [str(EXAMPLES / example)]
    views = LocalViews(paths, find_partitions(paths), processes=1)
    known = with_sound_files(views.logs, checks(views, with_indexes=False).report)
    assert any(log.sound_files for log in known)
    request = RecoveryRequest(shutdown.value, INDEX_INTERVAL_BYTES, 1_700_000_000_000)
    expected = [*recovery_plan(views, request).plan]
    found = [*recovery_plan(views, replace(request, logs=known)).plan]
    assert found == expected


def test_retention_deletes_the_records_that_a_check_has_counted() -> None:
    # F1324. The broker's checkpoint has the log end 940: no offset of the topic is missing.
    paths = [str(EXAMPLES / "kafka-0.10" / "old.codec-gzip-0")]
    views = LocalViews(paths, find_partitions(paths), processes=1)
    known = with_sound_files(views.logs, checks(views, with_indexes=False).report)
    request = RecoveryRequest(Shutdown.CLEAN.value, INDEX_INTERVAL_BYTES, 1_700_000_000_000)
    for logs in (known, views.logs):
        (row,) = recovery_plan(views, replace(request, logs=logs)).plan
        assert (row["deleted_soon"]["segments"], row["deleted_soon"]["records"]) == ([0, 727], 940)


def test_a_file_that_has_changed_since_is_read_again(tmp_path: Path) -> None:
    # F1331
    partition = tmp_path / "orders-0"
    partition.mkdir()
    file = partition / "00000000000000000000.log"
    file.write_bytes(batch(0))
    paths = [str(tmp_path)]
    views = LocalViews(paths, find_partitions(paths), processes=1)
    known = with_sound_files(views.logs, checks(views, with_indexes=False).report)
    file.write_bytes(batch(0) + bytes(100))
    request = RecoveryRequest(Shutdown.UNCLEAN.value, INDEX_INTERVAL_BYTES, 1, logs=known)
    (row,) = recovery_plan(views, request).plan
    assert (row["cut_position"], row["lost_bytes"]) == (len(batch(0)), 100)
