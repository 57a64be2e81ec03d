"""A log of three segments for tests that read it, and logs of any segments."""

from collections.abc import Sequence
from pathlib import Path

from kafkalog.format.segment_writer import write_segment
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.logs.samples import batch

BATCHES = [batch(offset, value=bytes([offset]) * (100 + 7 * offset)) for offset in range(0, 60, 3)]
BASES = (0, 18, 39)
ENDS = (18, 39, 60)


def first_offset(encoded: bytes) -> int:
    return int.from_bytes(encoded[:8], "big")


def write_log(
    directory: Path, *segments: tuple[int, Sequence[bytes]], interval: int = 0
) -> PartitionLog:
    directory.mkdir(parents=True)
    for base, batches in segments:
        written = write_segment(batches, base, index_interval_bytes=interval)
        for name, content in written.by_name.items():
            (directory / name).write_bytes(content)
    (log,) = find_partitions([str(directory)])
    return log


def three_segments(directory: Path) -> PartitionLog:
    """Offsets 0 to 59 in batches of three and three segments, every batch in the index."""
    segments = [
        (base, [each for each in BATCHES if base <= first_offset(each) < end])
        for base, end in zip(BASES, ENDS, strict=True)
    ]
    return write_log(directory, *segments)


def index_path(log: PartitionLog, number: int) -> Path:
    return Path(log.segments[number].path).with_suffix(".index")


def expected_from(offset: int, max_bytes: int) -> bytes:
    """Whole batches of one segment from the one with the offset on, at least one."""
    end = next(end for end in ENDS if offset < end)
    data = b""
    for each in BATCHES:
        if first_offset(each) + 2 < offset or first_offset(each) >= end:
            continue
        if data and len(data) + len(each) > max_bytes:
            break
        data += each
    return data
