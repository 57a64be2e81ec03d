"""What a run read of each partition, as rows of table `ingest_manifest`, in Arrow.

Columns: schemas/tables/ingest_manifest.json.
"""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from kafkalog.columns.table_rows import table_batch
from kafkalog.views.planning.ingest_positions import IngestPositions

TABLE = "ingest_manifest"


def manifest_rows(positions: IngestPositions, now_ms: int) -> pa.RecordBatch:
    """Return a row for each range of the newest run, whose rows are counted."""
    of_run = {
        "ingest_run": positions.run,
        "isolation_level": positions.isolation_level,
        "written_at": now_ms * 1000,
    }
    return table_batch(TABLE, [asdict(each) for each in positions.ranges], of_run)
