"""Runs of an export without Spark: plan, tasks one after another, and the commit."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkalog.lake.export_task import ExportTask
from kafkalog.lake.target import Target
from kafkalog.lake.written_file import WrittenFile, rows_by_partition
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.ingest_positions import IngestPositions, IngestRun, ingest_run
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.planning.state_sources import found_sources, range_options
from kafkalog.views.reading.reading import read_segment

_IN_VIEW = {"timestamp_ms": "timestampMs", "timestamp_type": "timestampType"}
COMPARED = (
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "timestamp_type",
    "key",
    "value",
    "headers",
)


def planned_run(
    target: Target, paths: Sequence[Path], *, full_refresh: bool = False, **options: str
) -> IngestRun:
    """What a run has to read of some log directories."""
    isolation = options.get("isolationLevel", "read_committed")
    recorded = target.recorded() or IngestPositions(isolation)
    return ingest_run(
        recorded,
        found_sources(read_options(_given(paths, isolation, options))),
        is_bounded="startingOffsets" in options,
        full_refresh=full_refresh,
        token=uuid.uuid4().hex,
    )


def written_files(target: Target, paths: Sequence[Path], run: IngestRun) -> list[WrittenFile]:
    """What the tasks of a run write, one task for every group of segments."""
    output = target.prepare(run)
    if not run.starts:
        return []
    given = _given(paths, run.positions.isolation_level, range_options(run, run.starts))
    options = read_options({**given, "stopAt": "logEnd"})
    task = ExportTask(options, {topic: output for topic, _ in run.starts})
    groups = [
        [read for read in group if isinstance(read, SegmentRead)]
        for group in planned_groups(options)
    ]
    return [file for group in groups for file in task.written_files(group)]


def exported(
    target: Target, paths: Sequence[Path], *, full_refresh: bool = False, **options: str
) -> IngestRun:
    """Carry out a run, as an export does; one that has nothing to do writes nothing."""
    run = planned_run(target, paths, full_refresh=full_refresh, **options)
    if run.has_work:
        files = written_files(target, paths, run)
        target.commit(files, run.with_rows(rows_by_partition(files)))
    return run


def view_rows(paths: Sequence[Path], **options: str) -> list[dict[str, Any]]:
    """The records of view `records`, with the names of the table's columns."""
    names = [name for name in COMPARED if name not in ("topic", "partition")]
    given = _given(paths, options.get("isolationLevel", "read_committed"), options)
    read = read_options({**given, "stopAt": "highWatermark"})
    rows: list[dict[str, Any]] = []
    for group in planned_groups(read):
        for each in group:
            assert isinstance(each, SegmentRead)
            columns = tuple(_IN_VIEW.get(name, name) for name in names)
            for batch in read_segment(each, read, columns):
                rows += [
                    {"topic": each.topic, "partition": each.partition, **row}
                    for row in batch.rename_columns(names).to_pylist()
                ]
    for row in rows:
        row["timestamp_ms"] = None if row["timestamp_ms"] == -1 else row["timestamp_ms"]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def sorted_rows(table: pa.Table, columns: Sequence[str] = COMPARED) -> list[dict[str, Any]]:
    """Rows of a table, by topic, partition and offset."""
    rows = [
        {**row, "topic": str(row["topic"])} if "topic" in row else row
        for row in table.select(list(columns)).to_pylist()
    ]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def _given(paths: Sequence[Path], isolation: str, options: dict[str, str]) -> dict[str, str]:
    return {
        "paths": json.dumps([str(path) for path in paths]),
        "isolationLevel": isolation,
        **options,
    }
