"""Indexes compared with a log of batches made by hand. F130 to F134, F136; T28, T29."""

import struct
from functools import partial

import pytest

from kafkalog.format.faults import Severity
from kafkalog.format.message_set import write_message_set, write_old_message
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.indexes import AbortedTransaction, write_transaction_index
from kafkalog.inspection.indexes.index_findings import IndexFinding
from kafkalog.wire.compression import CompressionType
from tests.support.logs.checked_indexes import checked
from tests.support.logs.samples import batch, joined

BASE = 100
# Offsets 100 to 102, 103 to 105, 106 to 108, 109 to 111; timestamps are 1000 + offset.
BATCHES = [batch(BASE + 3 * i) for i in range(4)]
LOG = joined(BATCHES)
SIZE = len(BATCHES[0])


def offsets(*entries: tuple[int, float]) -> bytes:
    """An `.index`: absolute offset, and position in batches."""
    return b"".join(struct.pack(">ii", o - BASE, round(p * SIZE)) for o, p in entries)


def times(*entries: tuple[int, int]) -> bytes:
    """A `.timeindex`: timestamp and absolute offset."""
    return b"".join(struct.pack(">qi", t, o - BASE) for t, o in entries)


def told(findings: list[IndexFinding]) -> list[tuple[str, int | None, int]]:
    return [(finding.kind, finding.entry, finding.entries) for finding in findings]


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(offsets(), id="no entry"),
        pytest.param(offsets((105, 1), (108, 2), (111, 3)), id="of each batch the last offset"),
        pytest.param(offsets((108, 1), (111, 3)), id="the last of two batches appended at once"),
        pytest.param(offsets((111, 1)), id="the last of three batches appended at once"),
        pytest.param(offsets((103, 1), (109, 3)), id="the first offset, as before 1.0"),
        pytest.param(offsets((105, 1)) + bytes(80), id="free places"),
        pytest.param(bytes(80), id="nothing but free places"),
    ],
)
def test_what_a_broker_of_any_version_writes_is_sound(index: bytes) -> None:
    # F130, F131; T28.
    assert checked(LOG, BASE, index=index) == []


@pytest.mark.parametrize(
    ("index", "findings"),
    [
        (offsets((105, 1.5)), [("position", 0, 1)]),
        (offsets((105, 1), (108, -2)), [("not_rising", 1, 1), ("position", 1, 1)]),
        (offsets((104, 1)), [("offset", 0, 1)]),
        (offsets((102, 1)), [("offset", 0, 1)]),
        (offsets((108, 1), (111, 2)), [("offset", 0, 1)]),
        (offsets((112, 1)), [("offset", 0, 1)]),
        (offsets((99, 1)), [("offset", 0, 1)]),
        (offsets((105, 1), (105, 1)), [("not_rising", 1, 1)]),
        (offsets((108, 2), (105, 1)), [("not_rising", 1, 1)]),
        (offsets((111, 3), (114, 4), (117, 5)), [("beyond_end", 1, 2)]),
        (offsets((105, 1)) + b"\1\2\3", [("truncated", 1, 1)]),
        (b"\0\0\0", [("truncated", 0, 1)]),
    ],
)
def test_entries_that_lead_astray_are_reported(
    index: bytes, findings: list[tuple[str, int, int]]
) -> None:
    # F130, F131, F136.
    assert told(checked(LOG, BASE, index=index)) == findings


def test_a_finding_says_what_the_first_entry_should_be() -> None:
    # F136.
    index = offsets((104, 1), (107, 2))
    assert checked(LOG, BASE, index=index) == [
        IndexFinding(
            ".index",
            "offset",
            Severity.ERROR,
            f"offset 104 at position {SIZE}, where a batch ends with offset 105",
            0,
            2,
        )
    ]


@pytest.mark.parametrize(("is_active", "is_trimmed"), [(False, False), (True, True)])
def test_free_places_where_a_broker_would_take_them_for_entries(
    is_active: bool, is_trimmed: bool
) -> None:
    # F103, F131; T28.
    index, timeindex = offsets((105, 1)) + bytes(80), times((1111, 111)) + bytes(120)
    found = checked(
        LOG, BASE, index=index, timeindex=timeindex, is_active=is_active, is_trimmed=is_trimmed
    )
    assert [(finding.file, finding.kind) for finding in found] == [
        (".index", "zeros"),
        (".timeindex", "zeros"),
    ]


def test_a_compressed_old_message_may_be_indexed_by_any_offset_in_it() -> None:
    # F130: brokers before 1.0 wrote the first, which its header does not tell.
    sets = [
        write_message_set(
            [Record(first + i, 5, 0, None, b"v") for i in range(3)], 1, CompressionType.GZIP
        )
        for first in (BASE, BASE + 3)
    ]
    for offset in (103, 104, 105):
        index = struct.pack(">ii", offset - BASE, len(sets[0]))
        assert checked(joined(sets), BASE, index=index) == []
    for offset in (102, 106):
        index = struct.pack(">ii", offset - BASE, len(sets[0]))
        assert told(checked(joined(sets), BASE, index=index)) == [("offset", 0, 1)]


def timed(first: int, *timestamps: int) -> bytes:
    return write_batch([Record(first + i, time, 0, None, b"") for i, time in enumerate(timestamps)])


# Largest timestamps: 10 up to offset 102, 50 up to 105, 20 up to 106, 60 up to 108.
TIMED = joined([timed(100, 10, 5, 1), timed(103, 50, 7, 8), timed(106, 20), timed(107, 60, 9)])


@pytest.mark.parametrize("timeindex", [times((60, 108)), times((10, 102), (50, 105), (60, 108))])
def test_a_time_entry_has_the_last_offset_of_the_batch_with_the_largest_time(
    timeindex: bytes,
) -> None:
    # F101, F132; T29: the record of time 50 has offset 103, its batch ends with 105.
    assert checked(TIMED, BASE, timeindex=timeindex, is_active=False) == []


@pytest.mark.parametrize(
    ("timeindex", "findings"),
    [
        (times((60, 107)), [("inner_offset", 0, 1)]),
        (times((20, 106), (60, 108)), [("timestamp", 0, 1)]),
        (times((50, 102), (60, 108)), [("timestamp", 0, 1)]),
        (times((49, 105), (60, 108)), [("timestamp", 0, 1)]),
        (times((60, 108), (10, 102)), [("not_rising", 1, 1), ("incomplete", None, 0)]),
        (times((60, 99)), [("offset", 0, 1)]),
        (times((10, 102), (61, 109)), [("beyond_end", 1, 1)]),
        (times((60, 108)) + b"\1", [("truncated", 1, 1)]),
        (times((10, 102), (50, 105)), [("incomplete", None, 0)]),
        (b"", [("incomplete", None, 0)]),
    ],
)
def test_wrong_time_entries_are_reported(
    timeindex: bytes, findings: list[tuple[str, int, int]]
) -> None:
    # F132, F133, F136.
    assert told(checked(TIMED, BASE, timeindex=timeindex, is_active=False)) == findings


def test_an_equal_time_before_the_entry_would_be_missed_by_a_lookup() -> None:
    # F132.
    log = joined([timed(100, 50), timed(101, 50)])
    assert told(checked(log, BASE, timeindex=times((50, 101)))) == [("timestamp", 0, 1)]
    assert checked(log, BASE, timeindex=times((50, 100))) == []


@pytest.mark.parametrize("timeindex", [b"", times((10, 102)), times((10, 102)) + bytes(24)])
def test_the_segment_that_is_written_to_lacks_the_latest_times(timeindex: bytes) -> None:
    # F133.
    assert checked(TIMED, BASE, timeindex=timeindex) == []


def test_a_batch_emptied_by_the_cleaner_leaves_its_time_in_the_index() -> None:
    # F132.
    empty = write_batch([], BatchFields(base_offset=100, last_offset=104))
    log = empty + timed(105, 20)
    assert checked(log, BASE, timeindex=times((90, 104)), is_active=False) == []


def test_segments_without_times_have_an_empty_time_index_or_none() -> None:
    # F42, F133.
    log = joined([write_old_message(BASE + i, 0, None, b"v") for i in range(3)])
    for timeindex in (None, b""):
        assert checked(log, BASE, timeindex=timeindex, is_active=False) == []


def test_missing_indexes_are_reported() -> None:
    # F136.
    found = checked(LOG, BASE, index=None, timeindex=None)
    assert [(finding.file, finding.kind, finding.severity) for finding in found] == [
        (".index", "missing", Severity.WARNING),
        (".timeindex", "missing", Severity.WARNING),
    ]


def test_a_segment_without_a_batch_may_have_no_offset_index() -> None:
    # F131: what brokers 2.8.2 left, stopped cleanly, of a topic whose records had all expired.
    assert checked(b"", BASE, index=None, timeindex=b"", is_trimmed=True) == []


def test_an_index_without_entries_is_mentioned_where_there_is_room_for_some() -> None:
    # F136.
    log = joined([batch(BASE + i, 1, value=b"v" * 4000) for i in range(3)])
    (finding,) = checked(log, BASE)
    assert (finding.kind, finding.severity) == ("empty", Severity.INFORMATION)


def test_entries_into_damage_are_told_apart_from_wrong_ones() -> None:
    # F136: whether they were right cannot be known.
    damaged = bytearray(LOG)
    damaged[SIZE + 8 : SIZE + 12] = b"\xff" * 4
    index = offsets((105, 1), (108, 2), (110, 3))
    timeindex = times((1105, 105), (1108, 108))
    found = checked(bytes(damaged), BASE, index=index, timeindex=timeindex)
    assert [(finding.file, *told([finding])[0]) for finding in found] == [
        (".index", "offset", 2, 1),
        (".index", "log_damaged", 0, 1),
        (".timeindex", "log_damaged", 0, 1),
    ]


def test_indexes_of_an_empty_log_lead_beyond_it() -> None:
    # F131, F136.
    found = checked(b"", BASE, index=offsets((105, 1)), timeindex=times((1105, 105)))
    assert told(found) == [("beyond_end", 0, 1), ("beyond_end", 0, 1)]


def test_entries_are_found_in_whichever_table_their_batch_is() -> None:
    # More batches than a table has rows.
    batches = [timed(BASE + i, 1000 + i) for i in range(10_000)]
    size = len(batches[0])
    index = b"".join(struct.pack(">ii", i, i * size) for i in range(40, 10_000, 40))
    timeindex = times(*((1000 + i, BASE + i) for i in range(40, 10_000, 40)), (10_999, 10_099))
    check = partial(checked, joined(batches), BASE, timeindex=timeindex, is_active=False)
    assert check(index=index) == []
    shifted = b"".join(struct.pack(">ii", i, i * size + 1) for i in range(40, 10_000, 40))
    assert told(check(index=shifted)) == [("position", 0, 249)]


def transactional(
    first: int, producer: int, *, is_control: bool = False, leader_epoch: int = 0
) -> bytes:
    key = struct.pack(">hh", 0, 0) if is_control else None
    value = struct.pack(">hi", 0, 1)
    fields = BatchFields(
        producer_id=producer,
        producer_epoch=0,
        leader_epoch=leader_epoch,
        is_transactional=True,
        is_control=is_control,
    )
    return write_batch([Record(first, 1, 0, key, value)], fields)


# Producer 7 aborts 100 to 102, producer 8 aborts 101 to 104; 103 belongs to neither.
TRANSACTIONS = joined(
    [
        transactional(100, 7),
        transactional(101, 8),
        transactional(102, 7, is_control=True),
        batch(103, 1),
        transactional(104, 8, is_control=True),
    ]
)
ABORTED = [AbortedTransaction(7, 100, 102, 101), AbortedTransaction(8, 101, 104, 105)]


def test_aborted_transactions_end_at_a_marker_of_their_producer() -> None:
    # F104, F134.
    earlier = AbortedTransaction(8, 50, 104, 105)
    for entries in (ABORTED, [ABORTED[0]], [], [ABORTED[0], earlier]):
        txnindex = write_transaction_index(entries)
        assert checked(TRANSACTIONS, BASE, txnindex=txnindex) == []


@pytest.mark.parametrize(
    ("entry", "kinds"),
    [
        (AbortedTransaction(7, 100, 104, 105), ["marker"]),
        (AbortedTransaction(7, 100, 103, 104), ["marker"]),
        (AbortedTransaction(7, 50, 99, 100), ["marker"]),
        (AbortedTransaction(8, 100, 104, 105), ["first_offset"]),
        (AbortedTransaction(8, 103, 104, 105), ["first_offset"]),
        (AbortedTransaction(8, 105, 104, 105), ["first_offset"]),
        (AbortedTransaction(8, -1, 104, 105), ["first_offset"]),
        (AbortedTransaction(8, 101, 104, 106), ["stable_offset"]),
        (AbortedTransaction(8, 101, 104, -1), ["stable_offset"]),
        (AbortedTransaction(8, 101, 110, 111), ["beyond_end"]),
    ],
)
def test_transactions_that_the_log_does_not_know_are_reported(
    entry: AbortedTransaction, kinds: list[str]
) -> None:
    # F134, F136.
    txnindex = write_transaction_index([entry])
    found = checked(TRANSACTIONS, BASE, txnindex=txnindex)
    assert [finding.kind for finding in found] == kinds


# A follower appended 100 to 107 at once: producer 7 aborts 100 to 101, begins again at 102, and
# producer 8 begins at 104, which is aborted at 105.
APPENDED_AT_ONCE = [
    transactional(100, 7),
    transactional(101, 7, is_control=True),
    transactional(102, 7),
    transactional(103, 7, is_control=True),
    transactional(104, 8),
    transactional(105, 8, is_control=True),
    transactional(106, 9),
]


@pytest.mark.parametrize(
    ("stable", "kinds"),
    [
        (102, []),
        (103, ["stable_offset"]),  # the producer's own next transaction does not hold it back
        (104, []),
        (105, ["stable_offset"]),
        (106, ["stable_offset"]),  # another is open before it
        (107, ["stable_offset"]),
    ],
)
def test_a_follower_knows_the_transactions_of_all_that_it_appends_at_once(
    stable: int, kinds: list[str]
) -> None:
    # F926. Followers of Kafka 4.4.0 have written such entries.
    txnindex = write_transaction_index([AbortedTransaction(7, 100, 101, stable)])
    found = checked(joined(APPENDED_AT_ONCE), BASE, txnindex=txnindex)
    assert [finding.kind for finding in found] == kinds


def test_a_stable_offset_of_what_was_truncated_later_is_no_finding() -> None:
    # F926: the batches from 102 on are of a later leader.
    txnindex = write_transaction_index([AbortedTransaction(7, 100, 101, 106)])
    later = [transactional(102 + number, 9, leader_epoch=5) for number in range(5)]
    assert checked(joined([*APPENDED_AT_ONCE[:2], *later]), BASE, txnindex=txnindex) == []


def test_a_transaction_index_of_an_unknown_version_out_of_order_or_cut() -> None:
    # F104, F134, F136.
    sound = write_transaction_index(ABORTED)
    other_version = sound[:34] + b"\0\1" + sound[36:]
    assert told(checked(TRANSACTIONS, BASE, txnindex=other_version)) == [("version", 1, 1)]
    turned = write_transaction_index(ABORTED[::-1])
    assert told(checked(TRANSACTIONS, BASE, txnindex=turned)) == [("not_rising", 1, 1)]
    assert told(checked(TRANSACTIONS, BASE, txnindex=sound[:-1])) == [("truncated", 1, 1)]
    zeros = checked(TRANSACTIONS, BASE, txnindex=bytes(68))
    assert told(zeros) == [("not_rising", 1, 1), ("marker", 0, 2), ("first_offset", 0, 2)]
