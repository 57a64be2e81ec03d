"""The files beside a log, rebuilt from the log alone as by a broker's recovery.

Rules: docs/format.md F114, F115 and F138.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.indexes import (
    write_offset_index,
    write_time_index,
    write_transaction_index,
)
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.format.side_files.producer_snapshot import write_producer_snapshot
from kafkalog.storage.recovery.framing import Readable
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.segment_recovery import SegmentRecovery, recover_segment


@dataclass(frozen=True, slots=True)
class SideFiles:
    """The contents of the files beside a log file.

    `txnindex` is None where no transaction was aborted: then there is no such file. `snapshot` has
    the producers at `end_offset`, by which the file is named. All of it holds for the first
    `valid_bytes` of the log file; `stop` says why it is not all of them.
    """

    base_offset: int
    end_offset: int
    valid_bytes: int
    stop: str | None
    index: bytes
    timeindex: bytes
    txnindex: bytes | None
    snapshot: bytes

    @property
    def by_name(self) -> dict[str, bytes]:
        """The contents by the names that the files have."""
        stem = f"{self.base_offset:020d}"
        files = {
            f"{stem}.index": self.index,
            f"{stem}.timeindex": self.timeindex,
            f"{self.end_offset:020d}.snapshot": self.snapshot,
        }
        if self.txnindex is not None:
            files[f"{stem}.txnindex"] = self.txnindex
        return files


def rebuild_side_files(
    log: Readable,
    base_offset: int,
    producers: ProducerState | None = None,
    epochs: list[EpochStart] | None = None,
    *,
    index_interval_bytes: int = INDEX_INTERVAL_BYTES,
) -> SideFiles:
    """Return all files beside a log file, from its batches up to the first that is damaged.

    `producers` and `epochs` are those at the segment's base, for a log's first segment none; they
    are brought up to the segment's end, for the next one. Transactions and producers that began
    before the segment are known by them only. Raises as `recover_segment` does.
    """
    producers = ProducerState() if producers is None else producers
    found = recover_segment(
        log,
        base_offset,
        producers,
        [] if epochs is None else epochs,
        index_interval_bytes=index_interval_bytes,
    )
    return _side_files(found, producers)


def _side_files(found: SegmentRecovery, producers: ProducerState) -> SideFiles:
    base_offset = found.base_offset
    return SideFiles(
        base_offset=base_offset,
        end_offset=base_offset if found.next_offset is None else found.next_offset,
        valid_bytes=found.valid_bytes,
        stop=found.stop,
        index=write_offset_index(found.offset_entries, base_offset),
        timeindex=write_time_index(found.time_entries, base_offset),
        txnindex=write_transaction_index(found.aborted) if found.aborted else None,
        snapshot=write_producer_snapshot(producers.producers.values()),
    )
