"""The table of errors in time lag: kafkalog has none, estimates are off where they must be."""

import numpy as np
import pytest

from benchmarks.time_lag import (
    LOGS,
    START_MS,
    TimeLag,
    lag_by_rate,
    line,
    record_times,
    sample_table,
    time_lags,
)

HOUR_MS = 60 * 60 * 1000


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[TimeLag]:
    return time_lags(tmp_path_factory.mktemp("logs"), per_second=0.05)


def test_the_age_of_the_next_record_is_exact(found: list[TimeLag]) -> None:
    # F315: on logs of every kind, behind by ten minutes, two hours and a day.
    assert [each.exact_ms - each.age_ms for each in found] == [0] * 3 * len(LOGS)


def test_all_methods_are_right_on_a_steady_log(found: list[TimeLag]) -> None:
    for each in found[:3]:
        for estimate in (each.line_ms, each.table_ms, each.rate_ms):
            assert estimate == pytest.approx(each.age_ms, rel=0.1)


def test_estimates_are_off_where_the_rate_changed(found: list[TimeLag]) -> None:
    by_log = {(each.log, round(each.age_ms / HOUR_MS)): each for each in found}
    assert by_log["diurnal", 2].table_ms < 0.9 * 2 * HOUR_MS
    assert by_log["burst", 24].line_ms < 0.8 * 24 * HOUR_MS
    assert by_log["idle", 24].table_ms > 48 * HOUR_MS
    assert by_log["idle", 24].rate_ms > 48 * HOUR_MS


def test_the_table_keeps_the_first_and_the_last_of_equal_ends() -> None:
    # Ten records in the first minute, then none for an hour, then one more.
    times = START_MS + np.array([*range(1000, 11_000, 1000), HOUR_MS])
    now_ms = START_MS + HOUR_MS
    assert sample_table(times, 11, now_ms) == 0
    # The last poll that did not see it yet.
    assert sample_table(times, 10, now_ms) == 30_000
    assert sample_table(times, 5, now_ms) == HOUR_MS - 15_000
    assert line(times, 5, now_ms) == pytest.approx(now_ms - np.interp(5, [0, 10], times[[0, 10]]))
    assert lag_by_rate(times, 10, now_ms) == 300_000


def test_records_come_as_the_rates_say() -> None:
    times = record_times("burst", 0.1)
    per_hour = np.bincount((times - START_MS - 1) // HOUR_MS)
    assert per_hour[168 - 30] == 50 * per_hour[0] == 50 * 360
    assert per_hour.sum() == len(times) == 360 * 167 + 18_000
