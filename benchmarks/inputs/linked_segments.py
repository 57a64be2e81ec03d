"""Partitions that are hard links to one large segment, so that the disk plays no part."""

from __future__ import annotations

from pathlib import Path

from benchmarks.inputs.prepared import prepare
from benchmarks.inputs.segments import read_segment, write_repeated
from benchmarks.inputs.wanted import GENERATED, MEGABYTE, Wanted
from benchmarks.measuring.report import progress

SEGMENT_BYTES = 2**30


def write_segment(
    path: Path, codec: str, record_size: int, inputs: Path, size: int = SEGMENT_BYTES
) -> None:
    """Write a segment of generated records, which are kept under `inputs`."""
    wanted = Wanted([codec], [record_size], 16 * MEGABYTE, inputs)
    (made,) = prepare(wanted, GENERATED, progress)
    with path.open("wb") as file:
        write_repeated(read_segment(made.path), size, file)


def linked_log_dir(segment: Path, partitions: int) -> Path:
    """A log directory whose partitions are the segment, so many times."""
    log_dir = segment.parent / f"{partitions}-partitions"
    for number in range(partitions):
        partition = log_dir / f"topic-{number}"
        partition.mkdir(parents=True, exist_ok=True)
        name = partition / f"{0:020}.log"
        if not name.exists():
            name.hardlink_to(segment)
    return log_dir
