"""Two copies of a partition's log, the second of a later time: which keys cleaning has lost.

Rules: docs/format.md F259 and F260. Memory grows with the keys of both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.format.batch_header import NO_VALUE, read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.format.records import Record
from kafkalog.storage.cleaning.compaction import TransactionsToClean
from kafkalog.storage.cleaning.compaction_check import CompactionFinding, CompactionSeverity
from kafkalog.storage.cleaning.log_transactions import LogTransactions


class LastRecord(NamedTuple):
    """A key's last committed record: all but the key as a digest."""

    offset: int
    is_tombstone: bool
    digest: bytes


@dataclass(frozen=True, slots=True)
class LogCopy:
    """One copy of a log. `stable_offset` is where its first open transaction begins, or its end."""

    last_records: dict[bytes, LastRecord]
    start_offset: int
    end_offset: int
    stable_offset: int


def last_records(
    batches: Iterable[bytes], transactions: LogTransactions
) -> dict[bytes, LastRecord]:
    """Return the last committed record of each key; records of open transactions do not count."""
    cleaned = TransactionsToClean(transactions.aborted)
    found: dict[bytes, LastRecord] = {}
    for batch in batches:
        header = read_header(batch, 0)
        is_aborted = cleaned.add(header, batch)
        first_open = transactions.open_transactions.get(header.producer_id, NO_VALUE)
        is_open = header.is_transactional and NO_VALUE < first_open <= header.base_offset
        if header.is_control or is_aborted or is_open:
            continue
        for record in read_batch(batch, 0):
            if record.key is not None:
                is_tombstone = record.value is None
                found[record.key] = LastRecord(record.offset, is_tombstone, _digest(record))
    return found


def _digest(record: Record) -> bytes:
    content = (record.timestamp_ms, record.value, record.headers)
    return hashlib.blake2b(repr(content).encode(), digest_size=16).digest()


def differences(
    before: LogCopy, after: LogCopy, cleaned_offset: int
) -> Iterator[CompactionFinding]:
    """Yield the differences that cleaning up to `cleaned_offset` of the later copy does not
    explain.

    The last record of a key may be missing only if it was a tombstone, if the log begins after it,
    or if the key has a later record; a later tombstone may have been removed.
    """
    for key, old in before.last_records.items():
        new = after.last_records.get(key)
        if old.offset < after.start_offset or (new is not None and new.offset > old.offset):
            continue
        if new is not None and new.offset == old.offset:
            if new.digest != old.digest:
                detail = "another value, timestamp or headers at the same offset"
                yield CompactionFinding(
                    "changed_record", CompactionSeverity.ERROR, old.offset, detail, key=key
                )
            continue
        if not old.is_tombstone or new is not None:
            yield _lost(key, old, new, could_be_deleted=cleaned_offset > before.end_offset)
    yield from _unknown(before, after)


def _lost(
    key: bytes, old: LastRecord, new: LastRecord | None, *, could_be_deleted: bool
) -> CompactionFinding:
    if new is not None:
        detail, severity = "an older record of the key is its last now", CompactionSeverity.ERROR
    elif could_be_deleted:
        detail = "unless a tombstone was written after the first copy, and has been cleaned since"
        severity = CompactionSeverity.WARNING
    else:
        detail, severity = "no record of the key is left", CompactionSeverity.ERROR
    return CompactionFinding(
        "lost_key",
        severity,
        old.offset,
        detail,
        key=key,
        other_offset=None if new is None else new.offset,
    )


def _unknown(before: LogCopy, after: LogCopy) -> Iterator[CompactionFinding]:
    """Yield records under offsets that the first copy had, but not for them."""
    for key, new in after.last_records.items():
        old = before.last_records.get(key)
        if before.start_offset <= new.offset < before.stable_offset and (
            old is None or old.offset < new.offset
        ):
            detail = "the first copy has no such record"
            yield CompactionFinding(
                "unknown_record", CompactionSeverity.ERROR, new.offset, detail, key=key
            )
