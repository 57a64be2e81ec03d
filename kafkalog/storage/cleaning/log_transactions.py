"""The transactions and producers of a whole log from its batches, markers included.

Rules: docs/format.md F110 to F112, and F248 for what the cleaner uses of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.format.batch_header import NO_VALUE, read_header
from kafkalog.format.side_files.indexes import AbortedTransaction
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.segment_recovery import add_to_producers
from kafkalog.storage.writing.log_writer import BatchInMemory


class LastBatch(NamedTuple):
    """The last state of a producer in a broker: its newest epoch and, unless a marker began that
    epoch, the last offset of its last batch of records."""

    epoch: int
    last_data_offset: int | None


@dataclass(frozen=True, slots=True)
class LogTransactions:
    """The producers at the end of a log, the transactions that were aborted, in the order of
    their markers, and the first offsets of those that are open, by producer id."""

    producers: dict[int, LastBatch]
    aborted: tuple[AbortedTransaction, ...]
    open_transactions: dict[int, int]

    @property
    def first_open_offset(self) -> int | None:
        """Where the first open transaction begins."""
        return min(self.open_transactions.values(), default=None)


def log_transactions(batches: Iterable[bytes]) -> LogTransactions:
    """Walk whole batches in the order of the log, from its beginning to its end.

    Aborted transactions without remaining records are not reported. Raises BrokerStartError if a
    batch contradicts an open transaction, and CorruptDataError for a control batch that cannot be
    read.
    """
    state = ProducerState()
    aborted: list[AbortedTransaction] = []
    for batch in batches:
        header = read_header(batch, 0)
        if header.magic == LATEST_FORMAT:
            ended = add_to_producers(BatchInMemory(batch), Frame(0, header), state)
            if ended is not None:
                aborted.append(ended)
    return LogTransactions(
        {number: _last_batch(entry) for number, entry in state.producers.items()},
        tuple(aborted),
        dict(state.open_transactions),
    )


def _last_batch(entry: ProducerEntry) -> LastBatch:
    last = entry.last_offset
    return LastBatch(entry.producer_epoch, None if last == NO_VALUE else last)
