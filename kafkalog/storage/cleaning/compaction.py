"""Compaction as a pure function over batches: what a broker's cleaner writes of a partition's log.

The cleaner compares 16-byte MD5 sums of keys; here whole keys are compared, so that no record is
lost to two keys with one sum. Memory grows with the keys of the cleaned part, not with values.
Rules: docs/format.md F240 to F251, as brokers from 4.0 on have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kafkalog.format.batch_header import LOG_APPEND_TIME, NO_VALUE, BatchHeader, read_header
from kafkalog.format.record_batch import BatchFields, emptied_batch, read_batch, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.indexes import AbortedTransaction
from kafkalog.format.transaction_marker import ABORT, COMMIT, read_marker
from kafkalog.storage.cleaning.log_transactions import LastBatch
from kafkalog.storage.recovery.framing import LATEST_FORMAT
from kafkalog.wire.compression import CompressionType


@dataclass(frozen=True, slots=True)
class CleaningRound:
    """The input of one cleaning of a log.

    Keys are compared from `first_dirty_offset` on; nothing changes from `first_uncleanable_offset`
    on. The batch that ends at `high_watermark`, exclusive, stays. `producers` and `aborted` cover
    the whole log. `legacy_delete_horizon_ms` concerns tombstones of formats 0 and 1: the time at
    which the last segment below `first_dirty_offset` was last written, less `delete_retention_ms`;
    0 without such a segment.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    high_watermark: int
    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, LastBatch]
    aborted: Sequence[AbortedTransaction]
    legacy_delete_horizon_ms: int = 0


class SourceBatch(NamedTuple):
    """A whole batch, and when its file was last written."""

    data: bytes
    modified_ms: int = 0


class CleanedBatch(NamedTuple):
    """A batch, and what the cleaner leaves of it: the same bytes, other bytes, or None."""

    source: bytes
    cleaned: bytes | None


def last_offsets(batches: Iterable[SourceBatch], cleaning: CleaningRound) -> dict[bytes, int]:
    """Return the last offset of each key among the committed records of the part to be cleaned.

    `batches` are sound and in the order of the log. Raises CorruptDataError for one whose records
    cannot be read.
    """
    transactions = TransactionsToClean(cleaning.aborted)
    found: dict[bytes, int] = {}
    for source in batches:
        header = read_header(source.data, 0)
        if header.last_offset >= cleaning.first_uncleanable_offset:
            break
        can_discard = transactions.add(header, source.data)
        if header.is_control or can_discard or header.last_offset < cleaning.first_dirty_offset:
            continue
        for record in read_batch(source.data, 0):
            if record.key is not None and record.offset >= cleaning.first_dirty_offset:
                found[record.key] = record.offset
    return found


def cleaned_batches(
    batches: Iterable[SourceBatch], last: Mapping[bytes, int], cleaning: CleaningRound
) -> Iterator[CleanedBatch]:
    """Yield each batch with what the cleaner leaves of it; `last` is the result of `last_offsets`.

    Raises CorruptDataError for one whose records cannot be read.
    """
    transactions = TransactionsToClean(cleaning.aborted)
    for source in batches:
        header = read_header(source.data, 0)
        if header.last_offset >= cleaning.first_uncleanable_offset:
            yield CleanedBatch(source.data, source.data)
            continue
        can_discard = transactions.add(header, source.data)
        left = _cleaned(source, header, last, cleaning, can_discard=can_discard)
        yield CleanedBatch(source.data, left)


class TransactionsToClean:
    """Which batches are of no more use, by the transactions around them; `aborted` are all of the
    log, and the batches come in its order."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        # The next one is the last.
        self._ahead = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        # By producer id whether a batch of the aborted transaction was met.
        self._aborted: dict[int, bool] = {}
        self._committed: set[int] = set()

    def add(self, header: BatchHeader, batch: bytes) -> bool:
        """Return whether the next batch of the log holds aborted records, or is the marker of a
        transaction without remaining batches."""
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            self._aborted.setdefault(self._ahead.pop().producer_id, False)
        if header.is_control:
            return self._ends(header, batch)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._aborted[header.producer_id] = True
            return True
        self._committed.add(header.producer_id)
        return False

    def _ends(self, header: BatchHeader, batch: bytes) -> bool:
        if not header.records_count:
            return True
        kind = read_marker(batch).type
        if kind == ABORT:
            return not self._aborted.pop(header.producer_id, False)
        if kind == COMMIT:
            was_met = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not was_met
        return False


def _cleaned(
    source: SourceBatch,
    header: BatchHeader,
    last: Mapping[bytes, int],
    cleaning: CleaningRound,
    *,
    can_discard: bool,
) -> bytes | None:
    horizon_ms = header.delete_horizon_ms
    is_over = horizon_ms is not None and horizon_ms <= cleaning.now_ms
    without_records = emptied_batch(header) if _stays_empty(header, cleaning) else None
    if can_discard and (is_over or not header.is_control):
        return without_records
    records = read_batch(source.data, 0)
    kept = records
    if not header.is_control:
        kept = [each for each in records if _stays(each, source, header, last, cleaning)]
    if not kept:
        return without_records
    # From now on it shows how long a tombstone, or a marker without a transaction, is kept.
    is_marker_alone = header.is_control and can_discard
    if horizon_ms is None and (is_marker_alone or any(each.value is None for each in kept)):
        horizon_ms = cleaning.now_ms + cleaning.delete_retention_ms
    is_same = len(kept) == len(records) and horizon_ms == header.delete_horizon_ms
    if is_same and header.magic == LATEST_FORMAT:
        return source.data
    return _rewritten(kept, header, horizon_ms)


def _stays_empty(header: BatchHeader, cleaning: CleaningRound) -> bool:
    """Return whether a batch stays although none of its records does: the last one of a producer
    for its sequence number and epoch, the one at the high watermark for the log end."""
    if header.magic < LATEST_FORMAT:
        return False  # there, no batch can be empty
    if header.last_offset + 1 == cleaning.high_watermark:
        return True
    producer = cleaning.producers.get(header.producer_id)
    if header.producer_id == NO_VALUE or producer is None:
        return False
    if producer.last_data_offset is None:
        return header.is_control and header.producer_epoch == producer.epoch
    return header.last_offset == producer.last_data_offset


def _stays(
    record: Record,
    source: SourceBatch,
    header: BatchHeader,
    last: Mapping[bytes, int],
    cleaning: CleaningRound,
) -> bool:
    if record.key is None or record.offset < last.get(record.key, NO_VALUE):
        return False
    if record.value is not None:
        return True
    if header.magic < LATEST_FORMAT:
        return source.modified_ms > cleaning.legacy_delete_horizon_ms
    horizon_ms = header.delete_horizon_ms
    return horizon_ms is None or cleaning.now_ms < horizon_ms


def _rewritten(records: Sequence[Record], header: BatchHeader, horizon_ms: int | None) -> bytes:
    """Return the batch with fewer records, or with a horizon. One of an old format becomes one of
    format 2, without a leader epoch, that begins and ends with the records that are left."""
    if header.magic == LATEST_FORMAT:
        fields = _fields(header, header.base_offset, header.last_offset)
    else:
        fields = _fields(header, records[0].offset, records[-1].offset)
    if header.timestamp_type == LOG_APPEND_TIME:
        fields = replace(fields, max_timestamp_ms=header.max_timestamp_ms)
    compression = CompressionType(header.compression_id)
    return write_batch(
        records, replace(fields, compression=compression, delete_horizon_ms=horizon_ms)
    )


def _fields(header: BatchHeader, base_offset: int, last_offset: int) -> BatchFields:
    return BatchFields(
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        timestamp_type=header.timestamp_type,
        base_offset=base_offset,
        last_offset=last_offset,
    )
