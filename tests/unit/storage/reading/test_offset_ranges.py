"""From options to the offsets of one partition, as Spark's Kafka source would have it.

Rules: F95 to F99, F930.
"""

import logging

import pytest

from kafkalog.errors import DataLossError, OptionError
from kafkalog.storage.partition_log import LogDir, PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import (
    EARLIEST,
    LATEST,
    DoubtfulRecord,
    Everything,
    FromTimestamp,
    NoMatch,
    OffsetLimit,
    OffsetRange,
    OffsetRequest,
    SpecificOffsets,
    SpecificTimestamps,
    TimeAnswer,
    TimeLookup,
    TimeRule,
    offset_range,
    report_data_loss,
)
from kafkalog.storage.reading.read_plan import segment_reads
from tests.support.logs.log_dirs import log_of

ORDERS = ("orders", 0)
# Starts at 10, inside its first segment; its high watermark is 50.
LOG = log_of(
    "orders",
    0,
    0,
    100,
    log_dir=LogDir(
        "logs", is_clean_shutdown=True, log_starts={ORDERS: 10}, high_watermarks={ORDERS: 50}
    ),
)


def offsets(offset: int) -> SpecificOffsets:
    return SpecificOffsets({ORDERS: offset, ("orders", 1): 7})


def timestamps(timestamp_ms: int) -> SpecificTimestamps:
    return SpecificTimestamps({ORDERS: timestamp_ms, ("orders", 1): 7})


def no_lookup(log: PartitionLog, start_offset: int, timestamp_ms: int) -> TimeAnswer:
    raise AssertionError("no time was requested")


def times(known: dict[int, int]) -> TimeLookup:
    """A lookup that knows the offsets of some times and finds none for any other."""

    def lookup(log: PartitionLog, start_offset: int, timestamp_ms: int) -> TimeAnswer:
        assert (log, start_offset) == (LOG, 10)
        return TimeAnswer(known.get(timestamp_ms))

    return lookup


def test_latest_and_earliest_are_the_numbers_that_kafka_gives_them() -> None:
    assert (LATEST, EARLIEST) == (-1, -2)


def test_without_a_request_everything_from_the_log_start_is_read() -> None:
    # F95, F96.
    assert offset_range(LOG, OffsetRequest(), no_lookup) == OffsetRange(10, None, log_start=10)


def test_up_to_the_high_watermark_everything_below_it_is_read() -> None:
    # F97.
    request = OffsetRequest(end_rule=EndRule.HIGH_WATERMARK)
    assert offset_range(LOG, request, no_lookup) == OffsetRange(10, 50, log_start=10)


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        pytest.param(offsets(EARLIEST), offsets(LATEST), OffsetRange(10, None, 10), id="words"),
        pytest.param(offsets(10), Everything(), OffsetRange(10, None, 10, 10), id="log start"),
        pytest.param(offsets(11), Everything(), OffsetRange(11, None, 10, 11), id="start"),
        pytest.param(Everything(), offsets(70), OffsetRange(10, 70, 10, None, 70), id="end"),
        pytest.param(offsets(60), offsets(70), OffsetRange(60, 70, 10, 60, 70), id="both"),
        pytest.param(offsets(60), offsets(60), OffsetRange(60, 60, 10, 60, 60), id="nothing"),
    ],
)
def test_offsets_by_partition_are_read_from_the_first_to_before_the_last(
    starting: OffsetLimit, ending: OffsetLimit, expected: OffsetRange
) -> None:
    # F95, F96, F98: what lies beyond the end only a reader of the last segment can tell.
    request = OffsetRequest(starting=starting, ending=ending)
    assert offset_range(LOG, request, no_lookup) == expected


@pytest.mark.parametrize(
    ("start", "end", "is_empty"),
    [(0, None, False), (10, 11, False), (10, 10, True), (10, 9, True), (0, 0, True)],
)
def test_a_range_is_empty_where_it_ends_before_it_begins(
    start: int, end: int | None, is_empty: bool
) -> None:
    assert OffsetRange(start, end).is_empty is is_empty


def test_a_start_before_the_log_is_an_error_naming_option_and_valid_range() -> None:
    # F98, T31.
    with pytest.raises(DataLossError) as caught:
        offset_range(LOG, OffsetRequest(starting=offsets(9)), no_lookup)
    for said in ("startingOffsets", "offset 9", "orders-0", "holds 10 up to the end of the log"):
        assert said in str(caught.value)


def test_a_start_before_the_log_is_clamped_and_logged_where_that_is_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # F98, T31.
    request = OffsetRequest(starting=offsets(9), fail_on_data_loss=False)
    assert offset_range(LOG, request, no_lookup) == OffsetRange(10, None, log_start=10)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "startingOffsets: offset 9 of orders-0 is not in the log" in record.getMessage()


def test_an_end_above_the_high_watermark_is_an_error_naming_option_and_valid_range() -> None:
    # F97, F98.
    request = OffsetRequest(ending=offsets(51), end_rule=EndRule.HIGH_WATERMARK)
    with pytest.raises(DataLossError) as caught:
        offset_range(LOG, request, no_lookup)
    for said in ("endingOffsets", "offset 51", "orders-0", "holds 10 up to 50"):
        assert said in str(caught.value)


def test_an_end_above_the_high_watermark_is_clamped_and_logged_where_that_is_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # F97, F98.
    request = OffsetRequest(
        ending=offsets(51), end_rule=EndRule.HIGH_WATERMARK, fail_on_data_loss=False
    )
    assert offset_range(LOG, request, no_lookup) == OffsetRange(10, 50, log_start=10)
    (record,) = caplog.records
    assert "endingOffsets: offset 51 of orders-0 is not in the log" in record.getMessage()


def test_the_high_watermark_itself_is_a_valid_end() -> None:
    # F97, F98.
    request = OffsetRequest(ending=offsets(50), end_rule=EndRule.HIGH_WATERMARK)
    assert offset_range(LOG, request, no_lookup) == OffsetRange(10, 50, 10, requested_end=50)


def test_a_log_that_starts_at_its_first_segment_says_so_in_the_error() -> None:
    # F95, F98.
    with pytest.raises(DataLossError, match="holds 100 up to"):
        offset_range(log_of("orders", 0, 100), OffsetRequest(starting=offsets(99)), no_lookup)


def test_an_end_before_the_log_is_an_error() -> None:
    # F98; Spark's source fails, too: the beginning is after the end.
    with pytest.raises(DataLossError):
        offset_range(LOG, OffsetRequest(ending=offsets(9)), no_lookup)


def test_a_start_above_the_high_watermark_is_an_error() -> None:
    # F97, F98.
    request = OffsetRequest(starting=offsets(51), end_rule=EndRule.HIGH_WATERMARK)
    with pytest.raises(DataLossError):
        offset_range(LOG, request, no_lookup)


@pytest.mark.parametrize(
    "request_", [OffsetRequest(starting=offsets(5)), OffsetRequest(ending=offsets(5))]
)
def test_offsets_asked_of_a_partition_without_segments_are_an_error(
    request_: OffsetRequest,
) -> None:
    # F98.
    with pytest.raises(DataLossError):
        offset_range(log_of("orders", 0), request_, no_lookup)


@pytest.mark.parametrize("limit", [FromTimestamp(1000), timestamps(1000)])
def test_a_time_to_start_at_is_looked_up_from_the_log_start(limit: OffsetLimit) -> None:
    # F95.
    request = OffsetRequest(starting=limit)
    assert offset_range(LOG, request, times({1000: 30})) == OffsetRange(30, None, log_start=10)


@pytest.mark.parametrize("limit", [FromTimestamp(2000), timestamps(2000)])
def test_a_time_to_end_at_is_looked_up_from_the_log_start(limit: OffsetLimit) -> None:
    request = OffsetRequest(ending=limit)
    assert offset_range(LOG, request, times({2000: 40})) == OffsetRange(10, 40, log_start=10)


def test_times_at_both_ends_are_looked_up_apart() -> None:
    request = OffsetRequest(starting=FromTimestamp(1000), ending=timestamps(2000))
    found = offset_range(LOG, request, times({1000: 30, 2000: 40}))
    assert found == OffsetRange(30, 40, log_start=10)


@pytest.mark.parametrize("limit", [FromTimestamp(9), timestamps(9)])
def test_no_record_as_late_as_the_start_is_an_error_naming_the_option(limit: OffsetLimit) -> None:
    request = OffsetRequest(starting=limit, starting_option="startingTimestamp")
    with pytest.raises(OptionError) as caught:
        offset_range(LOG, request, times({}))
    assert (caught.value.name, caught.value.value) == ("startingTimestamp", 9)
    for said in ("orders-0", "startingOffsetsByTimestampStrategy=latest"):
        assert said in str(caught.value)


@pytest.mark.parametrize("limit", [FromTimestamp(9), timestamps(9)])
@pytest.mark.parametrize("rule", EndRule)
def test_no_record_as_late_as_the_start_reads_nothing_where_that_is_asked(
    rule: EndRule, limit: OffsetLimit
) -> None:
    request = OffsetRequest(starting=limit, no_match=NoMatch.LATEST, end_rule=rule)
    reads = list(segment_reads(LOG, offset_range(LOG, request, times({}))))
    assert [read for read in reads if read.first_offset < read.end_offset] == []


@pytest.mark.parametrize("found", [50, 60])
def test_a_record_at_or_above_the_high_watermark_is_not_there_yet(found: int) -> None:
    # F97.
    request = OffsetRequest(starting=FromTimestamp(1000), end_rule=EndRule.HIGH_WATERMARK)
    with pytest.raises(OptionError):
        offset_range(LOG, request, times({1000: found}))


@pytest.mark.parametrize("limit", [FromTimestamp(9), timestamps(9)])
@pytest.mark.parametrize(("rule", "end"), [(EndRule.LOG_END, None), (EndRule.HIGH_WATERMARK, 50)])
def test_no_record_as_late_as_the_end_reads_to_the_latest(
    limit: OffsetLimit, rule: EndRule, end: int | None
) -> None:
    # F96, F97.
    request = OffsetRequest(ending=limit, end_rule=rule)
    assert offset_range(LOG, request, times({})) == OffsetRange(10, end, log_start=10)


def test_a_time_to_end_at_above_the_high_watermark_reads_to_that() -> None:
    # F97.
    request = OffsetRequest(ending=FromTimestamp(2000), end_rule=EndRule.HIGH_WATERMARK)
    assert offset_range(LOG, request, times({2000: 60})) == OffsetRange(10, 50, log_start=10)


def test_a_log_of_no_topic_is_read_from_its_start_where_offsets_go_by_partition() -> None:
    unnamed = log_of(None, None, 100)
    request = OffsetRequest(starting=offsets(60))
    assert offset_range(unnamed, request, no_lookup) == OffsetRange(100, None, log_start=100)


def test_a_log_of_no_topic_is_read_to_its_end_where_offsets_go_by_partition() -> None:
    unnamed = log_of(None, None, 100)
    request = OffsetRequest(ending=offsets(60))
    assert offset_range(unnamed, request, no_lookup) == OffsetRange(100, None, log_start=100)


def test_data_loss_is_an_error_that_tells_how_to_read_on() -> None:
    # F98.
    with pytest.raises(DataLossError, match=r"^5 is lost \(failOnDataLoss=false "):
        report_data_loss("5 is lost", fail=True)


def test_data_loss_is_one_line_in_the_log_where_that_is_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # F98.
    report_data_loss("5 is lost", fail=False)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (
        logging.WARNING,
        "5 is lost; reading what is there",
    )


WRONG = DoubtfulRecord(30, 4_070_908_800_000, is_ahead=True)


def answers(offset: int | None, *doubtful: DoubtfulRecord) -> TimeLookup:
    return lambda log, start_offset, timestamp_ms: TimeAnswer(offset, doubtful)


def test_a_doubtful_record_bounds_a_range_by_kafkas_rule_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # F99, F930
    request = OffsetRequest(
        ending=FromTimestamp(8),
        ending_option="endingTimestamp",
        time_rule=TimeRule(1_700_000_000_000),
    )
    with caplog.at_level(logging.WARNING):
        assert offset_range(LOG, request, answers(30, WRONG)) == OffsetRange(10, 30, 10)
    (line,) = caplog.messages
    for said in ("endingTimestamp", "orders-0", "offset 30", "2099-01-01T00:00:00.000Z"):
        assert said in line


def test_records_that_are_passed_over_are_named_below_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # F930
    rule = TimeRule(1_700_000_000_000, passes_over=True)
    request = OffsetRequest(starting=FromTimestamp(7), ending=FromTimestamp(8), time_rule=rule)
    after = DoubtfulRecord(90, 4_070_908_800_000, is_ahead=True)
    found = offset_range(LOG, request, answers(40, WRONG, after))
    assert found == OffsetRange(40, 40, 10, passed_over=(WRONG,))
    assert caplog.messages == []
