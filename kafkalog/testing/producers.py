"""Producers that write in transactions, in a log directory that a test makes."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.arguments import known_arguments
from kafkalog.format.record_batch import BatchFields
from kafkalog.format.records import Record
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, write_marker
from kafkalog.testing.group_offsets import CommittedOffsets, GroupOffsets
from kafkalog.testing.made_logs import MadeLog
from kafkalog.testing.made_records import Clock
from kafkalog.testing.topics import Sent, Topic
from kafkalog.wire.compression import CompressionType


@known_arguments
class TransactionalProducer:
    """A producer, made by `LogDirectory.transactional_producer`.

    Its first records begin a transaction, which is open until `commit` or `abort`; then the next
    ones begin another. One that is never ended stays open, as that of a producer that died.
    """

    def __init__(self, producer_id: int, group_offsets: GroupOffsets, clock: Clock) -> None:
        self.producer_id = producer_id
        self._group_offsets = group_offsets
        self._clock = clock
        # The sequence number that each partition expects next.
        self._sequences: dict[TopicPartition, int] = {}
        self._open: dict[TopicPartition, MadeLog] = {}

    def records(self, topic: Topic, records: Sent, *, partition: int | None = None) -> None:
        """Append records to a topic, as `Topic.records` does, in the transaction."""
        codec = topic.compression
        topic.send(records, partition, lambda log, batch: self._append(log, batch, codec))

    def commit_offsets(self, group_id: str, offsets: CommittedOffsets) -> None:
        """Commit a group's offsets in the transaction: they count from its commit on."""
        self._group_offsets.commit(group_id, offsets, self._append)

    def commit(self) -> None:
        """End the transaction: its records are there for all."""
        self._end(COMMIT)

    def abort(self) -> None:
        """End the transaction: its records are not there for read_committed."""
        self._end(ABORT)

    def _append(
        self,
        log: MadeLog,
        records: Sequence[Record],
        compression: CompressionType = CompressionType.NONE,
    ) -> None:
        sequence = self._sequences.get(log.key, 0)
        fields = BatchFields(
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
            compression=compression,
        )
        log.append_records(records, fields)
        self._sequences[log.key] = sequence + len(records)
        self._open[log.key] = log

    def _end(self, kind: int) -> None:
        """A marker in each partition that has a part in the transaction."""
        if not self._open:
            return
        marker = TransactionMarker(kind, coordinator_epoch=0, timestamp_ms=self._clock.tick())
        fields = BatchFields(producer_id=self.producer_id, producer_epoch=0)
        for log in self._open.values():
            log.append(write_marker(marker, log.next_offset, fields))
        self._open.clear()
