"""What the job migrate-offsets prints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pyspark.sql import Row

from kafkalog.coordination.groups.offsets_replicas import counted_brokers
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster
from kafkalog.coordination.zookeeper.offset_migration import Move
from kafkalog.inspection.groups.offset_segments import WrittenSegment
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.words import counted

_STORES = {"to_kafka": "Kafka", "to_zookeeper": "ZooKeeper"}
_REFUSALS = {
    Move.REWIND: ("would go back", "--allow-rewind"),
    Move.ACTIVE: ("of groups with members", "--allow-active-groups"),
    Move.UNKNOWN_TOPIC: ("for topics that are nowhere", "--allow-unknown-topics"),
    Move.UNREADABLE: ("unreadable", ""),
    Move.KAFKA_UNKNOWN: ("of groups whose commits in Kafka are not all in the input", ""),
}


def migration_verdict(cluster: EnsembleCluster, totals: Row, phases: Sequence[Row]) -> str:
    """Say which cluster it is, how both stores compare, and how far groups have come."""
    where = f"{cluster.input_path}{' ' if cluster.chroot else ''}{cluster.chroot}"
    lines = [
        f"{counted(totals.groups, 'group')}, {counted(totals.partitions, 'partition')} in "
        f"{where} and Kafka: {totals.only_zookeeper:,} in ZooKeeper only, {totals.only_kafka:,} in "
        f"Kafka only, {totals.equal:,} equal, {totals.zookeeper_ahead:,} ahead in ZooKeeper, "
        f"{totals.kafka_ahead:,} ahead in Kafka, {totals.unreadable:,} unreadable, "
        f"{totals.kafka_unknown:,} unknown on Kafka's side"
    ]
    for row in phases:
        safe = f"the next step is safe for {row.safe:,}"
        lines.append(f"phase {row.phase}: {counted(row.groups, 'group')}, {safe}")
    return "\n".join(lines)


def move_words(
    directions: Sequence[str], totals: Row, missing_brokers: Collection[int]
) -> Iterator[str]:
    """Say what can be moved, what is refused and which option allows it; `missing_brokers` are
    those whose replicas of `__consumer_offsets` are not in the input."""
    if missing_brokers:
        missing = counted_brokers(missing_brokers)
        yield (
            f"{CONSUMER_OFFSETS} of {missing} is missing: give all their log directories, and "
            "--broker-id for those that name no broker"
        )
    for column in directions:
        refused = [
            f"{count:,} {words}{f' ({option})' if option else ''}"
            for move, (words, option) in _REFUSALS.items()
            if (count := totals[f"{move.value}_{column}"])
        ]
        movable = counted(totals[f"{Move.MOVE.value}_{column}"], "offset")
        yield f"to {_STORES[column]}: {movable} to move; refused: {', '.join(refused) or 'none'}"
        if warned := totals[f"warned_{column}"]:
            yield f"{counted(warned, 'offset')} that no log has: see column {column}_warnings"
    if totals.expired and "to_kafka" in directions:
        yield (
            f"{counted(totals.expired, 'offset')} would expire as soon as brokers look: their "
            "znodes are older than --offsets-retention; --commit-time now restarts it"
        )


def migration_findings(directions: Sequence[str], totals: Row) -> list[str]:
    """Return what --fail-on-findings fails on."""
    found = [
        f"{count:,} not moved to {_STORES[column]} ({words})"
        for column in directions
        for move, (words, _) in _REFUSALS.items()
        if (count := totals[f"{move.value}_{column}"])
    ]
    if totals.expired and "to_kafka" in directions:
        found.append("offsets that would expire")
    if any(totals[f"warned_{column}"] for column in directions):
        found.append("offsets that no log has")
    return found


def segment_words(segments: Sequence[WrittenSegment], target: str) -> str:
    """Say what was written, and where to read how to use it."""
    commits = sum(segment.end_offset - segment.base_offset for segment in segments)
    return (
        f"wrote {counted(commits, 'commit')} in {counted(len(segments), 'segment')} to {target}; "
        "how to put them in place: docs/migration.md"
    )
