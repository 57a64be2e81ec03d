"""Real brokers' segments read in parts have the rows of segments read whole, with the indexes that
the brokers wrote and without. Rules: docs/options.md F500 to F503."""

import json
import shutil
from pathlib import Path

import pytest

from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from tests.support.golden.fixture_sets import CONSUMERS
from tests.support.logs.committed_reads import Row, rows_of
from tests.support.repository import Unpack

COLUMNS = ("topic", "partition", "offset", "timestampMs", "key", "value", "headers", "position")


def planned(logs: Path, **given: str) -> tuple[list[Row], list[tuple[SegmentRead, ...]]]:
    """The rows of all topics in order, and the tasks that read them."""
    paths = sorted({str(path.parent.parent) for path in logs.rglob("*.log")})
    options = read_options(
        {"paths": json.dumps(paths), "subscribe": "*", "mode": "PERMISSIVE", **given}
    )
    groups = planned_groups(options)
    rows = rows_of(groups, options, COLUMNS)
    reads = [tuple(read for read in group if isinstance(read, SegmentRead)) for group in groups]
    return sorted(rows, key=lambda row: row[:3]), reads


@pytest.mark.parametrize("name", CONSUMERS)
def test_parts_of_any_size_have_the_rows_of_the_whole(name: str, unpacked: Unpack) -> None:
    # F500, F501
    logs = unpacked(f"{name}.logs")
    whole, _ = planned(logs)
    rows, tasks = planned(logs, maxPartitionBytes="20000")
    assert rows == whole
    rows, tasks = planned(logs, maxPartitionBytes="1000")
    assert rows == whole
    parts = [read for task in tasks for read in task if read.requested_offset is not None]
    assert len(parts) > 10
    assert any(part.start_position for part in parts)


@pytest.mark.parametrize("index", [b"", bytes(800), b"\x00\x00\x00\x01\x00\x00\x00\x07" * 20])
def test_without_a_right_index_headers_tell_where_to_cut(
    index: bytes, unpacked: Unpack, tmp_path: Path
) -> None:
    # F502: an index without entries, one of zeros, one of wrong entries.
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka39zk.logs"), logs)
    whole, tasks = planned(logs, maxPartitionBytes="20000")
    right = sum(len(task) for task in tasks)
    for path in logs.rglob("*.index"):
        path.write_bytes(index)
    rows, tasks = planned(logs, maxPartitionBytes="20000")
    assert rows == whole
    assert right <= sum(len(task) for task in tasks) <= 2 * right


@pytest.mark.parametrize("most", [1, 10, 333])
def test_no_task_has_more_offsets_than_asked(most: int, unpacked: Unpack) -> None:
    # F503
    logs = unpacked("kafka39zk.logs")
    whole, _ = planned(logs, subscribe="zk.compact-tx,zk.del-records" if most == 1 else "*")
    given = {"subscribe": "zk.compact-tx,zk.del-records"} if most == 1 else {}
    rows, tasks = planned(logs, maxRecordsPerPartition=str(most), **given)
    assert rows == whole
    parsed = read_options({"path": "as planned", "mode": "PERMISSIVE"})
    assert max(len(rows_of([task], parsed, ("offset",))) for task in tasks) <= most


@pytest.mark.parametrize("least", [2, 50, 200])
def test_there_are_about_as_many_tasks_as_asked_at_least(least: int, unpacked: Unpack) -> None:
    whole, _ = planned(unpacked("kafka39zk.logs"))
    rows, tasks = planned(unpacked("kafka39zk.logs"), minPartitions=str(least))
    assert rows == whole
    assert 0.8 * least <= len(tasks) <= 3 * least + 20
