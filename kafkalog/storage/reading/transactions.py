"""The transactions of a partition, followed batch by batch. Rules: docs/format.md F210, F214, F215.

Every rule is about one producer id: epochs are not compared, for a marker may carry a later one
than the batches that it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.format.transaction_marker import ABORT, TransactionMarker


@dataclass(slots=True)
class PartitionTransaction:
    """What one partition holds of a transaction: its batches, and the marker that ends it.

    Offsets are None where there are no batches. `began_earlier`: batches below the place where
    following began are not counted.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    batches: int = 0
    records: int = 0
    bytes: int = 0
    began_earlier: bool = False
    file: str | None = None
    marker: TransactionMarker | None = None
    marker_offset: int | None = None
    marker_epoch: int | None = None
    marker_file: str | None = None

    @property
    def is_aborted(self) -> bool:
        return self.marker is not None and self.marker.type == ABORT


class OpenTransactions:
    """The transactions that have batches and no marker yet, by producer id."""

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self.by_producer = {
            entry.producer_id: PartitionTransaction(
                entry.producer_id,
                entry.producer_epoch,
                first_offset=entry.transaction_first_offset,
                last_timestamp_ms=entry.timestamp_ms,
                began_earlier=True,
            )
            for entry in entries
            if entry.transaction_first_offset != NO_VALUE
        }

    def of(self, producer_id: int, producer_epoch: int) -> PartitionTransaction:
        """Return the producer's open transaction, a new one if there is none."""
        found = self.by_producer.get(producer_id)
        if found is None:
            found = self.by_producer[producer_id] = PartitionTransaction(
                producer_id, producer_epoch
            )
        return found

    def end(
        self, producer_id: int, producer_epoch: int, offset: int, marker: TransactionMarker
    ) -> PartitionTransaction:
        """Return the transaction that a marker ends; one without batches if none was open."""
        ended = self.by_producer.pop(producer_id, None) or PartitionTransaction(
            producer_id, producer_epoch
        )
        ended.marker, ended.marker_offset, ended.marker_epoch = marker, offset, producer_epoch
        return ended


def last_stable_offset(
    end_offset: int, still_open: OpenTransactions, ended_above: Iterable[PartitionTransaction]
) -> int:
    """Return the offset below which every transaction is decided.

    `end_offset` is the high watermark, or the log end where that is not known; `ended_above` are
    the transactions whose marker is not below it.
    """
    firsts = [
        transaction.first_offset
        for transaction in (*still_open.by_producer.values(), *ended_above)
        if transaction.first_offset is not None
    ]
    return min([end_offset, *firsts])
