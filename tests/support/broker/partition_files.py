"""Putting segments of our own into the log directory of a stopped broker."""

from collections.abc import Iterable
from pathlib import Path

from kafkalog.format.segment_writer import SegmentFiles
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN

# The topic's id is in it: by that alone a broker knows the directory as its own.
_KEPT = "partition.metadata"
_RECOVERY_POINTS = "recovery-point-offset-checkpoint"


def write_segments(directory: Path, segments: Iterable[SegmentFiles]) -> list[Path]:
    """Write the segments' files into a directory that exists; their paths."""
    paths: list[Path] = []
    for segment in segments:
        for name, content in segment.by_name.items():
            (directory / name).write_bytes(content)
            paths.append(directory / name)
    return paths


def replace_segments(
    log_dir: Path, topic: str, partition: int, segments: Iterable[SegmentFiles]
) -> None:
    """Let a partition that the broker created hold these segments and nothing else."""
    directory = log_dir / f"{topic}-{partition}"
    for path in directory.iterdir():
        if path.name != _KEPT:
            path.unlink()
    write_segments(directory, segments)


def demand_recovery(log_dir: Path) -> None:
    """Make the broker check every batch of every partition when it starts, as after a crash."""
    for name in (CLEAN_SHUTDOWN, _RECOVERY_POINTS):
        (log_dir / name).unlink(missing_ok=True)
