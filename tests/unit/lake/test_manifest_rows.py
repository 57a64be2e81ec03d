"""What a run read, in the columns of table `ingest_manifest`. Rule: F535."""

from datetime import UTC, datetime

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.lake.manifest_rows import TABLE, manifest_rows
from kafkalog.views.planning.ingest_positions import IngestPositions, IngestRange


def test_a_row_has_the_range_of_its_partition_and_what_the_run_has_written() -> None:
    ranges = (
        IngestRange("orders", 0, 3, 9, "log_end", "/logs", segments=2, segment_bytes=700, rows=5),
        IngestRange(
            "orders", 1, 5, 5, "log_end", "/logs", rows=0, finding="truncated", detail="shorter"
        ),
    )
    positions = IngestPositions("read_committed", 4, "token", ranges=ranges)
    rows = manifest_rows(positions, 1_700_000_000_123)
    assert rows.schema == arrow_schema(TABLE)
    first, second = rows.to_pylist()
    assert first == {
        **dict.fromkeys(rows.schema.names),
        "topic": "orders",
        "partition": 0,
        "input_path": "/logs",
        "from_offset": 3,
        "until_offset": 9,
        "until": "log_end",
        "rows": 5,
        "segments": 2,
        "segment_bytes": 700,
        "isolation_level": "read_committed",
        "ingest_run": 4,
        "written_at": datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC),
    }
    assert (second["rows"], second["finding"], second["detail"]) == (0, "truncated", "shorter")
