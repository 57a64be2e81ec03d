"""Which stretches of time plots have. Rules: docs/report.md F601, F604."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkalog.report.reading.group_reading import history_end
from kafkalog.report.time_grid import STRETCHES, grid_over, stretch_words
from tests.support.report.sample_report import AT_MS, HOUR_MS

DAY_MS = 24 * HOUR_MS
YEAR_10000_MS = 253_402_300_800_000


def test_a_log_of_a_week_has_a_stretch_for_each_hour() -> None:
    grid = grid_over(AT_MS, AT_MS, AT_MS + 7 * DAY_MS, AT_MS + 7 * DAY_MS)
    assert (grid.every_ms, grid.begin_ms % HOUR_MS) == (HOUR_MS, 0)
    assert grid.stretches == 7 * 24 + 1


def test_a_clock_gone_wrong_does_not_hide_the_rest() -> None:
    day = grid_over(0, AT_MS, AT_MS + DAY_MS, 4_102_444_800_000)
    assert day.begin_ms >= AT_MS - DAY_MS - HOUR_MS
    assert day.begin_ms + day.stretches * day.every_ms <= AT_MS + 2 * DAY_MS + HOUR_MS


@example(times=[1, 1, 192_000, 192_000])
@given(st.lists(st.integers(0, YEAR_10000_MS - 1), min_size=4, max_size=4).map(sorted))
def test_any_times_have_few_stretches_that_cover_where_nearly_all_are(times: list[int]) -> None:
    least, low, high, greatest = times
    grid = grid_over(least, low, high, greatest)
    end = grid.begin_ms + grid.stretches * grid.every_ms
    assert 1 <= grid.stretches <= 192
    assert grid.every_ms in STRETCHES
    assert grid.begin_ms <= low
    assert high < end or grid.every_ms == STRETCHES[-1]


@pytest.mark.parametrize(
    ("every_ms", "words"),
    [(HOUR_MS, "hour"), (6 * HOUR_MS, "6 hours"), (60_000, "minute"), (100, "100 ms")],
)
def test_stretches_have_names(every_ms: int, words: str) -> None:
    assert stretch_words(every_ms) == words


def test_the_history_of_groups_ends_with_the_copy_and_not_with_a_wrong_clock() -> None:
    assert history_end(AT_MS, AT_MS + 5, AT_MS + DAY_MS) == AT_MS + 5
    assert history_end(AT_MS, AT_MS - 5, AT_MS + DAY_MS) == AT_MS
    assert history_end(AT_MS, 4_102_444_800_000, AT_MS + DAY_MS) == AT_MS + DAY_MS
    # F942: nothing is shown of what came after the moment.
    assert history_end(AT_MS, AT_MS + 5, AT_MS - DAY_MS) == AT_MS - DAY_MS
