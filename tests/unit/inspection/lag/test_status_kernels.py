"""The kernels over the events of many partitions give what the plain functions give.

Rules: docs/format.md F330, F331, F333 to F337.
"""

import random

import numpy as np
import pytest

from kafkalog.coordination.groups.burrow import BurrowRule, BurrowSettings
from kafkalog.coordination.groups.lag_status import EventKind, LagRule, LagSettings
from kafkalog.inspection.lag.burrow_statuses import BurrowEvents, BurrowWindows
from kafkalog.inspection.lag.commit_windows import NOTHING
from kafkalog.inspection.lag.lag_statuses import LagEvents, LagWindows
from tests.support.lag.burrow_oracle import CommitWindow, partition_status
from tests.support.lag.lag_oracle import LagFacts, PastCommit, lag_verdict

DELETION, SAMPLE, COMMIT, TICK = EventKind
RULES = {rule.number: rule for rule in BurrowRule}
LAG_RULES = {rule.number: rule for rule in LagRule}
START_MS = 1_700_000_000_000


def burrow_events(draw: random.Random) -> list[tuple[bool, int, int, int, int, int]]:
    """Some partitions, each with commits, now and then deleted, and questions in between."""
    events: list[tuple[bool, int, int, int, int, int]] = []
    for _ in range(3):
        at_ms, offset, end, is_first = START_MS, 20, draw.randint(0, 40), True
        for _ in range(draw.randint(1, 30)):
            at_ms += draw.choice((0, 500, 1500, 4000, 60_000))
            before, end = end, end + draw.choice((0, 0, 2, 6, 12))
            known = draw.choice((end, end, end, end, NOTHING))
            kind = draw.choice((COMMIT,) * 6 + (TICK,) * 3 + (DELETION,))
            if kind == COMMIT:
                offset = max(0, offset + draw.choice((0, 0, 3, 5, 9, -4)))
            if kind == TICK:
                events.append((is_first, SAMPLE, 0, 0, before, at_ms))
                is_first = False
            timestamp_ms = at_ms - draw.choice((0, 0, 0, 700))
            events.append((is_first, kind, offset, timestamp_ms, known, at_ms))
            is_first = False
    return events


def plainly(
    events: list[tuple[bool, int, int, int, int, int]], settings: BurrowSettings
) -> list[tuple[BurrowRule | None, tuple[int, ...], int, int]]:
    window, sample = CommitWindow(settings), NOTHING
    found: list[tuple[BurrowRule | None, tuple[int, ...], int, int]] = []
    for order, (is_first, kind, offset, timestamp_ms, end, at_ms) in enumerate(events):
        if is_first or kind == DELETION:
            window, sample = CommitWindow(settings), NOTHING
        if kind == SAMPLE:
            sample = end
        if kind == COMMIT:
            known = None if end == NOTHING else end
            window.add(order, offset, timestamp_ms, known, timestamp_ms)
        if kind in (DELETION, SAMPLE) or end == NOTHING:
            found.append((None, (), NOTHING, NOTHING))
        else:
            ends = [end] if sample == NOTHING else [sample, end]
            status = partition_status(window.held, ends, at_ms, settings)
            found.append((status.rule, status.numbers, status.current_lag, len(window.held)))
        sample = sample if kind == SAMPLE else NOTHING
    return found


@pytest.mark.parametrize("seed", range(40))
def test_burrows_status_by_kernel_is_the_plain_one(seed: int) -> None:
    draw = random.Random(seed)
    settings = BurrowSettings(
        intervals=draw.randint(1, 6),
        allowed_lag=draw.choice((0, 0, 3)),
        minimum_complete=draw.choice((0.0, 0.0, 0.5, 1.0)),
        min_distance_s=draw.choice((0, 0, 2)),
    )
    events = burrow_events(draw)
    windows, found = BurrowWindows(settings), []
    cut = draw.randint(0, len(events))
    for piece in (events[:cut], events[cut:]):
        columns = np.array(piece, dtype=np.int64).reshape(-1, 6).T.copy()
        verdicts = windows.verdicts(BurrowEvents(columns[0] != 0, *columns[1:]))
        for i in range(len(piece)):
            number, *numbers = (int(column[i]) for column in verdicts.verdicts)
            place = (int(verdicts.current_lag[i]), int(verdicts.held[i]))
            found.append((RULES.get(number), tuple(numbers), *place))
    expected = [
        (rule, (*numbers, *[NOTHING] * (3 - len(numbers))), *rest)
        for rule, numbers, *rest in plainly(events, settings)
    ]
    assert found == expected


def lag_events(draw: random.Random) -> list[tuple[int, ...]]:
    events: list[tuple[int, ...]] = []
    for _ in range(3):
        at_ms, offset, is_first, has_commit = START_MS, 20, True, False
        has_log = draw.random() < 0.9
        for _ in range(draw.randint(1, 30)):
            at_ms += draw.choice((0, 500, 1500, 4000, 60_000))
            kind = draw.choice((COMMIT,) * 6 + (SAMPLE, DELETION) + (TICK,) * 3 * has_commit)
            has_commit = kind == COMMIT or (has_commit and kind != DELETION)
            if kind == COMMIT:
                offset = max(0, offset + draw.choice((0, 0, 3, 5, 9, -4)))
            rarely = draw.choice((0,) * 9 + (4,))
            events.append((
                is_first, kind, offset, at_ms - draw.choice((0, 0, 700)), at_ms,
                draw.random() < 0.3, has_log, draw.random() < 0.9, draw.choice((0, 2, 5, 5, 8)),
                draw.choice((0, 3)), rarely, draw.choice((0, 0, 2)), draw.choice((0,) * 9 + (1,)),
                draw.choice((NOTHING, *(at_ms - early for early in (0, 3000, 80_000, 900_000)))),
            ))  # fmt: skip
            is_first = False
    return events


def exactly(events: list[tuple[int, ...]], settings: LagSettings) -> list[tuple[object, ...]]:
    commits: list[PastCommit] = []
    found: list[tuple[object, ...]] = []
    for is_first, kind, offset, timestamp_ms, at_ms, is_now, has_log, is_in_log, *rest in events:
        left, beyond, below, hidden, ahead, next_ms = rest
        if is_first or kind == DELETION:
            commits = []
        if kind == COMMIT:
            is_known = has_log and is_in_log and (is_now or not (below or ahead))
            commits.append(PastCommit(offset, timestamp_ms, left if is_known else None))
        if kind in (DELETION, SAMPLE):
            found.append((None, NOTHING, NOTHING, NOTHING))
            continue
        facts = LagFacts(
            *(at_ms, bool(is_now), bool(has_log), bool(is_in_log), left, beyond, below, hidden),
            *(ahead, None if next_ms == NOTHING else next_ms),
        )
        rule, numbers = lag_verdict(facts, commits, settings)
        found.append((rule, *numbers, *[NOTHING] * (3 - len(numbers))))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_status_by_kernel_is_the_plain_one(seed: int) -> None:
    draw = random.Random(seed)
    settings = LagSettings(draw.randint(1, 6), draw.choice((0, 0, 3)), draw.choice((2000, 70_000)))
    events = lag_events(draw)
    windows, found = LagWindows(settings), []
    cut = draw.randint(0, len(events))
    for piece in (events[:cut], events[cut:]):
        columns = np.array(piece, dtype=np.int64).reshape(-1, 14).T.copy()
        flags = [column != 0 for column in columns[5:8]]
        given = LagEvents(columns[0] != 0, *columns[1:5], *flags, *columns[8:])
        verdicts = windows.verdicts(given)
        for i in range(len(piece)):
            number, *numbers = (int(column[i]) for column in verdicts)
            found.append((LAG_RULES.get(number), *numbers))
    assert found == exactly(events, settings)


def test_random_events_come_by_every_rule() -> None:
    draw, settings = random.Random(7), LagSettings(4, 2, 5000)
    seen = {rule for _ in range(60) for rule, *_ in exactly(lag_events(draw), settings)}
    assert seen == {None, *LagRule}
    burrow = BurrowSettings(intervals=4, minimum_complete=0.5)
    found = {rule for _ in range(60) for rule, *_ in plainly(burrow_events(draw), burrow)}
    assert found == {None, *BurrowRule} - {BurrowRule.EXPIRED}
