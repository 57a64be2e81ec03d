"""The rows of tables `checksum_report` and `faults`, made without Spark."""

from pathlib import Path

from kafkalog.questions.checks import FAULTS, REPORT, CheckedSegments, check_totals
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import AskedView, LocalViews
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
