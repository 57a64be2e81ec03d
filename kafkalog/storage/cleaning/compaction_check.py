"""Whether a cleaned log keeps what the cleaner promises for the part below its checkpoint.

Rules: docs/format.md F255 to F258. Memory grows with the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from kafkalog.format.batch_header import NO_VALUE, BatchHeader, read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.format.records import Record
from kafkalog.storage.cleaning.compaction import TransactionsToClean
from kafkalog.storage.cleaning.log_transactions import LogTransactions


class CompactionSeverity(Enum):
    """An error is a broken guarantee, a warning may have a cause that is no longer visible,
    information is legal."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"


class PlacedBatch(NamedTuple):
    """A whole batch and its place."""

    data: bytes
    file: str
    position: int


class CompactionFinding(NamedTuple):
    """Something in a cleaned log. `offset` is that of the record, or of the batch's last;
    `other_offset` that of the record which it contradicts."""

    kind: str
    severity: CompactionSeverity
    offset: int | None
    detail: str
    file: str | None = None
    position: int | None = None
    key: bytes | None = None
    other_offset: int | None = None


class _Place(NamedTuple):
    offset: int
    file: str
    position: int


class CleanedPartCheck:
    """Walks a log up to the cleaner's checkpoint, `end_offset`; counts what is legal, and yields
    what is not."""

    def __init__(self, end_offset: int, transactions: LogTransactions, now_ms: int) -> None:
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._open = transactions.open_transactions
        self._transactions = TransactionsToClean(transactions.aborted)
        self._keys: dict[bytes, _Place] = {}
        # By producer its last batch that has no record left.
        self._empty: dict[int, _Place] = {}
        self.records = 0
        self.expired_tombstones = 0
        self.expired_markers = 0

    @property
    def keys(self) -> int:
        """Keys met so far."""
        return len(self._keys)

    def findings(self, batches: Iterable[PlacedBatch]) -> Iterator[CompactionFinding]:
        """Yield the findings, in the order of the log."""
        for producer, first_offset in sorted(self._open.items()):
            if first_offset < self._end_offset:
                detail = f"producer {producer} has no later marker, and the log was cleaned"
                yield CompactionFinding(
                    "open_transaction", CompactionSeverity.ERROR, first_offset, detail
                )
        for batch in batches:
            header = read_header(batch.data, 0)
            if header.base_offset >= self._end_offset and header.magic == 2:
                return
            can_discard = self._transactions.add(header, batch.data)
            if header.is_control:
                self._note_marker(header)
            else:
                yield from self._data(batch, header, is_aborted=can_discard)

    def _note_marker(self, header: BatchHeader) -> None:
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is not None and horizon_ms <= self._now_ms:
            self.expired_markers += 1

    def _data(
        self, batch: PlacedBatch, header: BatchHeader, *, is_aborted: bool
    ) -> Iterator[CompactionFinding]:
        yield from self._empty_batches(batch, header)
        if is_aborted and header.records_count and header.last_offset < self._end_offset:
            detail = f"{header.records_count} records of an aborted transaction"
            yield _finding("aborted_records", _place(batch, header.last_offset), detail)
        if is_aborted:
            return
        for record in read_batch(batch.data, 0):
            if record.offset < self._end_offset:
                self.records += 1
                yield from self._record(record, _place(batch, record.offset), header)

    def _empty_batches(
        self, batch: PlacedBatch, header: BatchHeader
    ) -> Iterator[CompactionFinding]:
        """Only the last batch of a producer may be empty, and the last before the checkpoint."""
        if header.last_offset + 1 >= self._end_offset:
            return
        place = _place(batch, header.last_offset)
        if header.producer_id != NO_VALUE:
            stale = self._empty.pop(header.producer_id, None)
            if stale is not None:
                detail = f"not the last batch of producer {header.producer_id}"
                yield _finding("empty_batch", stale, detail, CompactionSeverity.WARNING)
            if not header.records_count:
                self._empty[header.producer_id] = place
        elif not header.records_count:
            yield _finding("empty_batch", place, "not of any producer", CompactionSeverity.WARNING)

    def _record(
        self, record: Record, place: _Place, header: BatchHeader
    ) -> Iterator[CompactionFinding]:
        if record.key is None:
            yield _finding("null_key", place, "a record without a key")
            return
        known = self._keys.get(record.key)
        if known is not None:
            found = _finding("duplicate_key", known, "a later record has the same key")
            yield found._replace(key=record.key, other_offset=record.offset)
        self._keys[record.key] = place
        horizon_ms = header.delete_horizon_ms
        if record.value is None and horizon_ms is not None and horizon_ms <= self._now_ms:
            self.expired_tombstones += 1


def _place(batch: PlacedBatch, offset: int) -> _Place:
    return _Place(offset, batch.file, batch.position)


def _finding(
    kind: str, place: _Place, detail: str, severity: CompactionSeverity = CompactionSeverity.ERROR
) -> CompactionFinding:
    return CompactionFinding(
        kind, severity, place.offset, detail, file=place.file, position=place.position
    )
