"""The batches that are lost with a choice of a leader, kept as logs: one for each replica that has
any. Rule: docs/format.md F795.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.sound_batches import batch_bytes
from kafkalog.errors import CorruptDataError
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.checkpoints import write_offset_checkpoint
from kafkalog.inspection.partitions.leader_choices import (
    BatchKey,
    LeaderChoices,
    Loss,
    Replica,
    batch_keys,
)
from kafkalog.inspection.partitions.salvage import SalvageSettings
from kafkalog.storage.files.output_files import write_file
from kafkalog.storage.names import RECOVERY_POINTS
from kafkalog.storage.partition_log import SegmentFile, topic_id
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replica_reads import overlaps
from kafkalog.storage.recovery.producer_state import BrokerStartError
from kafkalog.storage.writing.log_writer import LogWriter
from kafkalog.storage.writing.partition_output import write_partition_metadata
from kafkalog.storage.writing.salvaged_log_dir import copy_properties


@dataclass(slots=True)
class LostTail:
    """The lost batches that a replica has, as a log of their own. `log_dir` is its broker's
    directory in the export, `owned` the offsets [first, end) of the batches that no replica before
    it has, `left_out` batches that contradict those before them."""

    topic: str
    partition: int
    broker_id: int | None
    source_log_dir: str
    log_dir: str
    name: str
    end_offset: int = 0
    owned: list[tuple[int, int]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def directory(self) -> str:
        """The partition's directory in the export."""
        return os.path.join(self.log_dir, self.name)


def write_tails(choices: LeaderChoices, loss: Loss, target: str, now_ms: int) -> Iterator[LostTail]:
    """Write a log into `target` for each replica that has lost batches, byte for byte as there.
    Segments end where those of the replica do."""
    for number, replica in enumerate(choices.replicas):
        keys = [number in loss.batches.get(key, ()) for key in batch_keys(replica.batches)]
        rows = replica.batches[np.array(keys, dtype=np.bool_)]
        if len(rows):
            lost = {*batch_keys(rows)}
            owned = {key for key in lost if loss.batches[key][0] == number}
            tail = _new_tail(replica)
            window = int(first_offsets(rows).min()), int(rows[:, column.LAST_OFFSET].max()) + 1
            directory = os.path.join(target, tail.directory)
            settings = SalvageSettings(now_ms, INDEX_INTERVAL_BYTES).writing
            with LogWriter(
                directory, settings, now_ms=lambda: now_ms, start_offset=window[0]
            ) as writer:
                for segment in replica.log.segments:
                    if overlaps(segment, *window):
                        _append(segment, writer, tail, lost, owned)
            tail.end_offset = writer.next_offset
            write_partition_metadata(directory, topic_id(replica.log))
            yield tail


def _new_tail(replica: Replica) -> LostTail:
    broker = "unknown" if replica.broker_id is None else str(replica.broker_id)
    log = replica.log
    topic, partition = log.topic or "", log.partition or 0
    source = log.log_dir.path
    return LostTail(topic, partition, replica.broker_id, source, f"broker-{broker}", log.name)


def _append(
    segment: SegmentFile,
    writer: LogWriter,
    tail: LostTail,
    lost: Collection[BatchKey],
    owned: Collection[BatchKey],
) -> None:
    """Append the lost batches of a segment, the first one to a segment of its own."""
    is_new = True
    with opened_segment(segment) as file:
        for chunk in SegmentBatches(FileWindow(file), SegmentOptions.of(segment)).chunks():
            rows = chunk.table[chunk.table[:, column.FAULT] == 0]
            for row, first, key in zip(
                rows.tolist(), first_offsets(rows).tolist(), batch_keys(rows), strict=True
            ):
                if key not in lost:
                    continue
                if is_new and writer.segment_size:
                    writer.roll(max(segment.base_offset or 0, writer.next_offset))
                is_new = False
                try:
                    writer.append(batch_bytes(chunk, row))
                except (BrokerStartError, CorruptDataError) as error:
                    place = f"{segment.path}: position {row[column.POSITION]}"
                    tail.left_out.append(f"{place}: {error}")
                    continue
                if key in owned:
                    _own(tail, first, row[column.LAST_OFFSET] + 1)


def _own(tail: LostTail, first: int, end: int) -> None:
    if tail.owned and tail.owned[-1][1] == first:
        first, _ = tail.owned.pop()
    tail.owned.append((first, end))


def finish_tails(target: str, tails: Iterable[LostTail]) -> None:
    """Make each broker's directory in `target` a log directory of that broker."""
    by_broker = sorted(tails, key=lambda tail: tail.log_dir)
    for log_dir, found in groupby(by_broker, lambda tail: tail.log_dir):
        kept = list(found)
        path = os.path.join(target, log_dir)
        ends = {(tail.topic, tail.partition): tail.end_offset for tail in kept}
        text = write_offset_checkpoint(ends)
        write_file(os.path.join(path, RECOVERY_POINTS), text.encode(), os.fsync)
        copy_properties(kept[0].source_log_dir, path)
