"""The rules of offset migration on DataFrames: each group is judged as a whole, by a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafkalog.coordination.groups.offsets_replicas import OffsetsReplicas
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster
from kafkalog.coordination.zookeeper.offset_migration import (
    COMMIT_INTERVAL_MS,
    GroupVerdict,
    Members,
    Move,
    OffsetPair,
    comparison_of,
    group_verdict,
    move_to_kafka,
    move_to_zookeeper,
    offset_warnings,
)
from kafkalog.spark.tables import spark_schema

_Row = Mapping[str, Any]
_WARNINGS = ("to_kafka_warnings", "to_zookeeper_warnings")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What offsets are judged by: the refusals that do not hold, how far commits of a round lie
    apart, up to which commit time offsets would expire when moved, None if none does, and which
    replicas of the commits in Kafka there are."""

    allowed: frozenset[Move] = frozenset()
    commit_interval_ms: int = COMMIT_INTERVAL_MS
    expired_before_ms: int | None = None
    replicas: OffsetsReplicas = field(default_factory=OffsetsReplicas)


def judged(pairs: DataFrame, cluster: EnsembleCluster, judgement: Judgement) -> DataFrame:
    """Return the pairs with their members and log ends, each compared, and what can be moved; with
    the verdict on the group in every row, and which cluster it is."""
    constants = {
        "cluster_id": cluster.cluster_id,
        "input_path": cluster.input_path,
        "chroot": cluster.chroot,
    }
    pairs = pairs.withColumns(
        {name: F.lit(value).cast("string") for name, value in constants.items()}
    )
    rows, phases = spark_schema("offset_migration"), spark_schema("migration_phases")
    names = ("comparison", "to_kafka", "to_zookeeper", *_WARNINGS)
    about_group = ("phase", "reason", "next_step", "objections")
    added = [*(rows[name] for name in names), *(phases[name] for name in about_group)]
    schema = StructType([*pairs.schema.fields, *added])
    return pairs.groupBy("group_id").applyInArrow(_judging(judgement, schema), schema)


def _judging(judgement: Judgement, schema: StructType) -> Callable[[pa.Table], pa.Table]:
    def judge(group: pa.Table) -> pa.Table:
        found = judged_rows(group.to_pylist(), judgement)
        return pa.Table.from_pylist(found, schema=to_arrow_schema(schema))

    return judge


def judged_rows(rows: Sequence[_Row], judgement: Judgement) -> list[_Row]:
    """Judge the rows of one group, at least one."""
    members = Members(rows[0]["zookeeper_members"], rows[0]["kafka_members"])
    kafka_fault = judgement.replicas.fault(rows[0]["offsets_partition"])
    pairs = [_pair(row, kafka_fault) for row in rows]
    verdict = group_verdict(pairs, members, judgement.commit_interval_ms)
    return [
        {**row, **_about(row, pair, members, judgement), **_about_group(verdict)}
        for row, pair in zip(rows, pairs, strict=True)
    ]


def _pair(row: _Row, kafka_fault: str | None) -> OffsetPair:
    return OffsetPair(
        row["zookeeper_offset"],
        row["zookeeper_mtime_ms"],
        row["kafka_offset"],
        row["commit_timestamp_ms"],
        row["detail"],
        kafka_fault,
    )


def _about(row: _Row, pair: OffsetPair, members: Members, judgement: Judgement) -> _Row:
    to_kafka = move_to_kafka(pair, members, judgement.allowed, has_topic=row["has_topic"])
    warnings, back_warnings = (
        offset_warnings(
            offset, row["log_start_offset"], row["log_end_offset"], has_topic=row["has_topic"]
        )
        for offset in (pair.zookeeper_offset, pair.kafka_offset)
    )
    before = judgement.expired_before_ms
    # F479
    if to_kafka is Move.MOVE and before is not None and (pair.zookeeper_ms or 0) <= before:
        warnings = (*warnings, "expired")
    return {
        "comparison": comparison_of(pair).value,
        "detail": pair.fault or pair.kafka_fault,
        "to_kafka": to_kafka.value,
        "to_zookeeper": move_to_zookeeper(pair, members, judgement.allowed).value,
        "to_kafka_warnings": list(warnings),
        "to_zookeeper_warnings": list(back_warnings),
    }


def _about_group(verdict: GroupVerdict) -> _Row:
    return {
        "phase": verdict.phase.value,
        "reason": verdict.reason,
        "next_step": verdict.next_step,
        "objections": list(verdict.objections),
    }
