"""How do the offsets of groups in ZooKeeper and in Kafka compare, and may they be moved?

Rules: docs/migration.md F470 to F476, F479, F484 and F486.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.coordination.groups.group_records import (
    GROUP_RECORD_COLUMNS,
    LatestRecords,
    group_members,
)
from kafkalog.coordination.groups.lag_question import ALL_NAMES, ChosenNames
from kafkalog.coordination.groups.offsets_replicas import OffsetsReplicas, counted_brokers
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster
from kafkalog.coordination.zookeeper.offset_migration import (
    COMMIT_INTERVAL_MS,
    REFUSALS,
    GroupVerdict,
    Members,
    Move,
    OffsetPair,
    StoreComparison,
    comparison_of,
    group_verdict,
    move_to_kafka,
    move_to_zookeeper,
    offset_warnings,
)
from kafkalog.errors import OptionError
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.inspection.logs.missing_records import note_missing_records
from kafkalog.questions.zookeeper.offset_pairs import in_order, offset_pairs, with_log_ends
from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Batches, RowsInMemory, Views
from kafkalog.views.options.zookeeper.migration_options import MigrationRequest
from kafkalog.views.options.zookeeper.zookeeper_options import ZookeeperView
from kafkalog.words import counted

OFFSETS, PHASES = "offset_migration", "migration_phases"
_GROUPS_LOOKED_AT = 1000
_STORES = {"to_kafka": "Kafka", "to_zookeeper": "ZooKeeper"}
_WORDS = {
    Move.REWIND: ("would go back", "--allow-rewind"),
    Move.ACTIVE: ("of groups with members", "--allow-active-groups"),
    Move.UNKNOWN_TOPIC: ("for topics that are nowhere", "--allow-unknown-topics"),
    Move.UNREADABLE: ("unreadable", ""),
    Move.KAFKA_UNKNOWN: ("of groups whose commits in Kafka are not all in the input", ""),
}
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """Which groups and topics are compared; the refusals that do not hold; how far commits of a
    round lie apart; up to which commit time offsets would expire when moved, None if none does; the
    number of partitions of `__consumer_offsets` and the broker of log directories that name none,
    where they are given; and the directions that are requested, as columns of table
    `offset_migration`."""

    names: ChosenNames = ALL_NAMES
    allowed: frozenset[Move] = frozenset()
    commit_interval_ms: int = COMMIT_INTERVAL_MS
    expired_before_ms: int | None = None
    offsets_partitions: int | None = None
    unnamed_broker: int | None = None
    directions: Sequence[str] = ("to_kafka",)

    @classmethod
    def of(cls, request: MigrationRequest, now_ms: int) -> MigrationSettings:
        """Return the settings that options give."""
        expired_before_ms = now_ms - request.retention_ms
        return cls(
            *(request.chosen, request.allowed, request.commit_interval_ms),
            expired_before_ms if request.keeps_commit_times else None,
            *(request.offsets_partitions, request.broker_id, request.directions),
        )


@dataclass(frozen=True, slots=True)
class Migration:
    """Rows of tables `offset_migration` and `migration_phases`; of which cluster; which replicas of
    the commits in Kafka there are; the names that are given and that no row has, in words; and what
    the rows come to: `counts` has groups, partitions, each comparison, each outcome of a move with
    its direction (`move_to_kafka`), `expired`, and `warned_to_kafka`, of those with another
    warning."""

    offsets: RowsInMemory
    phases: RowsInMemory
    cluster: EnsembleCluster
    replicas: OffsetsReplicas
    missing_names: Sequence[str]
    counts: Counter[str]
    directions: Sequence[str]

    @property
    def tables(self) -> dict[str, RowsInMemory]:
        """The rows by the names of their tables."""
        return {OFFSETS: self.offsets, PHASES: self.phases}

    def findings(self) -> list[str]:
        """Return what was not moved, and what would expire or is in no log, in words."""
        found = [
            f"{count:,} not moved to {_STORES[column]} ({words})"
            for column in self.directions
            for move, (words, _) in _WORDS.items()
            if (count := self.counts[f"{move.value}_{column}"])
        ]
        if self.counts["expired"] and "to_kafka" in self.directions:
            found.append("offsets that would expire")
        if any(self.counts[f"warned_{column}"] for column in self.directions):
            found.append("offsets that no log has")
        return found

    def words(self) -> list[str]:
        """Return lines: which cluster it is, how both stores compare, how far groups have come,
        what can be moved, what is refused and which option allows it."""
        return [*self._verdict(), *self._move_words(), *self.missing_names]

    def _verdict(self) -> Iterator[str]:
        counts, cluster = self.counts, self.cluster
        where = f"{cluster.input_path}{' ' if cluster.chroot else ''}{cluster.chroot}"
        yield (
            f"{counted(counts['groups'], 'group')}, "
            f"{counted(counts['partitions'], 'partition')} in {where} and Kafka: "
            f"{counts['only_zookeeper']:,} in ZooKeeper only, "
            f"{counts['only_kafka']:,} in Kafka only, {counts['equal']:,} equal, "
            f"{counts['zookeeper_ahead']:,} ahead in ZooKeeper, {counts['kafka_ahead']:,} ahead in "
            f"Kafka, {counts['unreadable']:,} unreadable, {counts['kafka_unknown']:,} unknown on "
            "Kafka's side"
        )
        phases = [*self.phases]
        for phase, groups in sorted(Counter(row["phase"] for row in phases).items()):
            safe = sum(row["is_safe"] for row in phases if row["phase"] == phase)
            yield f"phase {phase}: {counted(groups, 'group')}, the next step is safe for {safe:,}"

    def _move_words(self) -> Iterator[str]:
        missing = self.replicas.missing_brokers()
        if missing:
            yield (
                f"{CONSUMER_OFFSETS} of {counted_brokers(missing)} is missing: give all their log "
                "directories, and --broker-id for those that name no broker"
            )
        for column in self.directions:
            refused = [
                f"{count:,} {words}{f' ({option})' if option else ''}"
                for move, (words, option) in _WORDS.items()
                if (count := self.counts[f"{move.value}_{column}"])
            ]
            movable = counted(self.counts[f"{Move.MOVE.value}_{column}"], "offset")
            refusals = ", ".join(refused) or "none"
            yield f"to {_STORES[column]}: {movable} to move; refused: {refusals}"
            if warned := self.counts[f"warned_{column}"]:
                yield f"{counted(warned, 'offset')} that no log has: see column {column}_warnings"
        if self.counts["expired"] and "to_kafka" in self.directions:
            expired = counted(self.counts["expired"], "offset")
            yield (
                f"{expired} would expire as soon as brokers look: their znodes are older than "
                "--offsets-retention; --commit-time now restarts it"
            )


def migration(views: Views, zookeeper: ZookeeperCluster, settings: MigrationSettings) -> Migration:
    """Return both stores of the groups' offsets side by side, and what may be moved. Records of
    commits that the logs lack are noted for the end of the run (F940).

    Raises OptionError for fewer partitions of `__consumer_offsets` than the log directories have.
    """
    note_missing_records(views.logs, CONSUMER_OFFSETS)
    commits, members = _kafka_side(views)
    topics = zookeeper.rows(ZookeeperView.TOPIC_REGISTRY)
    partitions = _offsets_partitions(settings.offsets_partitions, topics, views.logs, commits)
    broker = _unnamed_broker(settings.unnamed_broker, zookeeper, topics, views.logs)
    replicas = _replicas(topics, views.logs, broker)
    pairs = offset_pairs(zookeeper.rows(ZookeeperView.CONSUMER_OFFSETS), commits, partitions)
    chosen = [row for row in pairs if settings.names.has(row["group_id"], row["topic"])]
    registered = {
        (row["group_id"], row["consumer_id"])
        for row in zookeeper.rows(ZookeeperView.CONSUMER_REGISTRY)
    }
    in_zookeeper = Counter(group_id for group_id, _ in registered)
    known = [*with_log_ends(chosen, views.logs, topics)]
    judged = [
        row
        for group_id, rows in groupby(sorted(known, key=in_order), itemgetter("group_id"))
        for row in judged_rows(
            [*rows], Members(in_zookeeper[group_id], members[group_id]), settings, replicas
        )
    ]
    return Migration(
        _rows(OFFSETS, judged, zookeeper.cluster),
        _rows(PHASES, _phases(judged), zookeeper.cluster),
        *(zookeeper.cluster, replicas),
        settings.names.missing_words(pairs, judged),
        *(_counts(judged), settings.directions),
    )


def _kafka_side(views: Views) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Return the commits in effect, and how many members the groups have."""
    options = {"latest": "true", "subscribe": CONSUMER_OFFSETS}
    schema = arrow_schema("offset_commits", COMMIT_COLUMNS)
    commits, records = views.rows(
        AskedView("offset_commits", COMMIT_COLUMNS, _commits_that_decide, schema, options),
        AskedView("group_metadata", GROUP_RECORD_COLUMNS, options=options),
    )
    in_effect, latest = CommitsInEffect(), LatestRecords()
    for batch in commits.table.to_batches():
        in_effect.add(batch)
    for record in records:
        latest.add(record)
    kept = in_effect.rows()
    found = [] if kept is None else kept.to_pylist()
    members = Counter(member.group.group_id for member in group_members(latest.records()))
    return found, members


def _commits_that_decide(batches: Batches) -> Iterator[pa.RecordBatch]:
    commits = CommitsInEffect()
    for batch in batches:
        commits.add(batch)
    rows = commits.rows_of_view()
    if rows is not None:
        yield from rows.to_batches()


def _offsets_partitions(
    given: int | None, topics: Iterable[_Row], logs: Sequence[PartitionLog], commits: Sequence[_Row]
) -> int | None:
    """Return the number of partitions of `__consumer_offsets`: as given, or from its znode, or from
    the log directories if groups lie where this number puts them; None if unknown. Rule: F484."""
    found = {log.partition or 0 for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live}
    least = 1 + max(found, default=-1)
    listed = [row["partition"] for row in topics if row["topic"] == CONSUMER_OFFSETS]
    last = max((each for each in listed if each is not None), default=None)
    number = given or (None if last is None else last + 1)
    if number is None:
        return least if found and len(found) == least and _fits(commits, least) else None
    if number < least:
        name = "--offsets-partitions"
        raise OptionError(name, number, f"{least} at least, which the log directories have")
    return number


def _fits(commits: Iterable[_Row], number: int) -> bool:
    """Return whether most of some groups lie in the partition that this number puts them into."""
    groups = {(row["group_id"], row["internal_partition"]) for row in commits}
    some = sorted((each for each in groups if each[0] is not None), key=str)[:_GROUPS_LOOKED_AT]
    fitting = [group for group, place in some if offsets_partition_of(group, number) == place]
    return 2 * len(fitting) > len(some)


def _unnamed_broker(
    given: int | None,
    zookeeper: ZookeeperCluster,
    topics: Iterable[_Row],
    logs: Sequence[PartitionLog],
) -> int | None:
    """Return the broker of log directories that name none: as given, or the only one that ZooKeeper
    names; None if unknown. Rule: F486."""
    if given is not None or all(log.log_dir.broker_id is not None for log in logs):
        return given
    named = {row["broker_id"] for row in zookeeper.rows(ZookeeperView.BROKER_REGISTRY)}
    named |= {broker_id for row in topics for broker_id in row["replicas"] or ()}
    named -= {None}
    return named.pop() if len(named) == 1 else None


def _replicas(
    topics: Iterable[_Row], logs: Iterable[PartitionLog], unnamed_broker: int | None
) -> OffsetsReplicas:
    """Return the brokers that have `__consumer_offsets` by ZooKeeper, and by the logs; those of
    directories that name no broker belong to `unnamed_broker`. Rule: F486."""
    rows = [row for row in topics if row["topic"] == CONSUMER_OFFSETS]
    live = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    given: dict[int, set[int]] = defaultdict(set)
    for log in live:
        named = log.log_dir.broker_id
        broker_id = unnamed_broker if named is None else named
        if log.partition is not None and broker_id is not None:
            given[log.partition].add(broker_id)
    return OffsetsReplicas(
        bool(rows or live),
        {
            row["partition"]: frozenset(row["replicas"] or ())
            for row in rows
            if row["partition"] is not None
        },
        {partition: frozenset(brokers) for partition, brokers in given.items()},
    )


def judged_rows(
    rows: Sequence[_Row], members: Members, settings: MigrationSettings, replicas: OffsetsReplicas
) -> list[dict[str, Any]]:
    """Judge the rows of one group, at least one: each compared, what can be moved, and the verdict
    on the group in every row."""
    kafka_fault = replicas.fault(rows[0]["offsets_partition"])
    pairs = [_pair(row, kafka_fault) for row in rows]
    verdict = group_verdict(pairs, members, settings.commit_interval_ms)
    return [
        {**row, **_about(row, pair, members, settings), **_about_group(verdict, members)}
        for row, pair in zip(rows, pairs, strict=True)
    ]


def _pair(row: _Row, kafka_fault: str | None) -> OffsetPair:
    return OffsetPair(
        *(row["zookeeper_offset"], row["zookeeper_mtime_ms"], row["kafka_offset"]),
        *(row["commit_timestamp_ms"], row["detail"], kafka_fault),
    )


def _about(row: _Row, pair: OffsetPair, members: Members, settings: MigrationSettings) -> _Row:
    to_kafka = move_to_kafka(pair, members, settings.allowed, has_topic=row["has_topic"])
    warnings, back_warnings = (
        offset_warnings(
            offset, row["log_start_offset"], row["log_end_offset"], has_topic=row["has_topic"]
        )
        for offset in (pair.zookeeper_offset, pair.kafka_offset)
    )
    before = settings.expired_before_ms
    # F479
    if to_kafka is Move.MOVE and before is not None and (pair.zookeeper_ms or 0) <= before:
        warnings = (*warnings, "expired")
    return {
        "comparison": comparison_of(pair).value,
        "offset_difference": _difference(row["zookeeper_offset"], row["kafka_offset"]),
        "time_difference_ms": _difference(row["zookeeper_mtime_ms"], row["commit_timestamp_ms"]),
        "detail": pair.fault or pair.kafka_fault,
        "to_kafka": to_kafka.value,
        "to_zookeeper": move_to_zookeeper(pair, members, settings.allowed).value,
        "to_kafka_warnings": list(warnings),
        "to_zookeeper_warnings": list(back_warnings),
    }


def _difference(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


def _about_group(verdict: GroupVerdict, members: Members) -> _Row:
    return {
        "phase": verdict.phase.value,
        "reason": verdict.reason,
        "next_step": verdict.next_step,
        "objections": list(verdict.objections),
        "zookeeper_members": members.in_zookeeper,
        "kafka_members": members.in_kafka,
    }


def _phases(judged: Iterable[_Row]) -> Iterator[dict[str, Any]]:
    """Yield the rows of table `migration_phases`: one for each group."""
    for _, group in groupby(judged, itemgetter("group_id")):
        rows = [*group]
        compared = Counter(row["comparison"] for row in rows)
        outcomes = Counter(row["to_kafka"] for row in rows)
        yield {
            **rows[0],
            "is_safe": not rows[0]["objections"],
            "partitions": len(rows),
            **{each.value: compared[each.value] for each in StoreComparison},
            "to_move": outcomes[Move.MOVE.value],
            "refused": sum(outcomes[move.value] for move in REFUSALS),
            "last_zookeeper_ms": _last(rows, "zookeeper_mtime_ms"),
            "last_kafka_ms": _last(rows, "commit_timestamp_ms"),
        }


def _last(rows: Iterable[_Row], name: str) -> int | None:
    return max((row[name] for row in rows if row[name] is not None), default=None)


def _counts(judged: Sequence[_Row]) -> Counter[str]:
    """Return what the rows come to, as `Migration` says."""
    counts = Counter(row["comparison"] for row in judged)
    counts["groups"] = len({row["group_id"] for row in judged})
    counts["partitions"] = len(judged)
    for column in _STORES:
        counts.update(f"{row[column]}_{column}" for row in judged)
        others = ({*row[f"{column}_warnings"]} - {"expired"} for row in judged)
        counts[f"warned_{column}"] = sum(map(bool, others))
    counts["expired"] = sum("expired" in row["to_kafka_warnings"] for row in judged)
    return counts


def _rows(table: str, rows: Iterable[_Row], cluster: EnsembleCluster) -> RowsInMemory:
    place = {name: getattr(cluster, name) for name in ("cluster_id", "input_path", "chroot")}
    return RowsInMemory.of(table, ({**row, **place} for row in rows))
