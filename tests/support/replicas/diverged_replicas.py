"""Made log directories of brokers whose replicas of orders-0 differ."""

from collections.abc import Sequence
from pathlib import Path

from kafkalog.format.segment_writer import write_segment
from kafkalog.format.side_files.leader_epochs import EpochStart, write_leader_epochs
from kafkalog.inspection.partitions.leader_choices import LeaderChoices
from kafkalog.storage.log_dir.log_dir import find_partitions

Epochs = Sequence[tuple[int, int]]


def write_replica(
    home: Path,
    broker: int,
    batches: Sequence[bytes],
    epochs: Epochs = ((0, 0),),
    *,
    base_offset: int = 0,
    is_clean: bool = True,
    high_watermark: int = 0,
) -> Path:
    """Write a broker's log directory with its replica of orders-0."""
    directory = home / str(broker) / "orders-0"
    directory.mkdir(parents=True)
    for name, data in write_segment(batches, base_offset).by_name.items():
        (directory / name).write_bytes(data)
    if epochs:
        text = write_leader_epochs([EpochStart(*each) for each in epochs])
        (directory / "leader-epoch-checkpoint").write_text(text)
    log_dir = directory.parent
    (log_dir / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={broker}\n")
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {high_watermark}\n")
    if is_clean:
        (log_dir / ".kafka_cleanshutdown").write_text("")
    return directory / f"{base_offset:020d}.log"


def choices(home: Path, *, without: Sequence[int] = ()) -> LeaderChoices:
    logs = find_partitions([str(path) for path in sorted(home.iterdir())])
    return LeaderChoices(logs, without=without)
