"""Damaged partitions in one log directory, salvaged, and what a consumer of them must receive."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalog.format.records import Record
from kafkalog.format.side_files.checkpoints import write_offset_checkpoint
from kafkalog.inspection.partitions.salvage import SalvageSettings, salvage_partition
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.writing.salvaged_log_dir import finish_log_dir, salvageable
from tests.support.broker.consumed_rows import ConsumedRow, row_of
from tests.support.broker.prepared_cluster import INDEX_INTERVAL_BYTES, TOPIC, Cluster
from tests.support.golden.fixture_sets import UNCLEAN_VARIANTS
from tests.support.logs.damageable_logs import SampleBatch, Transactions, flip, transactions
from tests.support.logs.plain_reader import read_ranges, read_segment_records, with_record_faults

_LOG_START = 500
# An hour ago: of producers that were idle for a day a broker forgets what they did.
_MADE_START_MS = time.time_ns() // 1_000_000 - 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class DamagedCopy:
    """How to make a damaged partition.

    `variant` is one of the fixtures; `damage` does harm to a log of transactions, of which
    `committed` are the batches that a consumer of committed records must receive afterwards.
    """

    name: str
    variant: str | None = None
    log_start_offset: int = 0
    damage: Callable[[Path, Transactions], None] | None = None
    committed: Callable[[Transactions], tuple[SampleBatch, ...]] | None = None

    def __str__(self) -> str:
        return self.name

    def fill(self, cluster: Cluster, partition: int, variants: Path, scratch: Path) -> None:
        """Put the damaged partition into the cluster's log directory."""
        if self.variant is not None:
            (source,) = (variants / self.variant / "log-dirs").glob("*-0")
        else:
            assert self.damage is not None
            made = transactions(_MADE_START_MS)
            source = scratch / f"made-{partition}"
            made.log.write(source, INDEX_INTERVAL_BYTES)
            self.damage(source, made)
        cluster.fill(partition, source)


def _nothing(_: Path, __: Transactions) -> None:
    """The control."""


MADE_COPIES = (
    DamagedCopy(
        "transactions-whole",
        damage=_nothing,
        committed=lambda made: (made.loose, made.first, made.last, made.tail),
    ),
    DamagedCopy(
        "aborted-records-damaged",
        damage=lambda path, made: flip(path, made.aborted),
        committed=lambda made: (made.loose, made.first, made.last, made.tail),
    ),
    DamagedCopy(
        "committed-records-damaged",
        damage=lambda path, made: flip(path, made.first),
        committed=lambda made: (made.loose, made.last, made.tail),
    ),
    # What salvage cannot know: how a transaction ended whose marker is missing. The consumer waits
    # where it began.
    DamagedCopy(
        "last-marker-damaged",
        damage=lambda path, made: flip(path, made.commit),
        committed=lambda made: (made.loose, made.first),
    ),
    # Nor that it ended at all, if the producer went on: the next marker counts for both.
    DamagedCopy(
        "marker-between-damaged",
        damage=lambda path, made: flip(path, made.abort),
        committed=lambda made: (made.loose, made.first, made.aborted, made.last, made.tail),
    ),
)
ALL_COPIES = (
    *(DamagedCopy(variant, variant=variant) for variant in UNCLEAN_VARIANTS),
    DamagedCopy("log-start-moved", variant="zero-hole", log_start_offset=_LOG_START),
    *MADE_COPIES,
)
_SHORT_NAMES = (
    "bitflip-first-segment-recover-all", "zero-hole", "varint-broken-valid-crc",
    "epoch-checkpoint-garbage", "log-start-moved", "aborted-records-damaged",
    "last-marker-damaged", "marker-between-damaged",
)  # fmt: skip
SHORT_COPIES = tuple(copy for copy in ALL_COPIES if copy.name in _SHORT_NAMES)


def damaged_log_dir(
    cluster: Cluster, copies: Sequence[DamagedCopy], variants: Path, scratch: Path
) -> list[PartitionLog]:
    """Fill the cluster's log directory with the copies, each as the partition of its number."""
    starts: dict[tuple[str, int], int] = {}
    for partition, copy in enumerate(copies):
        copy.fill(cluster, partition, variants, scratch)
        if copy.log_start_offset:
            starts[TOPIC, partition] = copy.log_start_offset
    checkpoint = write_offset_checkpoint(starts)
    (cluster.log_dir / "log-start-offset-checkpoint").write_text(checkpoint)
    return salvageable(find_partitions([str(cluster.log_dir)]))


def salvage_log_dir(
    logs: Sequence[PartitionLog], target: Path, topic_id: str
) -> dict[int, dict[str, Any]]:
    """What the job does, without Spark; the rows of table `salvage` by partition."""
    now_ms = time.time_ns() // 1_000_000
    return salvage_logs(logs, target, SalvageSettings(now_ms, INDEX_INTERVAL_BYTES, topic_id))


def salvage_logs(
    logs: Sequence[PartitionLog], target: Path, settings: SalvageSettings
) -> dict[int, dict[str, Any]]:
    """Salvage with any settings."""
    target.mkdir()
    rows: dict[int, dict[str, Any]] = {}
    ends: dict[tuple[str, int], int] = {}
    cleaned: dict[tuple[str, int], int] = {}
    for log in logs:
        assert log.topic is not None and log.partition is not None
        row: dict[str, Any] = dict(salvage_partition(log, str(target / log.name), settings))
        rows[log.partition] = row
        ends[log.topic, log.partition] = row["log_end_offset"]
        if row.get("cleaned_offset") is not None:
            cleaned[log.topic, log.partition] = row["cleaned_offset"]
    finish_log_dir(logs[0].log_dir.path, str(target), ends, cleaned)
    return rows


def sound_rows(log: PartitionLog, log_start_offset: int) -> list[ConsumedRow]:
    """The records of a damaged log's sound batches, as a consumer prints them."""
    records: list[Record] = []
    for segment in log.segments:
        data = Path(segment.path).read_bytes()
        ranges = read_ranges(data, segment.base_offset, segment.next_base_offset)
        ranges = with_record_faults(data, ranges)
        told = [part for part in ranges if part.header and not part.header.is_control]
        records += read_segment_records(data, told)
    assert log.partition is not None
    return [row_of(log.partition, each) for each in records if each.offset >= log_start_offset]


def committed_rows(
    copy: DamagedCopy, partition: int, uncommitted: list[ConsumedRow]
) -> list[ConsumedRow]:
    """What a consumer of committed records receives; outside of transactions that is all."""
    if copy.committed is None:
        return uncommitted
    batches = copy.committed(transactions(_MADE_START_MS))
    return [row_of(partition, record) for batch in batches for record in batch.records]
