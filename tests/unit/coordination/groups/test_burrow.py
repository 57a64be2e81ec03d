"""Burrow's rules, by the cases of its own tests and by a second, plain transcription of its code.

The cases are facts from LinkedIn's Burrow, core/internal/evaluator/caching_test.go and
core/internal/storage/fixtures.go at commit ced55ba90f6b833a45a124d411fd5eef63a70933: what goes in,
and the status that is expected of it.
"""

import random
from typing import NamedTuple

import pytest

from kafkalog.coordination.groups.burrow import BurrowRule, BurrowSettings, BurrowStatus
from tests.support.lag.burrow_oracle import (
    CommitWindow,
    GroupStatus,
    HeldCommit,
    PartitionStatus,
    group_status,
    partition_status,
)


def commits(*rows: tuple[int, int, int | None], step: int = 1) -> list[HeldCommit]:
    """Commits by offset, timestamp and lag; their order does not count here."""
    return [HeldCommit(step * place, *row) for place, row in enumerate(rows, 1)]


GROWING = commits(
    *((1000, 100_000, 0), (2000, 200_000, 50), (3000, 300_000, 100)),
    *((4000, 400_000, 150), (5000, 500_000, 200)),
)
GROWING_FROM_50 = commits(
    *((1000, 100_000, 50), (2000, 200_000, 100), (3000, 300_000, 150)),
    *((4000, 400_000, 200), (5000, 500_000, 250)),
)
STUCK = commits(
    *((1000, 100_000, 100), (1000, 200_000, 150), (1000, 300_000, 200)),
    *((1000, 400_000, 250), (1000, 500_000, 300)),
)
RECOVERED = commits(
    *((1000, 100_000, 100), (2000, 200_000, 150), (3000, 300_000, 200)),
    *((2000, 400_000, 1250), (4000, 500_000, 300)),
)
_TIMES = (
    *(18_356, 19_362, 20_366, 21_367, 22_370, 23_373, 24_378, 25_379),
    *(26_383, 27_383, 28_383, 29_388, 30_391, 31_394, 32_397),
)
CAUGHT_UP = commits(
    *((792_748_079 + i, 1_512_224_600_000 + time, 0) for i, time in enumerate(_TIMES))
)
WITH_LATE_ONES = commits(
    *((1000, 100_000, 0), (1500, 150_000, None), (2000, 200_000, 50), (2500, 250_000, None)),
    *((3000, 300_000, 100), (3500, 350_000, None), (4000, 400_000, 150), (4500, 450_000, None)),
    *((5000, 500_000, 200), (5500, 550_000, None)),
)


class Case(NamedTuple):
    """The commits, the ends of the partition, the lag, the time in seconds, the allowed lag."""

    held: list[HeldCommit]
    end_offsets: list[int]
    current_lag: int
    now_s: int
    allowed_lag: int
    status: BurrowStatus


CASES = [
    Case(GROWING, [5200], 200, 600, 0, BurrowStatus.OK),
    Case(GROWING, [5200], 200, 900, 0, BurrowStatus.OK),
    Case(GROWING, [5200], 200, 1000, 0, BurrowStatus.STOP),
    Case(GROWING_FROM_50, [5250], 250, 1000, 0, BurrowStatus.STOP),
    Case([STUCK[0]._replace(lag=0), *(c._replace(lag=c.lag - 100) for c in STUCK[1:] if c.lag)],
         [1200], 200, 600, 0, BurrowStatus.OK),
    Case(STUCK, [1300], 300, 600, 0, BurrowStatus.STALL),
    Case([c._replace(lag=100) for c in STUCK], [1100], 100, 600, 0, BurrowStatus.STALL),
    Case(RECOVERED, [4300], 300, 600, 0, BurrowStatus.OK),
    Case(GROWING_FROM_50, [5250], 0, 1000, 0, BurrowStatus.OK),
    Case(CAUGHT_UP, [792_749_024, 792_749_000, 792_748_800, 792_748_600, 792_748_500], 931,
         1_512_224_650, 0, BurrowStatus.STOP),
    Case(CAUGHT_UP, [792_748_094, 792_748_093, 792_748_093, 792_748_093], 1, 1_512_224_650, 0,
         BurrowStatus.OK),
    Case(WITH_LATE_ONES, [5700], 200, 600, 0, BurrowStatus.OK),
    Case(commits((1000, 100_000, 2), (2000, 200_000, 1), (2000, 300_000, 1)), [2001], 1, 550, 1,
         BurrowStatus.OK),
    Case(STUCK, [1300], 300, 600, 99, BurrowStatus.STALL),
    Case(RECOVERED, [4300], 300, 600, 99, BurrowStatus.OK),
    Case([*RECOVERED[:4], RECOVERED[4]._replace(offset=2500)], [4300], 300, 600, 0,
         BurrowStatus.REWIND),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_status_is_that_of_burrows_own_tests(number: int) -> None:
    # F331
    case = CASES[number]
    # There the lag is given apart from the ends; the newest end is last, as Burrow hands them on.
    ends = [*sorted(case.end_offsets), case.held[-1].offset + case.current_lag]
    if case.current_lag == 0:
        ends = ends[-1:]
    settings = BurrowSettings(intervals=len(case.held), allowed_lag=case.allowed_lag)
    found = partition_status(case.held, ends, case.now_s * 1000, settings)
    assert (found.status, found.current_lag) == (case.status, case.current_lag)


def test_windows_and_groups_are_those_of_burrows_own_fixture() -> None:
    # F330, F332: ten commits of a group, five of another; the partition ends at 4321.
    settings, now_ms = BurrowSettings(), 1_512_224_650_000
    statuses = []
    for count in (10, 5):
        window = CommitWindow(settings)
        for i in range(count):
            time_ms = now_ms - 100_000 + i * 10_000
            window.add(10 + i, 1000 + i * 100, time_ms, 4321, time_ms)
        statuses.append(partition_status(window.held, [4321], now_ms, settings))
    whole, half = (group_status([status], now_ms - 10_000, now_ms, settings) for status in statuses)
    assert whole == GroupStatus(BurrowStatus.OK, 1.0, 0, 2421)
    assert half == GroupStatus(BurrowStatus.ERR, 0.0, 0, 2921)
    assert (statuses[1].status, statuses[1].complete) == (BurrowStatus.STOP, 0.5)
    assert group_status([], now_ms, now_ms, settings) == GroupStatus(BurrowStatus.OK, 0.0, None, 0)


def test_a_group_whose_last_commit_is_too_old_is_not_found() -> None:
    # F332
    settings = BurrowSettings(expire_group_s=100)
    ok = PartitionStatus(BurrowRule.LAG_ALLOWED, (0, 0), 0, 1.0)
    assert group_status([ok], 899_999, 1_000_000, settings).status is BurrowStatus.NOTFOUND
    assert group_status([ok], 900_000, 1_000_000, settings).status is BurrowStatus.OK


def test_one_bad_partition_makes_a_bad_group() -> None:
    # F332
    slow = PartitionStatus(BurrowRule.LAG_NEVER_FELL, (10, 7), 7, 1.0)
    stuck = PartitionStatus(BurrowRule.STALLED, (10, 5, 3), 3, 0.5)
    settings = BurrowSettings()
    assert group_status([slow, slow], 0, 0, settings) == GroupStatus(BurrowStatus.WARN, 1.0, 0, 14)
    assert group_status([stuck, slow], 0, 0, settings) == GroupStatus(BurrowStatus.ERR, 0.5, 1, 10)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (PartitionStatus(BurrowRule.STOPPED, (500_000, 5, 400_000), 200, 1.0),
         "no commit for 8 min, and the 5 held span 7 min"),
        (PartitionStatus(BurrowRule.REWOUND, (3000, 2000), 300, 1.0),
         "rewound from offset 3000 to 2000 and has not caught up again"),
        (PartitionStatus(BurrowRule.LAG_WAS_ALLOWED, (200, 0, 5), 200, 1.0),
         "lag is 200, but was 0 at one of the 5 commits held"),
    ],
)  # fmt: skip
def test_the_reason_has_the_numbers_of_the_rule(status: PartitionStatus, words: str) -> None:
    assert status.reason == words


class Ring:
    """Burrow's ring, slot by slot, as inmemory.go has it: a second reading of the same source."""

    def __init__(self, size: int, min_distance_s: int) -> None:
        self.slots: list[HeldCommit | None] = [None] * size
        self.next = 0
        self.min_distance_ms = min_distance_s * 1000

    def _before(self, place: int) -> int:
        return (place - 1) % len(self.slots)

    def add(self, order: int, offset: int, time_ms: int, end: int) -> None:
        slots, insert, extend = self.slots, None, self.next
        newest, oldest = slots[self._before(self.next)], slots[self.next]
        if newest is not None:
            if oldest is not None and oldest.order >= order:
                return
            if newest.order >= order:
                at = self.next
                while insert is None:
                    place = self._before(at)
                    there = slots[place]
                    if there is None or place == self.next:
                        insert, extend = place, -1
                    elif there.order < order:
                        insert = at
                    elif there.order == order:
                        return
                    at = place
        lag = max(0, end - offset) if insert is None else None
        target = extend if insert is None else insert
        before = slots[self._before(target)]
        is_near = before is not None and time_ms - before.timestamp_ms < self.min_distance_ms
        if before is not None and before.order < order and is_near:
            slots[self._before(target)] = HeldCommit(order, offset, before.timestamp_ms, lag)
            return
        if insert is not None and extend >= 0:
            to = extend
            while to != insert:
                slots[to] = slots[self._before(to)]
                to = self._before(to)
        slots[target] = HeldCommit(order, offset, time_ms, lag)
        if extend >= 0:
            self.next = (extend + 1) % len(slots)

    def held(self) -> list[HeldCommit]:
        ordered = self.slots[self.next :] + self.slots[: self.next]
        return [slot for slot in ordered if slot is not None]


def transcribed(held: list[HeldCommit], ends: list[int], now_ms: int, allowed: int) -> str:
    """The status by caching.go, question by question, and nothing else."""
    last = held[-1]
    lag = ends[-1] - last.offset if ends[-1] > last.offset else 0
    if not lag > allowed:
        return "OK"
    stopped = (now_ms // 1000) * 1000 - last.timestamp_ms > last.timestamp_ms - held[0].timestamp_ms
    if stopped and not any(end <= last.offset for end in ends):
        return "STOP"
    rewind = -1
    for i in range(len(held) - 1, 0, -1):
        if held[i].offset < held[i - 1].offset:
            rewind = i
    if rewind > 0 and not any(c.offset >= held[rewind - 1].offset for c in held[rewind:]):
        return "REWIND"
    if any(c.lag is not None and c.lag <= allowed for c in held):
        return "OK"
    if len({c.offset for c in held}) == 1:
        return "STALL"
    lags = [c.lag for c in held if c.lag is not None]
    return "WARN" if lags == sorted(lags) else "OK"


def test_a_thousand_random_windows_and_their_statuses() -> None:
    # F330, F331
    draw = random.Random(330)
    seen = set()
    for _ in range(1000):
        settings = BurrowSettings(
            intervals=draw.randint(1, 5),
            allowed_lag=draw.choice((0, 0, 3)),
            min_distance_s=draw.choice((0, 0, 2)),
        )
        window = CommitWindow(settings)
        ring = Ring(settings.intervals, settings.min_distance_s)
        order, offset, now_ms = 100, 20, 1_700_000_000_000
        ends = [draw.randint(0, 40)]
        for _ in range(draw.randint(1, 12)):
            order += draw.choice((1, 2, 3, -4, 0))
            offset = max(0, offset + draw.choice((0, 0, 3, 5, 9, -4)))
            now_ms += draw.randint(0, 4000)
            ends.append(ends[-1] + draw.choice((0, 0, 2, 6, 12)))
            window.add(order, offset, now_ms, ends[-1], now_ms)
            ring.add(order, offset, now_ms, ends[-1])
            assert window.held == ring.held()
        now_ms += draw.choice((0, 900, 5000, 60_000))
        sampled = ends[-settings.intervals :]
        found = partition_status(window.held, sampled, now_ms, settings)
        expected = transcribed(window.held, sampled, now_ms, settings.allowed_lag)
        assert found.status.value == expected, (window.held, sampled)
        seen.add(found.rule)
    everywhere = {BurrowRule.NO_COMMITS, BurrowRule.INCOMPLETE, BurrowRule.EXPIRED}
    assert seen == set(BurrowRule) - everywhere


def test_a_window_with_few_commits_is_not_judged() -> None:
    # F331
    settings = BurrowSettings(minimum_complete=0.5)
    found = partition_status(STUCK[:4], [1300], 10_000_000, settings)
    assert (found.rule, found.complete, found.current_lag) == (BurrowRule.INCOMPLETE, 0.4, 300)
    assert found.status is BurrowStatus.OK
    assert partition_status(STUCK, [1300], 10_000_000, settings).status is BurrowStatus.STOP
    assert partition_status([], [1300], 0, settings).rule is BurrowRule.NO_COMMITS


def test_a_single_commit_stalls_at_once_and_one_decrease_hides_growth() -> None:
    # F331, docs/lag.md
    settings = BurrowSettings()
    alone = commits((1000, 100_000, 7))
    assert partition_status(alone, [1007], 100_000, settings).status is BurrowStatus.STALL
    lags = (10, 50, 100, 99, 500)
    rows = [(1000 + i, 100_000 * i, lag) for i, lag in enumerate(lags, 1)]
    found = partition_status(commits(*rows), [1505], 600_000, settings)
    assert found.reason == "lag is 500, and fell from 100 to 99 between commits held"
    assert found.status is BurrowStatus.OK


def test_what_is_too_old_on_arrival_is_dropped() -> None:
    # F330
    window = CommitWindow(BurrowSettings(expire_group_s=100))
    window.add(1, 5, 899_999, 9, 1_000_000)
    assert window.held == []
    window.add(2, 5, 900_000, None, 1_000_000)
    assert window.held == [HeldCommit(2, 5, 900_000, None)]
