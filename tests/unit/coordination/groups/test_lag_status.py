"""The exact status, each rule on facts that are written out here. Rules: F333 to F338."""

import pytest

from kafkalog.coordination.groups.lag_status import LagRule, LagSettings, LagStatus
from tests.support.lag.lag_oracle import LagFacts, PastCommit, group_lag_status, lag_verdict

MINUTE_MS = 60_000
NOON_MS = 1_700_000_000_000
SETTINGS = LagSettings(intervals=3)


def commits(*offsets: int, left: int | None = 5, every_ms: int = MINUTE_MS) -> list[PastCommit]:
    """One commit every minute, the last of them at noon."""
    first_ms = NOON_MS - (len(offsets) - 1) * every_ms
    return [PastCommit(o, first_ms + i * every_ms, left) for i, o in enumerate(offsets)]


def said(facts: LagFacts, past: list[PastCommit]) -> tuple[LagStatus, str]:
    verdict = lag_verdict(facts, past, SETTINGS)
    return verdict.status, verdict.reason


def test_what_the_log_cannot_tell_is_unknown() -> None:
    # F333
    past = commits(10)
    assert said(LagFacts(NOON_MS, has_log=False), past)[0] is LagStatus.UNKNOWN
    assert said(LagFacts(NOON_MS, is_in_log=False), past)[0] is LagStatus.UNKNOWN
    deleted = LagFacts(NOON_MS, below_log_start=7)
    assert said(deleted, past) == (
        LagStatus.UNKNOWN,
        "the log now starts 7 offsets after the committed one",
    )


def test_a_commit_outside_of_the_log_as_it_is() -> None:
    # F333, F334: of a past moment nothing can be said of either.
    lost = LagFacts(NOON_MS, is_now=True, below_log_start=7, readable_records=3)
    assert said(lost, commits(10))[0] is LagStatus.LOST
    ahead = LagFacts(NOON_MS, is_now=True, ahead_of_log=2)
    assert said(ahead, commits(10)) == (
        LagStatus.AHEAD,
        "the commit is 2 offsets past the end of the log",
    )
    assert said(ahead._replace(is_now=False), commits(10)) == (
        LagStatus.UNKNOWN,
        "that log is known up to 2 offsets before the commit",
    )


def test_a_lag_without_records_to_read_is_none() -> None:
    # F335: however old the commit is.
    later_ms = NOON_MS + 1000 * MINUTE_MS
    assert said(LagFacts(later_ms), commits(10)) == (
        LagStatus.OK,
        "0 records left to read, 0 allowed",
    )
    waiting = LagFacts(later_ms, beyond_last_stable=4)
    assert said(waiting, commits(10)) == (
        LagStatus.OK,
        "0 records left to read, besides 4 offsets held back",
    )
    assert said(LagFacts(later_ms, hidden=4), commits(10))[0] is LagStatus.UNKNOWN


def test_a_group_stops_when_it_could_have_read_and_does_not_commit() -> None:
    # F336: the record came three minutes after the last commit, and counts from then on.
    came_ms = NOON_MS + 3 * MINUTE_MS
    facts = LagFacts(came_ms + 5 * MINUTE_MS, readable_records=9, next_timestamp_ms=came_ms)
    assert said(facts, commits(10))[0] is LagStatus.OK
    assert said(facts._replace(at_ms=facts.at_ms + 1), commits(10)) == (
        LagStatus.STOP,
        "9 records left to read for 5 min, no commit since",
    )


def test_a_record_without_a_time_counts_from_the_last_commit_on() -> None:
    # F336
    facts = LagFacts(NOON_MS + 5 * MINUTE_MS, readable_records=9)
    assert said(facts, commits(10))[0] is LagStatus.OK
    assert said(facts._replace(at_ms=facts.at_ms + 1), commits(10))[0] is LagStatus.STOP


def test_a_step_back_counts_until_it_is_made_up_for() -> None:
    # F336; three commits are looked back on.
    facts = LagFacts(NOON_MS, readable_records=9, next_timestamp_ms=NOON_MS)
    assert said(facts, commits(10, 30, 20)) == (
        LagStatus.REWIND,
        "rewound from offset 30 to 20 and has not caught up again",
    )
    assert said(facts, commits(30, 20, 30))[0] is LagStatus.OK
    assert said(facts, commits(30, 20, 21, 22))[0] is LagStatus.OK


def test_a_group_stalls_when_it_commits_the_same_offset_over_and_over() -> None:
    # F336: also beyond the commits looked back on.
    facts = LagFacts(NOON_MS, readable_records=9, next_timestamp_ms=NOON_MS - 60 * MINUTE_MS)
    assert said(facts, commits(*[10] * 7)) == (
        LagStatus.STALL,
        "9 records left to read for 6 min, all commits since of 10",
    )
    assert said(facts, commits(*[10] * 6))[0] is not LagStatus.STALL
    new = facts._replace(next_timestamp_ms=NOON_MS - MINUTE_MS)
    assert said(new, commits(*[10] * 7))[0] is LagStatus.OK


def test_a_group_falls_behind_when_it_never_catches_up_and_more_is_left() -> None:
    # F337
    facts = LagFacts(NOON_MS, readable_records=5, next_timestamp_ms=NOON_MS - 3 * MINUTE_MS)
    assert said(facts, commits(10, 20, 30, left=5)) == (
        LagStatus.WARN,
        "5 records left to read, 5 records at the first of 3 commits",
    )
    assert said(facts, commits(10, 20, 30, left=6))[0] is LagStatus.OK
    assert said(facts, commits(10, 20, 30, left=None))[0] is LagStatus.OK
    read_since = facts._replace(next_timestamp_ms=NOON_MS - 2 * MINUTE_MS)
    assert said(read_since, commits(10, 20, 30, left=5)) == (
        LagStatus.OK,
        "5 records left to read, the next is 2 min old",
    )


@pytest.mark.parametrize(
    ("partitions", "group"),
    [
        ([], LagStatus.OK),
        ([LagStatus.OK, LagStatus.UNKNOWN], LagStatus.UNKNOWN),
        ([LagStatus.UNKNOWN, LagStatus.WARN], LagStatus.WARN),
        ([LagStatus.WARN, LagStatus.LOST], LagStatus.ERR),
    ],
)
def test_a_group_is_as_bad_as_its_worst_partition(
    partitions: list[LagStatus], group: LagStatus
) -> None:
    # F338
    assert group_lag_status(partitions) is group


def test_every_rule_has_its_number() -> None:
    assert [rule.number for rule in LagRule] == list(range(len(LagRule)))
