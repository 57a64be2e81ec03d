"""Partitions with transactions, several leader epochs and several segments, made to be damaged.

`SampleLog.write` gives a directory as a broker that was stopped leaves it; where each batch lies is
known.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.format.batch_header import CREATE_TIME
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, write_marker
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from tests.support.logs.log_dirs import add_meta_properties

_VALUE_BYTES = 120


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """A batch and its place; records of control batches are left out."""

    segment: int
    position: int
    data: bytes
    records: tuple[Record, ...]


@dataclass(slots=True)
class SampleLog:
    """A log that grows by batches. `start_ms` is the time of its first record."""

    start_ms: int
    epoch: int = 0
    batches: list[SampleBatch] = field(default_factory=list)
    next_offset: int = 0
    _segment: int = 0
    _position: int = 0
    _sequences: dict[int, int] = field(default_factory=dict)

    def add(
        self,
        count: int,
        producer: int | None = None,
        *,
        in_transaction: bool = False,
        producer_epoch: int = 0,
    ) -> SampleBatch:
        """A batch of records, of an idempotent producer if one is given."""
        source = random.Random(self.next_offset)
        records = tuple(
            Record(
                offset=self.next_offset + index,
                timestamp_ms=self.start_ms + self.next_offset + index,
                timestamp_type=CREATE_TIME,
                key=f"key-{self.next_offset + index}".encode(),
                value=source.randbytes(_VALUE_BYTES),
            )
            for index in range(count)
        )
        fields = BatchFields(leader_epoch=self.epoch)
        if producer is not None:
            sequence = self._sequences.get(producer, 0)
            self._sequences[producer] = sequence + count
            fields = BatchFields(
                leader_epoch=self.epoch,
                producer_id=producer,
                producer_epoch=producer_epoch,
                base_sequence=sequence,
                is_transactional=in_transaction,
            )
        return self._append(write_batch(records, fields), records, count)

    def end(self, producer: int, kind: int, *, producer_epoch: int = 0) -> SampleBatch:
        """The marker that ends the producer's transaction."""
        marker = TransactionMarker(kind, 6, self.start_ms + self.next_offset)
        fields = BatchFields(
            leader_epoch=self.epoch, producer_id=producer, producer_epoch=producer_epoch
        )
        return self._append(write_marker(marker, self.next_offset, fields), (), 1)

    def roll(self) -> None:
        """What follows is in a new segment."""
        self._segment, self._position = self.next_offset, 0

    def _append(self, data: bytes, records: tuple[Record, ...], count: int) -> SampleBatch:
        batch = SampleBatch(self._segment, self._position, data, records)
        self.batches.append(batch)
        self._position += len(data)
        self.next_offset += count
        return batch

    @property
    def segments(self) -> list[int]:
        """The base offsets."""
        return sorted({batch.segment for batch in self.batches})

    def write(self, directory: Path, index_interval_bytes: int) -> None:
        """Write all files of the partition into a directory that does not exist."""
        settings = LogSettings(index_interval_bytes=index_interval_bytes)
        with LogWriter(
            str(directory), settings, now_ms=lambda: self.start_ms, flush=lambda _: None
        ) as writer:
            segment = 0
            for batch in self.batches:
                if batch.segment != segment:
                    segment = batch.segment
                    writer.roll(segment)
                writer.append(batch.data)


def log_name(base_offset: int, kind: str = ".log") -> str:
    """A file of the segment."""
    return f"{base_offset:020d}{kind}"


def flip(directory: Path, batch: SampleBatch, at: int = 70) -> None:
    """Flip a bit of the batch, by default one that its checksum covers."""
    path = directory / log_name(batch.segment)
    data = bytearray(path.read_bytes())
    data[batch.position + at] ^= 1
    path.write_bytes(data)


@dataclass(frozen=True, slots=True)
class Transactions:
    """A log of committed and aborted transactions of two producers, and its batches by name."""

    log: SampleLog
    loose: SampleBatch
    first: SampleBatch
    other: SampleBatch
    other_abort: SampleBatch
    aborted: SampleBatch
    abort: SampleBatch
    last: SampleBatch
    commit: SampleBatch
    tail: SampleBatch


def transactions(start_ms: int) -> Transactions:
    """Three segments: offsets 0 to 30, 31 to 42, 43 to 63."""
    log, one, two = SampleLog(start_ms), 4711, 4712
    loose = log.add(10)
    first = log.add(10, one, in_transaction=True)
    other = log.add(10, two, in_transaction=True)
    log.end(one, COMMIT)
    log.roll()
    aborted = log.add(10, one, in_transaction=True)
    other_abort = log.end(two, ABORT)
    abort = log.end(one, ABORT)
    log.roll()
    last = log.add(10, one, in_transaction=True)
    commit = log.end(one, COMMIT)
    tail = log.add(10)
    return Transactions(log, loose, first, other, other_abort, aborted, abort, last, commit, tail)


def write_hanging_transaction(log_dir: Path, start_ms: int) -> int:
    """A log directory whose coordinator knows no producer: in orders-0 one transaction is
    committed, one aborted, and one has not ended, with records from offset 12 on, and others'
    after it. Returns the time of its last record."""
    log = SampleLog(start_ms)
    log.add(5, 7, in_transaction=True)
    log.end(7, COMMIT)
    log.add(5, 8, in_transaction=True)
    log.end(8, ABORT)
    last = log.add(2, 9, in_transaction=True).records[-1]
    log.add(3)
    log.write(log_dir / "orders-0", 4096)
    states = SampleLog(start_ms)
    states.add(1)
    states.write(log_dir / "__transaction_state-0", 4096)
    add_meta_properties(log_dir)
    return last.timestamp_ms
