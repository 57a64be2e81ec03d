"""What the cleaner leaves of single batches. Rules: docs/format.md F242 to F251."""

import struct
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import V2_HEADER_BYTES, read_header
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, read_batch, with_checksum, write_batch
from kafkalog.format.records import Record
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.storage.cleaning.compaction import (
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.cleaning.log_transactions import log_transactions
from tests.support.logs.samples import record

NOW_MS, RETENTION_MS = 1_000_000, 500
END = 1_000  # of the log, unless a test says otherwise: no batch of a test ends there


def cleaned(
    *batches: bytes, first_dirty: int = 0, uncleanable: int = END, now_ms: int = NOW_MS
) -> list[bytes | None]:
    """What is left of each batch of a log."""
    transactions = log_transactions(batches)
    cleaning = CleaningRound(
        first_dirty, uncleanable, END, now_ms, RETENTION_MS, {}, transactions.aborted
    )
    sources = [SourceBatch(batch, 1) for batch in batches]
    last = last_offsets(sources, cleaning)
    return [each.cleaned for each in cleaned_batches(sources, last, cleaning)]


def plain(*records: Record, fields: BatchFields | None = None) -> bytes:
    return write_batch(records, fields or BatchFields())


def transactional(producer: int, *records: Record) -> bytes:
    fields = BatchFields(
        producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    return write_batch(records, fields)


def marker(offset: int, producer: int, kind: int, horizon_ms: int | None = None) -> bytes:
    fields = BatchFields(
        producer_id=producer,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
        delete_horizon_ms=horizon_ms,
    )
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
    return write_batch([Record(offset, 7, 0, key, value)], fields)


def keys(batches: Sequence[bytes | None]) -> list[list[bytes | None]]:
    return [[each.key for each in read_batch(batch, 0)] for batch in batches if batch]


def test_of_each_key_the_last_record_stays() -> None:
    # F242, F243.
    first = plain(record(0, key=b"a"), record(1, key=b"b"), record(2, key=b"a"))
    second = plain(record(3, key=b"b"))
    left = cleaned(first, second)
    assert [[r.offset for r in read_batch(batch or b"", 0)] for batch in left] == [[2], [3]]


def test_what_is_dirty_shadows_what_is_clean_and_not_the_other_way() -> None:
    # F242: below the first dirty offset two records of a key, as a broken log may have them, stay.
    log = [plain(record(offset, key=key)) for offset, key in enumerate((b"a", b"a", b"b", b"b"))]
    assert keys(cleaned(*log, first_dirty=2)) == [[b"a"], [b"a"], [b"b"]]
    assert keys(cleaned(*log, uncleanable=2)) == [[b"a"], [b"b"], [b"b"]]


def test_a_record_without_a_key_goes_and_an_empty_key_is_one() -> None:
    # F243, F2.
    batch = plain(record(0, key=None), record(1, key=b""), record(2, key=b"a"))
    assert keys(cleaned(batch)) == [[b"", b"a"]]


def test_a_rewritten_batch_keeps_its_first_and_last_offset_and_sequence() -> None:
    # F13, F14, F247; the documents: first and last offset and sequence survive, the base
    # timestamp need not. T6.
    fields = BatchFields(
        leader_epoch=5, producer_id=8, producer_epoch=2, base_sequence=2**31 - 2, last_offset=4
    )
    records = [record(0, key=b"a"), record(1, key=b"b"), record(2, key=b"c"), record(3, key=b"a")]
    batch = plain(*records, fields=fields)
    left, _ = cleaned(batch, plain(record(5, key=b"c")))
    assert left is not None
    before, after = read_header(batch, 0), read_header(left, 0)
    kept = replace(
        before,
        length=after.length,
        crc=after.crc,
        records_count=2,
        base_timestamp_ms=1001,
        max_timestamp_ms=1003,
    )
    assert (after, after.last_sequence) == (kept, 2)
    assert [(each.offset, each.sequence) for each in read_batch(left, 0)] == [
        (1, 2**31 - 1),
        (3, 1),
    ]


def test_an_untouched_batch_is_copied_byte_for_byte() -> None:
    # F246: bits without a meaning as well.
    batch = bytearray(plain(record(0)))
    batch[21] = 0x7F
    assert cleaned(with_checksum(bytes(batch))) == [with_checksum(bytes(batch))]


def test_a_tombstone_stays_until_its_horizon_and_keeps_its_time() -> None:
    # F243, F249; T7: horizon and negative delta give the record's own time.
    batch = plain(record(0, key=b"a"), record(1, None, key=b"b"))
    (left,) = cleaned(batch)
    assert left is not None
    horizon_ms = NOW_MS + RETENTION_MS
    assert read_header(left, 0).delete_horizon_ms == horizon_ms
    assert read_header(left, 0).base_timestamp_ms == horizon_ms
    assert read_batch(left, 0) == read_batch(batch, 0)
    assert cleaned(left, now_ms=horizon_ms - 1) == [left]
    (later,) = cleaned(left, now_ms=horizon_ms)
    assert keys([later]) == [[b"a"]]
    assert read_header(later or b"", 0).delete_horizon_ms == horizon_ms


def test_control_records_are_never_compared_by_key() -> None:
    # F245; T14: the type code 0, 1 of a commit is a key that records may have too.
    data = plain(record(0, key=struct.pack(">hh", 0, COMMIT)))
    log = [
        data,
        transactional(9, record(1, key=b"a")),
        marker(2, 9, COMMIT),
        transactional(9, record(3, key=b"b")),
        marker(4, 9, COMMIT),
    ]
    assert cleaned(*log) == log


def test_aborted_records_go_and_shadow_nothing() -> None:
    # F242, F244; T15: by producer id; T18: not those between that are in no transaction.
    log = [
        plain(record(0, key=b"a")),
        transactional(9, record(1, key=b"a")),
        plain(record(2, key=b"b")),
        transactional(8, record(3, key=b"c")),
        marker(4, 9, ABORT),
        marker(5, 8, COMMIT),
    ]
    assert cleaned(*log) == [log[0], None, log[2], log[3], log[4], log[5]]


def test_a_transaction_that_ends_behind_the_cleaned_part_is_known() -> None:
    # F244; T16 and T17: its marker lies in a later segment.
    log = [transactional(9, record(0, key=b"a")), marker(1, 9, ABORT)]
    assert cleaned(*log, uncleanable=1) == [None, log[1]]


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_marker_without_its_records_gets_a_horizon_and_then_goes(kind: int) -> None:
    # F245, F249; T18: the marker remains without the records.
    (left,) = cleaned(marker(0, 9, kind))
    assert left is not None
    assert read_header(left, 0).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert cleaned(left, now_ms=NOW_MS + RETENTION_MS - 1) == [left]
    assert cleaned(left, now_ms=NOW_MS + RETENTION_MS) == [None]


def test_an_emptied_batch_is_a_header() -> None:
    # F248, F250: the last batch of its producer.
    batch = transactional(9, record(0, key=b"a"), record(1, key=b"a"))
    log = [batch, marker(2, 9, ABORT)]
    transactions = log_transactions(log)
    cleaning = CleaningRound(
        0, END, END, NOW_MS, RETENTION_MS, transactions.producers, transactions.aborted
    )
    left = next(cleaned_batches([SourceBatch(each) for each in log], {}, cleaning)).cleaned
    assert left is not None and len(left) == V2_HEADER_BYTES
    before, after = read_header(batch, 0), read_header(left, 0)
    emptied = replace(
        before, length=after.length, crc=after.crc, records_count=0, base_timestamp_ms=-1
    )
    assert after == emptied


def test_other_control_batches_stay() -> None:
    # F245.
    fields = BatchFields(producer_id=-1, is_control=True)
    leader_change = write_batch([Record(0, 7, 0, struct.pack(">hh", 0, 2), bytes(12))], fields)
    assert cleaned(leader_change) == [leader_change]


def test_old_formats_become_format_2() -> None:
    # F251: each with its own time, those of format 0 without one.
    old = write_message_set([Record(4, -1, -1, b"a", b"0")], 0)
    later = write_message_set([Record(5, 9, 0, b"b", b"1"), Record(6, 8, 0, b"a", None)], 1)
    size = read_header(later, 0).size
    left = cleaned(old, later[:size], later[size:])
    assert left[0] is None
    headers = [read_header(batch, 0) for batch in left if batch]
    assert [(each.magic, each.base_offset, each.leader_epoch) for each in headers] == [
        (2, 5, -1),
        (2, 6, -1),
    ]
    assert [each.delete_horizon_ms for each in headers] == [None, NOW_MS + RETENTION_MS]
    assert [each.timestamp_ms for batch in left if batch for each in read_batch(batch, 0)] == [9, 8]


def test_records_that_cannot_be_read_are_an_error() -> None:
    batch = bytearray(plain(record(0)))
    batch[-1] = 0x7F
    with pytest.raises(CorruptDataError):
        cleaned(with_checksum(bytes(batch)))


def test_memory_grows_with_keys_and_not_with_values() -> None:
    # 64 MiB of values under two keys, a batch at a time.
    def batches() -> Iterator[SourceBatch]:
        for offset in range(64):
            yield SourceBatch(plain(record(offset, bytes(1024 * 1024), b"ab"[offset % 2 :])))

    cleaning = CleaningRound(0, END, END, NOW_MS, RETENTION_MS, {}, ())
    tracemalloc.start()
    last = last_offsets(batches(), cleaning)
    left = sum(len(each.cleaned or b"") for each in cleaned_batches(batches(), last, cleaning))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last == {b"ab": 62, b"b": 63}
    assert 2 * 1024 * 1024 < left < 3 * 1024 * 1024
    assert peak < 16 * 1024 * 1024
