"""What retention deletes. Rules: F160 to F166. Trap: T34.

Expected by hand from the order and the conditions of Kafka's `UnifiedLog.deleteOldSegments`.
"""

import pytest

from kafkalog.storage.cleaning.retention import (
    Reason,
    RetentionLog,
    RetentionSegment,
    Verdict,
    expiries_ms,
    plan_retention,
)
from kafkalog.storage.log_dir.topic_configs import RetentionLimits

NOW = 1_000_000
DELETE, COMPACT = frozenset(("delete",)), frozenset(("compact",))
GOES = {Reason.LOG_START, Reason.SIZE, Reason.TIME}


def segments(*sizes: int, times: tuple[int, ...] | None = None) -> list[RetentionSegment]:
    """Segments of ten offsets each, all last written now if no times are given."""
    return [
        RetentionSegment(10 * number, size, times[number] if times else NOW)
        for number, size in enumerate(sizes)
    ]


def limits(
    *,
    policy: frozenset[str] | None = DELETE,
    ms: int | None = -1,
    size: int | None = -1,
    tiered: bool = False,
) -> RetentionLimits:
    return RetentionLimits(policy, ms, size, tiered)


def planned(
    found: list[RetentionSegment],
    what: RetentionLimits,
    *,
    start: int = 0,
    high_watermark: int | None = None,
    remote: int | None = None,
) -> list[Reason]:
    end = 10 * len(found)
    log = RetentionLog(start, end, end if high_watermark is None else high_watermark, remote)
    verdicts = plan_retention(found, log, what, NOW)
    unknown = {Reason.UNKNOWN_LIMITS, Reason.UNKNOWN_UPLOAD}
    assert verdicts == [
        Verdict(None if verdict.reason in unknown else verdict.reason in GOES, verdict.reason)
        for verdict in verdicts
    ]
    return [verdict.reason for verdict in verdicts]


def test_without_limits_nothing_goes() -> None:
    assert planned(segments(100, 100), limits()) == [Reason.WITHIN_LIMITS] * 2


@pytest.mark.parametrize(
    ("size", "going"),
    # 400 bytes in all; never below the limit, down to exactly it.
    [(400, 0), (301, 0), (300, 1), (299, 1), (200, 2), (100, 3), (1, 3), (0, 4), (-1, 0), (500, 0)],
)
def test_size_never_takes_the_log_below_its_limit(size: int, going: int) -> None:
    reasons = planned(segments(100, 100, 100, 100), limits(size=size))
    assert reasons == [Reason.SIZE] * going + [Reason.WITHIN_LIMITS] * (4 - going)


def test_size_stops_at_the_first_segment_too_large_to_go() -> None:
    # T34: 50 bytes too many; the small segments behind the large one would do.
    assert planned(segments(100, 10, 10), limits(size=70)) == [Reason.WITHIN_LIMITS] * 3


@pytest.mark.parametrize(("age", "goes"), [(99, False), (100, False), (101, True)])
def test_time_goes_by_more_than_the_limit_not_by_as_much(age: int, goes: bool) -> None:
    found = segments(1, 1, times=(NOW - age, NOW))
    assert planned(found, limits(ms=100)) == [
        Reason.TIME if goes else Reason.WITHIN_LIMITS,
        Reason.WITHIN_LIMITS,
    ]


def test_time_stops_at_the_first_survivor() -> None:
    found = segments(1, 1, 1, 1, times=(NOW - 500, NOW - 50, NOW - 500, NOW))
    assert planned(found, limits(ms=100)) == [
        Reason.TIME,
        Reason.WITHIN_LIMITS,
        Reason.BEHIND_SURVIVOR,
        Reason.WITHIN_LIMITS,
    ]


def test_a_timestamp_in_the_future_blocks_all_after_it() -> None:
    # F163
    found = segments(1, 1, 1, times=(NOW + 1, NOW - 500, NOW - 500))
    assert planned(found, limits(ms=100)) == [
        Reason.FUTURE_TIMESTAMP,
        Reason.BEHIND_SURVIVOR,
        Reason.BEHIND_SURVIVOR,
    ]


def test_a_timestamp_in_the_future_blocks_neither_size_nor_log_start() -> None:
    found = segments(100, 100, 100, times=(NOW + 1, NOW + 1, NOW - 500))
    reasons = planned(found, limits(ms=100, size=100), start=10)
    assert reasons == [Reason.LOG_START, Reason.SIZE, Reason.TIME]


def test_without_a_limit_of_time_no_timestamp_blocks() -> None:
    found = segments(1, times=(2**63 - 1,))
    assert planned(found, limits()) == [Reason.WITHIN_LIMITS]


def test_passes_follow_each_other_on_what_is_left() -> None:
    # F160: 100 by log start; of the 400 left 150 may go, so one; the next is old enough.
    found = segments(100, 100, 100, 100, 100, times=(NOW, NOW, 0, NOW, 0))
    assert planned(found, limits(ms=100, size=250), start=10) == [
        Reason.LOG_START,
        Reason.SIZE,
        Reason.TIME,
        Reason.WITHIN_LIMITS,
        Reason.BEHIND_SURVIVOR,
    ]


@pytest.mark.parametrize(("start", "going"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (30, 2)])
def test_log_start_takes_segments_wholly_below_it_but_never_the_last(
    start: int, going: int
) -> None:
    reasons = planned(segments(1, 1, 1), limits(), start=start)
    assert reasons == [Reason.LOG_START] * going + [Reason.WITHIN_LIMITS] * (3 - going)


@pytest.mark.parametrize("policy", [COMPACT, frozenset()])
def test_without_delete_in_the_policy_only_log_start_counts(policy: frozenset[str]) -> None:
    # F165
    found = segments(100, 100, 100, times=(0, 0, 0))
    assert planned(found, limits(policy=policy, ms=1, size=1), start=10) == [
        Reason.LOG_START,
        Reason.WITHIN_LIMITS,
        Reason.WITHIN_LIMITS,
    ]


def test_compact_and_delete_is_delete() -> None:
    found = segments(100, 100, times=(0, 0))
    assert planned(found, limits(policy=COMPACT | DELETE, ms=1)) == [Reason.TIME] * 2


def test_the_active_segment_goes_too_if_it_is_not_empty() -> None:
    # F164
    old = limits(ms=100)
    assert planned(segments(1, 1, times=(0, 0)), old) == [Reason.TIME] * 2
    assert planned(segments(1, 0, times=(0, 0)), old) == [Reason.TIME, Reason.EMPTY_ACTIVE]
    # An empty one in the middle is like any other.
    assert planned(segments(0, 1, times=(0, 0)), old) == [Reason.TIME] * 2


@pytest.mark.parametrize(("high_watermark", "going"), [(9, 0), (10, 1), (29, 2), (30, 3)])
def test_no_segment_goes_that_reaches_beyond_the_high_watermark(
    high_watermark: int, going: int
) -> None:
    # F164: the last segment's end is the log end.
    found = segments(1, 1, 1, times=(0, 0, 0))
    reasons = planned(found, limits(ms=1), high_watermark=high_watermark)
    assert reasons == [Reason.TIME] * going + [Reason.HIGH_WATERMARK] * (3 - going)


@pytest.mark.parametrize(
    ("remote", "reasons"),
    [
        (-1, [Reason.NOT_UPLOADED, Reason.BEHIND_SURVIVOR, Reason.BEHIND_SURVIVOR]),
        (9, [Reason.SIZE, Reason.NOT_UPLOADED, Reason.BEHIND_SURVIVOR]),
        (19, [Reason.SIZE, Reason.SIZE, Reason.NOT_UPLOADED]),
        (29, [Reason.SIZE, Reason.SIZE, Reason.NOT_UPLOADED]),
        (None, [Reason.UNKNOWN_UPLOAD, Reason.UNKNOWN_UPLOAD, Reason.UNKNOWN_UPLOAD]),
    ],
)
@pytest.mark.parametrize("policy", [DELETE, frozenset()])
def test_a_tiered_logs_segment_goes_once_it_is_uploaded(
    remote: int | None, reasons: list[Reason], policy: frozenset[str]
) -> None:
    # F166: under an empty policy too.
    what = limits(policy=policy, size=0, tiered=True)
    assert planned(segments(1, 1, 1), what, remote=remote) == reasons


def test_a_tiered_logs_segment_below_the_log_start_need_not_be_uploaded() -> None:
    what = limits(tiered=True)
    assert planned(segments(1, 1), what, start=10) == [Reason.LOG_START, Reason.WITHIN_LIMITS]


def test_unknown_limits_decide_nothing() -> None:
    # F168
    unknown = limits(policy=None, ms=None, size=None)
    assert planned(segments(1, 1), unknown) == [Reason.UNKNOWN_LIMITS] * 2
    assert planned(segments(1, 1), limits(ms=None)) == [Reason.UNKNOWN_LIMITS] * 2
    assert planned(segments(1, 1), limits(size=None)) == [Reason.UNKNOWN_LIMITS] * 2


def test_an_unknown_policy_leaves_open_only_what_delete_would_remove() -> None:
    # F168: with `delete` the first goes by time and the third stays; with `compact` all stay.
    found = segments(1, 1, 1, times=(NOW - 11, NOW - 12, NOW))
    what = limits(policy=None, ms=10)
    assert planned(found, what) == [*([Reason.UNKNOWN_LIMITS] * 2), Reason.WITHIN_LIMITS]
    assert planned(found, limits(policy=None)) == [Reason.WITHIN_LIMITS] * 3


def test_what_is_known_decides_beside_what_is_not() -> None:
    found = segments(100, 100, 100, 0, times=(NOW, 0, NOW, NOW))
    what = limits(ms=10, size=None)
    assert planned(found, what, start=10) == [
        Reason.LOG_START,
        Reason.TIME,
        Reason.UNKNOWN_LIMITS,
        Reason.EMPTY_ACTIVE,
    ]
    # A policy without delete makes unknown limits of no account.
    assert planned(found, limits(policy=COMPACT, ms=None, size=None), high_watermark=5) == [
        Reason.HIGH_WATERMARK,
        Reason.HIGH_WATERMARK,
        Reason.HIGH_WATERMARK,
        Reason.HIGH_WATERMARK,
    ]


def test_expiry_waits_for_the_segments_ahead() -> None:
    found = segments(1, 1, 1, times=(100, 5000, 200))
    assert expiries_ms(found, limits(ms=10)) == [111, 5011, 5011]
    for never in (limits(), limits(ms=None), limits(policy=COMPACT)):
        assert expiries_ms(found, never) == [None, None, None]
    # F168: if the policy has delete.
    assert expiries_ms(found, limits(policy=None, ms=10)) == [111, 5011, 5011]
    assert expiries_ms(segments(1, times=(2**63 - 1,)), limits(ms=1)) == [None]


def test_a_log_without_segments_has_no_plan() -> None:
    assert planned([], limits(ms=1)) == []
