"""Which store has a group's offsets, ZooKeeper or Kafka, how far a migration has come, and which
offsets can be moved. Rules: docs/migration.md F470 to F476.

The old consumers' settings `offsets.storage` and `dual.commit.enabled` are in no file: they follow
from the store that advances.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

# `auto.commit.interval.ms` of the consumers that commit to ZooKeeper, by default.
COMMIT_INTERVAL_MS = 60_000


class OffsetPair(NamedTuple):
    """What both stores have of a group's partition, None for nothing; times in milliseconds.

    `zookeeper_ms` is the znode's mtime, `kafka_ms` the commit's own time. `fault` says why the
    znode has no offset of today's meaning, `kafka_fault` why commits in Kafka can be missing.
    """

    zookeeper_offset: int | None = None
    zookeeper_ms: int | None = None
    kafka_offset: int | None = None
    kafka_ms: int | None = None
    fault: str | None = None
    kafka_fault: str | None = None


class StoreComparison(Enum):
    """What both stores have, one against the other."""

    ONLY_ZOOKEEPER = "only_zookeeper"
    ONLY_KAFKA = "only_kafka"
    EQUAL = "equal"
    ZOOKEEPER_AHEAD = "zookeeper_ahead"
    KAFKA_AHEAD = "kafka_ahead"
    UNREADABLE = "unreadable"
    KAFKA_UNKNOWN = "kafka_unknown"


class Phase(Enum):
    """How far a group's migration has come."""

    ZOOKEEPER = "zookeeper"
    DUAL_COMMIT = "dual_commit"
    KAFKA = "kafka"
    LEFT_OVER = "left_over"
    ROLL_BACK = "roll_back"
    MIXED = "mixed"
    KAFKA_UNKNOWN = "kafka_unknown"


class Move(Enum):
    """What becomes of an offset that is to be moved to the other store."""

    MOVE = "move"
    SAME = "same"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    REWIND = "rewind"
    ACTIVE = "active"
    UNKNOWN_TOPIC = "unknown_topic"
    KAFKA_UNKNOWN = "kafka_unknown"


REFUSALS = frozenset(Move) - {Move.MOVE, Move.SAME, Move.ABSENT}

_PHASE_WORDS = {
    Phase.ZOOKEEPER: "Kafka has none of its offsets",
    Phase.DUAL_COMMIT: "neither store goes on without the other",
    Phase.KAFKA: "ZooKeeper has none of its offsets",
    Phase.LEFT_OVER: "Kafka's offsets go on, nothing updates those in ZooKeeper any more",
    Phase.ROLL_BACK: "ZooKeeper's offsets go on, nothing updates those in Kafka any more",
    Phase.MIXED: "in some partitions ZooKeeper's offsets go on alone, in others Kafka's",
    Phase.KAFKA_UNKNOWN: "its commits in Kafka are not all in the input",
}
_TO_DUAL_COMMIT = (
    "offsets.storage=kafka and dual.commit.enabled=true, then restart the consumers one by one"
)
_NEXT_STEPS = {
    Phase.ZOOKEEPER: _TO_DUAL_COMMIT,
    Phase.DUAL_COMMIT: "dual.commit.enabled=false, then restart the consumers one by one",
    Phase.KAFKA: "none: the migration is done",
    Phase.LEFT_OVER: "none but to delete the offsets in ZooKeeper, once no roll-back is wanted",
    Phase.ROLL_BACK: _TO_DUAL_COMMIT,
    Phase.MIXED: "one storage for all consumers of the group",
    Phase.KAFKA_UNKNOWN: "none before that is known: give the log directories of all brokers",
}


@dataclass(frozen=True, slots=True)
class Members:
    """How many consumers a group has: registered in ZooKeeper, and joined by Kafka's protocol."""

    in_zookeeper: int = 0
    in_kafka: int = 0


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """A phase, why it is that, the next step of the procedure, and what speaks against taking it
    now: it is safe if nothing does."""

    phase: Phase
    reason: str
    next_step: str
    objections: tuple[str, ...]


def comparison_of(pair: OffsetPair) -> StoreComparison:
    """F470"""
    if pair.fault is not None:
        return StoreComparison.UNREADABLE
    if pair.kafka_fault is not None:
        return StoreComparison.KAFKA_UNKNOWN
    if pair.kafka_offset is None:
        return StoreComparison.ONLY_ZOOKEEPER
    if pair.zookeeper_offset is None:
        return StoreComparison.ONLY_KAFKA
    if pair.zookeeper_offset == pair.kafka_offset:
        return StoreComparison.EQUAL
    is_ahead = pair.zookeeper_offset > pair.kafka_offset
    return StoreComparison.ZOOKEEPER_AHEAD if is_ahead else StoreComparison.KAFKA_AHEAD


def group_verdict(
    pairs: Sequence[OffsetPair], members: Members, interval_ms: int = COMMIT_INTERVAL_MS
) -> GroupVerdict:
    """Return the phase of a group with these partitions, one at least, and whether to go on. F473,
    F474

    Commits that lie `interval_ms` or less apart can be of one and the same round.
    """
    phase = _phase(pairs, interval_ms)
    found = [comparison_of(pair) for pair in pairs]
    objections = [*_about_members(phase, members), *_about_offsets(phase, pairs, found)]
    objections += sorted({pair.kafka_fault for pair in pairs if pair.kafka_fault is not None})
    unreadable = found.count(StoreComparison.UNREADABLE)
    if unreadable:
        objections.append(f"{_counted(unreadable, 'partition')} whose znode has no offset")
    return GroupVerdict(phase, _PHASE_WORDS[phase], _NEXT_STEPS[phase], tuple(objections))


def _phase(pairs: Sequence[OffsetPair], interval_ms: int) -> Phase:
    """F471 to F473, F486"""
    if any(pair.kafka_fault is not None for pair in pairs):
        return Phase.KAFKA_UNKNOWN
    readable = [pair for pair in pairs if pair.fault is None]
    in_zookeeper = [pair.zookeeper_ms for pair in readable if pair.zookeeper_ms is not None]
    in_kafka = [pair.kafka_ms for pair in pairs if pair.kafka_ms is not None]
    if not in_kafka:
        return Phase.ZOOKEEPER
    if not in_zookeeper:
        return Phase.KAFKA
    leads = {_lead_ms(pair, max(in_zookeeper), max(in_kafka)) for pair in readable}
    zookeeper_goes_on = max(leads) > interval_ms
    kafka_goes_on = min(leads) < -interval_ms
    if zookeeper_goes_on and kafka_goes_on:
        return Phase.MIXED
    if zookeeper_goes_on:
        return Phase.ROLL_BACK
    return Phase.LEFT_OVER if kafka_goes_on else Phase.DUAL_COMMIT


def _lead_ms(pair: OffsetPair, zookeeper_end_ms: int, kafka_end_ms: int) -> int:
    """Return by how much later ZooKeeper was written for the partition than Kafka; negative for
    earlier, 0 if both are equal: without progress only Kafka is written again. If only one store
    has the partition, it is compared with the last that the group wrote to the other."""
    if comparison_of(pair) is StoreComparison.EQUAL:
        return 0
    if pair.zookeeper_ms is None:
        return min(zookeeper_end_ms - (pair.kafka_ms or zookeeper_end_ms), 0)
    if pair.kafka_ms is None:
        return max(pair.zookeeper_ms - kafka_end_ms, 0)
    return pair.zookeeper_ms - pair.kafka_ms


def _about_members(phase: Phase, members: Members) -> list[str]:
    if not members.in_kafka or not (members.in_zookeeper or phase is Phase.ZOOKEEPER):
        return []
    joined = _counted(members.in_kafka, "member")
    return [f"{joined} by Kafka's protocol in the same group"]


def _about_offsets(
    phase: Phase, pairs: Sequence[OffsetPair], found: Sequence[StoreComparison]
) -> Iterator[str]:
    """F474"""
    alone = found.count(StoreComparison.ONLY_ZOOKEEPER)
    lags = [
        (pair.zookeeper_offset or 0) - (pair.kafka_offset or 0)
        for pair, each in zip(pairs, found, strict=True)
        if each is StoreComparison.ZOOKEEPER_AHEAD
    ]
    if phase in (Phase.DUAL_COMMIT, Phase.LEFT_OVER):
        if alone:
            yield f"{_counted(alone, 'partition')} in ZooKeeper only: not committed to Kafka"
        if lags:
            yield (
                f"{_counted(len(lags), 'partition')} in which Kafka is behind, {sum(lags):,} "
                "offsets together: they would be read again"
            )
    skipped = found.count(StoreComparison.KAFKA_AHEAD)
    if phase is Phase.ROLL_BACK and skipped:
        yield (
            f"{_counted(skipped, 'partition')} in which Kafka's older commit is ahead: with dual "
            "commit consumers start at the greater offset and skip what is between"
        )
    if phase is Phase.MIXED:
        yield "consumers of both storages are at work"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def move_to_kafka(
    pair: OffsetPair, members: Members, allowed: Collection[Move] = (), *, has_topic: bool = True
) -> Move:
    """Return what becomes of ZooKeeper's offset if it is to be written to Kafka; of the refusals
    those in `allowed` do not hold. F475"""
    if pair.fault is not None:
        return Move.UNREADABLE
    if pair.kafka_fault is not None and pair.zookeeper_offset is not None:
        return Move.KAFKA_UNKNOWN
    move = _move(pair.zookeeper_offset, pair.kafka_offset, members, allowed)
    is_stray = move is Move.MOVE and not has_topic and Move.UNKNOWN_TOPIC not in allowed
    return Move.UNKNOWN_TOPIC if is_stray else move


def move_to_zookeeper(pair: OffsetPair, members: Members, allowed: Collection[Move] = ()) -> Move:
    """Return what becomes of Kafka's offset if it is to be written to ZooKeeper, likewise. F475"""
    if pair.kafka_fault is not None:
        return Move.KAFKA_UNKNOWN
    if pair.fault is not None and pair.kafka_offset is not None:
        return Move.UNREADABLE
    return _move(pair.kafka_offset, pair.zookeeper_offset, members, allowed)


def _move(
    source: int | None, target: int | None, members: Members, allowed: Collection[Move]
) -> Move:
    if source is None:
        return Move.ABSENT
    if source < 0:
        return Move.UNREADABLE
    if source == target:
        return Move.SAME
    if target is not None and source < target and Move.REWIND not in allowed:
        return Move.REWIND
    if (members.in_zookeeper or members.in_kafka) and Move.ACTIVE not in allowed:
        return Move.ACTIVE
    return Move.MOVE


def offset_warnings(
    offset: int | None, log_start_offset: int | None, log_end_offset: int | None, *, has_topic: bool
) -> tuple[str, ...]:
    """Return what a consumer that goes on from an offset runs into; the log's ends are None where
    its directory is not in the input. F476"""
    if offset is None:
        return ()
    if offset < 0:
        return ("negative",)
    if not has_topic:
        return ("unknown_topic",)
    if log_start_offset is None or log_end_offset is None:
        return ("unknown_partition",)
    if offset < log_start_offset:
        return ("below_log_start",)
    return ("beyond_log_end",) if offset > log_end_offset else ()
