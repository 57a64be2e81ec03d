"""Where to begin and to end: options in the forms of Spark's Kafka source. F98."""

from typing import Any

import pytest

from kafkalog.errors import OptionError
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import (
    Everything,
    FromTimestamp,
    NoMatch,
    OffsetLimit,
    OffsetRequest,
    SpecificOffsets,
    SpecificTimestamps,
    TimeAnswer,
    offset_range,
)
from kafkalog.views.options.offset_options import OFFSET_OPTIONS, check_partitions, offset_request
from kafkalog.views.options.option_values import OptionValues
from tests.support.logs.log_dirs import log_of


def request_of(**given: str) -> OffsetRequest:
    return offset_request(OptionValues(given, OFFSET_OPTIONS))


def test_everything_is_read_by_default() -> None:
    assert request_of() == OffsetRequest(
        starting=Everything(),
        ending=Everything(),
        starting_option="startingOffsets",
        ending_option="endingOffsets",
        no_match=NoMatch.ERROR,
        fail_on_data_loss=True,
        end_rule=EndRule.LOG_END,
    )


@pytest.mark.parametrize(
    ("option", "value", "limit"),
    [
        ("startingOffsets", "earliest", Everything()),
        ("startingOffsets", " Earliest ", Everything()),
        ("startingOffsets", '{"orders":{"0":23}}', SpecificOffsets({("orders", 0): 23})),
        (
            "startingOffsets",
            '{"a-b.c":{"0":23,"11":-2},"users":{"0":0}}',
            SpecificOffsets({("a-b.c", 0): 23, ("a-b.c", 11): -2, ("users", 0): 0}),
        ),
        (
            "startingOffsets",
            '{"orders":{"0":9223372036854775807}}',
            SpecificOffsets({("orders", 0): 2**63 - 1}),
        ),
        ("startingTimestamp", "1700000000000", FromTimestamp(1_700_000_000_000)),
        ("startingTimestamp", " 0 ", FromTimestamp(0)),
        (
            "startingOffsetsByTimestamp",
            '{"orders":{"0":1700000000000,"1":0}}',
            SpecificTimestamps({("orders", 0): 1_700_000_000_000, ("orders", 1): 0}),
        ),
    ],
)
def test_a_read_starts_where_the_option_says(option: str, value: str, limit: OffsetLimit) -> None:
    assert request_of(**{option: value}) == OffsetRequest(starting=limit, starting_option=option)


@pytest.mark.parametrize(
    ("option", "value", "limit"),
    [
        ("endingOffsets", "latest", Everything()),
        ("endingOffsets", " LATEST ", Everything()),
        (
            "endingOffsets",
            '{"orders":{"0":23,"1":-1}}',
            SpecificOffsets({("orders", 0): 23, ("orders", 1): -1}),
        ),
        ("endingTimestamp", "1700000000000", FromTimestamp(1_700_000_000_000)),
        (
            "endingOffsetsByTimestamp",
            '{"orders":{"0":1700000000000}}',
            SpecificTimestamps({("orders", 0): 1_700_000_000_000}),
        ),
    ],
)
def test_a_read_ends_where_the_option_says(option: str, value: str, limit: OffsetLimit) -> None:
    assert request_of(**{option: value}) == OffsetRequest(ending=limit, ending_option=option)


def test_a_time_for_all_wins_over_times_by_partition_and_these_over_offsets() -> None:
    offsets, by_time, time = '{"t":{"0":1}}', '{"t":{"0":2}}', "3"
    low = {"startingOffsets": offsets, "endingOffsets": offsets}
    middle = {"startingOffsetsByTimestamp": by_time, "endingOffsetsByTimestamp": by_time}
    high = {"startingTimestamp": time, "endingTimestamp": time}
    assert request_of(**low, **middle, **high) == OffsetRequest(
        starting=FromTimestamp(3),
        ending=FromTimestamp(3),
        starting_option="startingTimestamp",
        ending_option="endingTimestamp",
    )
    assert request_of(**low, **middle) == OffsetRequest(
        starting=SpecificTimestamps({("t", 0): 2}),
        ending=SpecificTimestamps({("t", 0): 2}),
        starting_option="startingOffsetsByTimestamp",
        ending_option="endingOffsetsByTimestamp",
    )


def test_both_ends_may_be_given_in_different_forms() -> None:
    assert request_of(startingTimestamp="5", endingOffsets='{"t":{"0":9}}') == OffsetRequest(
        starting=FromTimestamp(5),
        ending=SpecificOffsets({("t", 0): 9}),
        starting_option="startingTimestamp",
    )


@pytest.mark.parametrize(
    ("option", "value", "changed"),
    [
        ("failOnDataLoss", "false", OffsetRequest(fail_on_data_loss=False)),
        ("failOnDataLoss", "TRUE", OffsetRequest()),
        ("startingOffsetsByTimestampStrategy", "latest", OffsetRequest(no_match=NoMatch.LATEST)),
        ("startingOffsetsByTimestampStrategy", "ERROR", OffsetRequest()),
        ("stopAt", "highWatermark", OffsetRequest(end_rule=EndRule.HIGH_WATERMARK)),
        ("stopAt", "highwatermark", OffsetRequest(end_rule=EndRule.HIGH_WATERMARK)),
        ("stopAt", "logEnd", OffsetRequest()),
    ],
)
def test_what_to_do_at_the_ends_is_an_option(
    option: str, value: str, changed: OffsetRequest
) -> None:
    # F97, F98.
    assert request_of(**{option: value}) == changed


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("startingOffsets", "latest", "earliest"),
        ("startingOffsets", "Latest", "earliest"),
        ("startingOffsets", '{"t":{"0":-1}}', "other than -1"),
        ("startingOffsets", '{"t":{"0":5,"1":-1}}', "other than -1"),
        ("endingOffsets", "earliest", "latest"),
        ("endingOffsets", '{"t":{"0":-2}}', "other than -2"),
    ],
)
def test_a_batch_neither_starts_at_the_latest_nor_ends_at_the_earliest(
    option: str, value: str, allowed: str
) -> None:
    with pytest.raises(OptionError) as caught:
        request_of(**{option: value})
    assert (caught.value.name, caught.value.value) == (option, value)
    assert allowed in str(caught.value)


NO_JSON_BY_PARTITION = [
    "",
    "23",
    "first",
    "null",
    "[]",
    '{"t":5}',
    '{"t":[5]}',
    '{"t":{"0":5}',
    '{"t":{"zero":5}}',
    '{"t":{"0":"5"}}',
    '{"t":{"0":5.0}}',
    '{"t":{"0":true}}',
    '{"t":{"0":null}}',
    '{"t":{"0":-3}}',
]


@pytest.mark.parametrize("value", NO_JSON_BY_PARTITION)
@pytest.mark.parametrize(
    "option",
    ["startingOffsets", "endingOffsets", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp"],
)
def test_what_is_not_by_partition_is_an_error_naming_option_and_form(
    option: str, value: str
) -> None:
    with pytest.raises(OptionError) as caught:
        request_of(**{option: value})
    assert (caught.value.name, caught.value.value) == (option, value)
    assert 'JSON such as {"topic":{"0":' in str(caught.value)


@pytest.mark.parametrize("option", ["startingTimestamp", "endingTimestamp"])
@pytest.mark.parametrize("value", ["", "-1", "1.5", "2024-01-01", "1e12", "now", '{"t":{"0":5}}'])
def test_what_is_not_a_time_is_an_error_naming_option_and_form(option: str, value: str) -> None:
    with pytest.raises(OptionError) as caught:
        request_of(**{option: value})
    assert (caught.value.name, caught.value.value) == (option, value)
    assert "milliseconds since 1970" in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("failOnDataLoss", "perhaps"),
        ("startingOffsetsByTimestampStrategy", "earliest"),
        ("stopAt", "lastStableOffset"),
    ],
)
def test_any_other_word_is_an_error_naming_the_option(option: str, value: str) -> None:
    with pytest.raises(OptionError) as caught:
        request_of(**{option: value})
    assert (caught.value.name, caught.value.value) == (option, value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("startingTimestamp", "earliest"),
        ("startingOffsetsByTimestamp", "earliest"),
        ("endingTimestamp", "latest"),
        ("endingOffsetsByTimestamp", "latest"),
    ],
)
def test_a_word_for_an_offset_is_not_a_time(option: str, value: str) -> None:
    with pytest.raises(OptionError, match=option):
        request_of(**{option: value})


@pytest.mark.parametrize(
    "option",
    ["startingOffsets", "endingOffsets", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp"],
)
def test_a_number_beyond_64_bits_is_an_error_naming_the_option(option: str) -> None:
    with pytest.raises(OptionError, match=option):
        request_of(**{option: '{"t":{"0":9223372036854775808}}'})


@pytest.mark.parametrize("form", ["Offsets", "OffsetsByTimestamp"])
def test_an_end_before_the_start_is_an_error(form: str) -> None:
    def one_by_one(log: PartitionLog, start_offset: int, timestamp_ms: int) -> TimeAnswer:
        return TimeAnswer(timestamp_ms)

    with pytest.raises(OptionError):
        request = request_of(
            **{f"starting{form}": '{"t":{"0":9}}', f"ending{form}": '{"t":{"0":8}}'}
        )
        offset_range(log_of("t", 0, 0), request, one_by_one)


LOGS = [log_of("a-b", 0, 0), log_of("a-b", 1, 0), log_of("users", 0, 0)]
ALL = {("a-b", 0): 5, ("a-b", 1): 5, ("users", 0): 5}


@pytest.mark.parametrize(
    "limit", [Everything(), FromTimestamp(5), SpecificOffsets(ALL), SpecificTimestamps(ALL)]
)
def test_all_partitions_that_are_read_may_be_named(limit: OffsetLimit) -> None:
    check_partitions(OffsetRequest(starting=limit, ending=limit), LOGS)


def test_a_file_of_no_topic_cannot_be_named() -> None:
    check_partitions(OffsetRequest(starting=SpecificOffsets(ALL)), [*LOGS, log_of(None, None, 0)])


@pytest.mark.parametrize(
    "named",
    [{("a-b", 0): 5, ("users", 0): 5}, ALL | {("a-b", 2): 5}, ALL | {("payments", 0): 5}, {}],
)
@pytest.mark.parametrize("kind", [SpecificOffsets, SpecificTimestamps])
@pytest.mark.parametrize("end", ["starting", "ending"])
def test_partitions_missing_or_too_many_are_an_error_naming_option_and_partitions(
    end: str,
    kind: type[SpecificOffsets] | type[SpecificTimestamps],
    named: dict[tuple[str, int], int],
) -> None:
    # As in Spark's source, which asserts the same.
    limits: dict[str, Any] = {end: kind(named)}
    request = OffsetRequest(**limits, starting_option="theStart", ending_option="theEnd")
    with pytest.raises(OptionError) as caught:
        check_partitions(request, LOGS)
    assert caught.value.name == {"starting": "theStart", "ending": "theEnd"}[end]
    assert "a-b-0, a-b-1, users-0" in str(caught.value)
