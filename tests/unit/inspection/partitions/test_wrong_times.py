"""Times that cannot be right. Rule: docs/command-line.md F1248."""

import pytest

from kafkalog.inspection.partitions.wrong_times import SegmentTimes, wrong_time, wrong_time_lines
from kafkalog.words import time_ms, time_text

NOW_MS = time_ms("2026-11-26T00:00:00Z")
HOUR_MS = 3_600_000
A_TIME_MS = time_ms("2026-11-20T12:00:00Z")


@pytest.mark.parametrize(
    ("time", "wrong"),
    [
        (A_TIME_MS, None),
        (-1, None),
        (NOW_MS + HOUR_MS, None),
        (time_ms("2000-01-01T00:00:00Z"), None),
        (NOW_MS + HOUR_MS + 1, "times ahead of the clock"),
        (time_ms("2100-01-01T00:00:00Z"), "times ahead of the clock"),
        (2**63 - 1, "times ahead of the clock"),
        (0, "times before 2000"),
        (time_ms("1999-12-31T23:59:59Z"), "times before 2000"),
        (A_TIME_MS // 1000, "times that look like seconds in place of milliseconds"),
        (A_TIME_MS * 1000, "times that look like microseconds in place of milliseconds"),
        (A_TIME_MS * 10**6, "times that look like nanoseconds"),
    ],
)
def test_what_is_wrong_about_a_time(time: int, wrong: str | None) -> None:
    assert wrong_time(time, NOW_MS) == wrong


def test_a_kind_has_a_line_with_its_topics_and_an_example() -> None:
    segments = [
        SegmentTimes("a", "/a-0/0.log", 0, A_TIME_MS),
        SegmentTimes("a", "/a-1/0.log", 0, 0),
        SegmentTimes("b", "/b-0/0.log", 5, A_TIME_MS * 1000),
        SegmentTimes("c", "/c-0/0.log", None, None),
    ]
    assert [*wrong_time_lines(segments, NOW_MS)] == [
        "wrong times: times before 2000 in 2 topics: a (2 segments), b (1 segment); such as "
        "1970-01-01T00:00:00.000Z in /a-0/0.log; kafkalog find /a-0 --until-time "
        "2000-01-01T00:00:00.000Z lists them",
        "wrong times: times that look like microseconds in place of milliseconds in 1 topic: "
        f"b (1 segment); such as {A_TIME_MS * 1000} in /b-0/0.log; kafkalog find /b-0 --from-time "
        f"{time_text(NOW_MS + 3_600_000)} lists them",
    ]
