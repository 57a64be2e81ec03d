"""`kafkalog.read`: Python values become the options of the source."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from kafkalog.errors import OptionError
from kafkalog.views.options import call_options
from kafkalog.views.options.call_options import options_of_call
from kafkalog.views.options.options import read_options

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
NEW_YEAR_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"columns": "offset"}, {"columns": "offset"}),
        ({"columns": ["offset", "key"]}, {"columns": "offset,key"}),
        ({"topics": "orders"}, {"subscribe": "orders"}),
        ({"topics": ["orders", "payments"]}, {"subscribe": "orders,payments"}),
        ({"topics": {"orders": range(2)}}, {"assign": '{"orders": [0, 1]}'}),
        (
            {"topics": {"orders": [0, 1]}, "offsets": (5, None)},
            {
                "assign": '{"orders": [0, 1]}',
                "startingOffsets": '{"orders": {"0": 5, "1": 5}}',
                "endingOffsets": '{"orders": {"0": -1, "1": -1}}',
            },
        ),
        (
            {"offsets": {"orders": {0: (None, 7), 3: (1, 2)}}},
            {
                "assign": '{"orders": [0, 3]}',
                "startingOffsets": '{"orders": {"0": -2, "3": 1}}',
                "endingOffsets": '{"orders": {"0": 7, "3": 2}}',
            },
        ),
        (
            {"topics": "orders", "offsets": {"orders": {0: (1, 2)}}},
            {
                "subscribe": "orders",
                "startingOffsets": '{"orders": {"0": 1}}',
                "endingOffsets": '{"orders": {"0": 2}}',
            },
        ),
        ({"from_time": 5}, {"fromTimestamp": "5"}),
        ({"as_of": NEW_YEAR}, {"asOf": f"{NEW_YEAR_MS}"}),
        ({"as_of": "2026-01-01"}, {"asOf": f"{NEW_YEAR_MS}"}),
        (
            {"from_time": NEW_YEAR, "until_time": NEW_YEAR + timedelta(microseconds=1)},
            {"fromTimestamp": f"{NEW_YEAR_MS}", "untilTimestamp": f"{NEW_YEAR_MS + 1}"},
        ),
        (
            {"until_time": NEW_YEAR.astimezone(timezone(timedelta(hours=5)))},
            {"untilTimestamp": f"{NEW_YEAR_MS}"},
        ),
        (
            {"mode": "PERMISSIVE", "include_headers": True, "min_partitions": 7},
            {"mode": "PERMISSIVE", "includeHeaders": "true", "minPartitions": "7"},
        ),
    ],
)
def test_values_become_options_that_say_the_same(
    given: dict[str, Any], expected: dict[str, str]
) -> None:
    options = options_of_call(**given)
    assert options == expected
    read_options({"path": "data", **options})


@pytest.mark.parametrize(
    "offsets",
    [(1, 2), "orders-0=1:2", {"orders": (1, 2)}, {"orders": {0: 1}}, {"orders": {0: "1:2"}}],
)
def test_offsets_need_partitions_and_are_pairs(offsets: Any) -> None:
    with pytest.raises(OptionError, match=r"^offsets: .* expected \(10, 20\) with topics=\{"):
        options_of_call(topics="orders", offsets=offsets)


def test_a_time_without_a_time_zone_is_refused() -> None:
    with pytest.raises(OptionError, match="a time with its time zone"):
        options_of_call(from_time=datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("given", "expected_ms"),
    [
        ("now", NEW_YEAR_MS + 5000),
        ("-2s", NEW_YEAR_MS + 3000),
        ("today", NEW_YEAR_MS),
        ("yesterday", NEW_YEAR_MS - 86_400_000),
        ("-1d", NEW_YEAR_MS + 5000 - 86_400_000),
    ],
)
def test_text_can_be_relative_to_the_present_as_on_the_command_line(
    given: str, expected_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_options, "time_ns", lambda: (NEW_YEAR_MS + 5000) * 1_000_000)
    assert options_of_call(from_time=given) == {"fromTimestamp": str(expected_ms)}
    assert call_options.milliseconds("as_of", given) == expected_ms


def test_a_number_that_looks_like_seconds_is_doubted(caplog: pytest.LogCaptureFixture) -> None:
    assert call_options.milliseconds("as_of", "1767225600") == 1_767_225_600
    assert "1767225600 is 1970-01-21T" in caplog.text
