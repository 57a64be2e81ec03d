"""How a group's commit of a partition moved, and which moves left records unread: rules on plain
values. Rules: docs/format.md F1230 to F1234.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from kafkalog.words import counted, duration_text, time_text

# A leap passes so many records, so many times as fast as all other moves, if there are as many.
_LEAP_RECORDS, _LEAP_TIMES, _LEAP_OTHERS = 100, 10, 3
# Commits alternate if they change so often between two places.
_ALTERNATIONS = 4


class Finding(StrEnum):
    """Which rule a move is found by; the first that holds."""

    LOST = "lost"
    PERHAPS_LOST = "perhaps_lost"
    ALTERNATES = "alternates"
    SET_FROM_OUTSIDE = "set_from_outside"
    WENT_BACK = "went_back"
    LEAP = "leap"
    DELETED = "deleted"


class LogBegin(NamedTuple):
    """Where a log begins now, and when it did at the latest by the broker's clock, None where its
    files do not say."""

    log_start: int | None
    since_ms: int | None


@dataclass(slots=True)
class Move:
    """A commit that took effect, or the deletion of one, whose `committed_offset` is None.

    `previous_offset` and `previous_ms` are those of the commit before it, None for the first that
    is known and after a deletion. `records_between`, `deleted_between` and `hidden_between` are the
    readable records between the two, the offsets there that the log no longer has, and those in
    tiered storage or damage; None where the log cannot say. `members` is the number of the group's
    members then, None where it is not known, as of groups that never had one; `joined_ms` when it
    got members again after the commit before. `is_next` is whether nothing between it and the
    commit before it can have been removed by cleaning; `had_backlog` whether the first record after
    the commit before it was written before that commit."""

    at_ms: int
    record_offset: int
    committed_offset: int | None
    previous_offset: int | None = None
    previous_ms: int | None = None
    records_between: int | None = None
    deleted_between: int | None = None
    hidden_between: int | None = None
    members: int | None = None
    joined_ms: int | None = None
    is_next: bool = True
    had_backlog: bool = False
    finding: Finding | None = None
    words: str | None = None

    @property
    def jump(self) -> int | None:
        """The offsets from the commit before to this one."""
        if self.committed_offset is None or self.previous_offset is None:
            return None
        return self.committed_offset - self.previous_offset

    @property
    def elapsed_ms(self) -> int | None:
        """The time in which members may have read what is between the commits."""
        if self.previous_ms is None:
            return None
        since_ms = self.previous_ms if self.joined_ms is None else self.joined_ms
        return max(self.at_ms - since_ms, 0)

    @property
    def passed(self) -> int:
        """How many records it passed, with those that were deleted since, or hidden."""
        parts = (self.records_between, self.deleted_between, self.hidden_between)
        return sum(part or 0 for part in parts)

    @property
    def pace(self) -> float | None:
        """Records per millisecond, None if it did not go forward."""
        if self.elapsed_ms is None or (self.jump or 0) <= 0 or not self.is_next:
            return None
        return self.passed / max(self.elapsed_ms, 1)


def judge_moves(moves: Sequence[Move], begin: LogBegin) -> None:
    """Set `finding` and `words` of the moves of one group and partition, in their order."""
    for move in moves:
        _judge(move, begin)
    for run in _alternations(moves):
        for move in run:
            if move.finding in (None, Finding.WENT_BACK, Finding.LEAP):
                move.finding, move.words = Finding.ALTERNATES, None
        run[-1].words = _alternation_words(run)
    for move, factor in _leaps(moves):
        if move.finding is None:
            move.finding = Finding.LEAP
            move.words = (
                f"passed {_passed(move)} in {duration_text(move.elapsed_ms or 0)}, {factor:,} "
                "times as fast as it ever read: it skipped them (a seek, or "
                "auto.offset.reset=latest), or read all at once"
            )


def _judge(move: Move, begin: LogBegin) -> None:
    """Apply the rules that look at one move: F1230 to F1232."""
    jump = move.jump
    if move.committed_offset is None:
        move.finding = Finding.DELETED
        move.words = (
            "the commit was deleted: it expired, its topic was deleted, or a tool deleted it"
        )
    elif jump is None or not move.is_next or move.previous_offset is None:
        return
    elif jump > 0 and _is_lost(move, begin):
        move.finding, move.words = Finding.LOST, _lost_words(move, begin)
    elif jump and move.members == 0:
        move.finding = Finding.SET_FROM_OUTSIDE
        way = f"back over {_passed(move)}, which" if jump < 0 else f"over {_passed(move)}, which"
        end = "come again" if jump < 0 else "were not read"
        move.words = (
            f"set {way} {end}: the group had no member, so a tool such as kafka-consumer-groups "
            "--reset-offsets, MirrorMaker or a consumer that assigns itself the partition committed"
        )
    elif jump > 0 and move.deleted_between and move.joined_ms is not None:
        move.finding = Finding.PERHAPS_LOST
        move.words = (
            f"{counted(move.deleted_between, 'offset')} after {move.previous_offset} are deleted "
            f"by now: lost if that was before the group came back at {time_text(move.joined_ms)}"
        )
    elif jump < 0:
        move.finding = Finding.WENT_BACK
        move.words = f"went back over {_passed(move)}, which come again"


def _is_lost(move: Move, begin: LogBegin) -> bool:
    """Return whether the log had begun above the commit before, when the next was made. F1230"""
    if begin.since_ms is None or begin.log_start is None or not move.deleted_between:
        return False
    is_passed = move.previous_offset is not None and move.committed_offset is not None
    return (
        is_passed
        and (move.previous_offset or 0) < begin.log_start <= (move.committed_offset or 0)
        and (move.previous_ms or 0) <= begin.since_ms <= move.at_ms
    )


def _lost_words(move: Move, begin: LogBegin) -> str:
    lost = move.deleted_between or 0
    times = f"{time_text(move.previous_ms)} and {time_text(move.at_ms)}"
    has_read = "" if move.joined_ms is not None else ", unless it read them without a commit"
    return (
        f"{counted(lost, 'message')} lost between {times}: deleted before the commit{has_read}; "
        f"the log begins at {begin.log_start} since {time_text(begin.since_ms)} at the latest"
    )


def _passed(move: Move) -> str:
    """Return the number of records between two commits in words."""
    if move.records_between is None:
        return counted(abs(move.jump or 0), "offset")
    words = counted(move.records_between, "record")
    if move.deleted_between:
        words += f" and {counted(move.deleted_between, 'deleted offset')}"
    return words


def _leaps(moves: Sequence[Move]) -> Iterator[tuple[Move, int]]:
    """Yield the moves much faster than all others with records to read, and how many times.
    F1234"""
    paces = sorted((move.pace, place) for place, move in enumerate(moves) if _is_paced(move))
    if len(paces) <= _LEAP_OTHERS:
        return
    (others, _), (fastest, place) = paces[-2:]
    move = moves[place]
    if move.passed >= _LEAP_RECORDS and others and fastest and fastest > _LEAP_TIMES * others:
        yield move, int(fastest / others)


def _is_paced(move: Move) -> bool:
    is_from_inside = move.finding in (None, Finding.LEAP)
    return move.pace is not None and move.had_backlog and is_from_inside


def _alternations(moves: Sequence[Move]) -> Iterator[list[Move]]:
    """Yield runs of commits that change between two places, each of which only goes forward.
    F1233"""
    run: list[Move] = []
    high: int | None = None
    low: int | None = None
    changes, was_high = 0, True
    for move in moves:
        offset = move.committed_offset
        is_high = offset is not None and (high is None or offset >= high)
        is_low = offset is not None and not is_high and (low is None or offset >= low)
        if not (is_high or is_low):
            if changes >= _ALTERNATIONS:
                yield _without_ends(run)
            run, high, low, changes, was_high = [], offset, None, 0, True
            if offset is not None:
                run.append(move)
            continue
        if is_high:
            high = offset
        else:
            low = offset
        changes += bool(run) and is_high != was_high
        was_high = is_high
        run.append(move)
    if changes >= _ALTERNATIONS:
        yield _without_ends(run)


def _without_ends(run: list[Move]) -> list[Move]:
    """Return a run from its first change of place to its last."""
    places = [number + 1 for number, pair in enumerate(pairwise(run)) if _goes_back(*pair)]
    last = min(places[-1] + 2, len(run))
    return run[places[0] : last]


def _goes_back(before: Move, move: Move) -> bool:
    return (move.committed_offset or 0) < (before.committed_offset or 0)


def _alternation_words(run: Sequence[Move]) -> str:
    backs = sum((move.jump or 0) < 0 for move in run)
    return (
        f"from {time_text(run[0].at_ms)} to {time_text(run[-1].at_ms)} the commit went back and "
        f"forth {counted(backs, 'time')}: two consumers commit by turns, each where it is, such as "
        "two that assign themselves the partition; what one has read counts for neither"
    )
