"""Times as Spark holds them: microseconds in 64 bits, null where there is none or no room."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.message_set import write_old_message
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from tests.support.logs.segment_tables import records_table

COLUMNS = ("timestamp", "timestampMs")
Times = list[tuple[int | None, int]]


def times(data: bytes) -> Times:
    """Microseconds and raw milliseconds of every record."""
    table = records_table(data, COLUMNS)
    table.validate(full=True)
    # As numbers: Python's datetime ends long before 64 bits do.
    micros = table.column("timestamp").cast(pa.int64()).to_pylist()
    return list(zip(micros, table.column("timestampMs").to_pylist(), strict=True))


# Spark's TimestampType: 64 bits of microseconds, so these are the first and last milliseconds.
EARLIEST, LATEST = -9223372036854775, 9223372036854775
KNOWN: Times = [
    (0, 0),
    (1_000, 1),
    (-2_000, -2),
    (1_700_000_000_000_000, 1_700_000_000_000),
    (-9223372036854775000, EARLIEST),
    (9223372036854775000, LATEST),
    (None, -1),
    (None, EARLIEST - 1),
    (None, LATEST + 1),
    (None, -(2**63)),
    (None, 2**63 - 1),
]


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("magic", [1, 2])
def test_times_that_spark_cannot_hold_are_null_and_the_raw_value_stays(
    magic: int, known: tuple[int | None, int]
) -> None:
    # F24, T11: -1 is none.
    if magic == 1:
        data = write_old_message(0, 1, None, b"", timestamp_ms=known[1])
    else:
        data = write_batch([Record(0, known[1], 0, None, b"")])
    assert times(data) == [known]


def test_nulls_stand_between_times_where_they_belong() -> None:
    # More records than a byte of validity bits has.
    known = KNOWN * 3
    records = [Record(offset, row[1], 0, None, b"") for offset, row in enumerate(known)]
    assert times(write_batch(records)) == known


def test_a_time_of_log_append_that_spark_cannot_hold_is_null_on_all() -> None:
    # F15, T8
    fields = BatchFields(timestamp_type=1, max_timestamp_ms=LATEST + 1)
    records = [Record(offset, 1000, 1, None, b"") for offset in range(3)]
    assert times(write_batch(records, fields)) == [(None, LATEST + 1)] * 3


def test_messages_of_format_0_have_no_time() -> None:
    # F42, T21
    assert times(write_old_message(0, 0, None, b"")) == [(None, -1)]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_every_time_is_a_thousand_times_its_milliseconds_or_null(milliseconds: list[int]) -> None:
    # F24: in 64 bits that wrap, since deltas may be anything.
    records = [Record(offset, ms, 0, None, b"") for offset, ms in enumerate(milliseconds)]
    assert times(write_batch(records)) == [
        (ms * 1000 if -(2**63) <= ms * 1000 < 2**63 and ms != -1 else None, ms)
        for ms in milliseconds
    ]
