"""Log directories for tests: names as brokers give them, contents where they matter."""

from collections.abc import Mapping
from pathlib import Path

from kafkalog.storage.partition_log import LogDir, PartitionLog, SegmentFile

# What a broker puts between the dot and the mark of a directory on its way out.
UNIQUE = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"

LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"


def log_name(base_offset: int, mark: str = "") -> str:
    """The name of a segment's log file, with a mark such as `.deleted`."""
    return f"{base_offset:020d}.log{mark}"


def add_partition(log_dir: Path, name: str, *base_offsets: int, size: int = 0) -> Path:
    """A partition's directory: segments of `size` bytes each and what else a broker keeps there."""
    partition = log_dir / name
    partition.mkdir(parents=True)
    for base_offset in base_offsets:
        (partition / log_name(base_offset)).write_bytes(bytes(size))
        for suffix in ("index", "timeindex", "snapshot"):
            (partition / f"{base_offset:020d}.{suffix}").touch()
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    return partition


def add_meta_properties(log_dir: Path, cluster_id: str = "cluster", node_id: int = 1) -> None:
    """The file that makes a directory a log directory, in KRaft's form."""
    log_dir.mkdir(parents=True, exist_ok=True)
    text = f"#Tue Mar 05 10:00:00 UTC 2024\nnode.id={node_id}\nversion=1\ncluster.id={cluster_id}\n"
    (log_dir / "meta.properties").write_text(text)


def checkpoint_text(offsets: Mapping[tuple[str, int], int]) -> str:
    """A checkpoint as Kafka writes it."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines))


def segments_in(
    partition: Path, *base_offsets: int, size: int = 0, found_under: Path
) -> tuple[SegmentFile, ...]:
    """The segments to be found in a partition's directory."""
    followers = [*base_offsets[1:], None]
    return tuple(
        SegmentFile(
            str(partition / log_name(base_offset)), base_offset, follower, size, str(found_under)
        )
        for base_offset, follower in zip(base_offsets, followers, strict=False)
    )


def log_of(
    topic: str | None,
    partition: int | None,
    *base_offsets: int,
    log_dir: LogDir | None = None,
    size: int = 100,
    is_live: bool = True,
    is_named: bool = False,
) -> PartitionLog:
    """A partition's log that is on no disk, in the log directory `logs`."""
    place = Path("logs") / f"{topic}-{partition}"
    return PartitionLog(
        topic=topic,
        partition=partition,
        path=str(place),
        log_dir=LogDir("logs") if log_dir is None else log_dir,
        segments=segments_in(place, *base_offsets, size=size, found_under=Path("logs")),
        is_live=is_live,
        is_named=is_named,
    )
