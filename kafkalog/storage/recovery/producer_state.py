"""What a broker knows of a partition's idempotent and transactional producers.

Built from the batches in the order of the log, as a broker does it when it loads a log: nothing is
refused but what would keep it from starting. Rules: docs/format.md F110 to F112.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.errors import CorruptDataError, KafkaLogError
from kafkalog.format.batch_header import NO_VALUE, BatchHeader
from kafkalog.format.faults import Fault
from kafkalog.format.side_files.indexes import AbortedTransaction
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.format.transaction_marker import ABORT, TransactionMarker


class BrokerStartError(KafkaLogError):
    """What is in a log directory keeps a broker from starting, or, unless it `ends_process`, from
    using that directory (docs/format.md F966)."""

    def __init__(self, detail: str, *, ends_process: bool = True) -> None:
        super().__init__(detail)
        self.ends_process = ends_process


def refuse_unreadable(error: CorruptDataError) -> None:
    """Raise BrokerStartError for bytes that cannot be read: a broker does not read around them, nor
    cuts a log there. Rule: docs/format.md F78."""
    if error.fault == Fault.UNREADABLE.label:
        raise BrokerStartError(
            f"{error}: a broker takes the log directory offline, and ends where it has no other",
            ends_process=False,
        ) from error


class ProducerState:
    """The producers of a partition up to an offset."""

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self.producers = {entry.producer_id: entry for entry in entries}
        # The first offsets of open transactions by producer id.
        self.open_transactions = {
            entry.producer_id: entry.transaction_first_offset
            for entry in self.producers.values()
            if entry.transaction_first_offset != NO_VALUE
        }

    def add_data_batch(self, header: BatchHeader) -> None:
        """Take note of a batch of records. Raises BrokerStartError for one outside a transaction
        of a producer that has one open."""
        known = self._entry(header.producer_id)
        first = known.transaction_first_offset
        if first != NO_VALUE and not header.is_transactional:
            raise BrokerStartError(
                f"producer {header.producer_id} has a transaction open since offset {first}, and "
                f"its batch at offset {header.base_offset} is not part of one"
            )
        if first == NO_VALUE and header.is_transactional:
            first = self.open_transactions[header.producer_id] = header.base_offset
        self.producers[header.producer_id] = ProducerEntry(
            header.producer_id,
            header.producer_epoch,
            header.last_sequence,
            header.last_offset,
            header.last_offset_delta,
            header.max_timestamp_ms,
            known.coordinator_epoch,
            first,
        )

    def add_marker(
        self, header: BatchHeader, marker: TransactionMarker
    ) -> AbortedTransaction | None:
        """Take note of a transaction's end; what goes to the transaction index if it was aborted.

        A marker without any batch before it ends nothing.
        """
        known = self._entry(header.producer_id)
        first = known.transaction_first_offset
        if header.producer_epoch != known.producer_epoch:
            # Of an earlier epoch no batch is remembered.
            known = self._entry(NO_VALUE)
        self.producers[header.producer_id] = known._replace(
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            timestamp_ms=marker.timestamp_ms,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_first_offset=NO_VALUE,
        )
        self.open_transactions.pop(header.producer_id, None)
        if first == NO_VALUE or marker.type != ABORT:
            return None
        stable = min(self.open_transactions.values(), default=header.base_offset + 1)
        return AbortedTransaction(header.producer_id, first, header.base_offset, stable)

    def _entry(self, producer_id: int) -> ProducerEntry:
        unknown = ProducerEntry(
            producer_id, NO_VALUE, NO_VALUE, NO_VALUE, 0, NO_VALUE, NO_VALUE, NO_VALUE
        )
        return self.producers.get(producer_id, unknown)
