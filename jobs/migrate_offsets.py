"""Compare groups' offsets in ZooKeeper and in Kafka, and write what moves them to the other.

Tables: offset_migration, a row per group, topic and partition; migration_phases, a row per group.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.spark.jobs.zookeeper.migration_request import MigrationRequest, migration_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafkalog.spark.jobs.zookeeper.migration_reading import OffsetStores

_SHOWN = ("group_id", "phase", "partitions", "to_move", "refused", "is_safe", "objections")


@job_command(
    "migrate-offsets",
    "/var/lib/kafka/data --zookeeper /var/lib/zookeeper --output-dir /tmp/migration",
)
@migration_options
def main(job: JobSettings, request: MigrationRequest) -> ExitCode:
    """Compare the offsets that consumer groups have in ZooKeeper and in Kafka, show how far each
    group's migration has come and whether the next step is safe, and write what moves offsets from
    one to the other. Findings are offsets that an option would have to allow to be moved, and
    offsets that no log has."""
    from kafkalog.analysis.zookeeper import offset_migration as migration
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.lag.lag_settings import NameFilter
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.jobs.zookeeper import migration_words as words
    from kafkalog.spark.jobs.zookeeper.migration_reading import offset_inputs, offset_stores
    from kafkalog.spark.jobs.zookeeper.migration_writing import written_moves
    from kafkalog.spark.jobs.zookeeper.offset_judgement import judged
    from kafkalog.spark.session import job_session

    inputs = offset_inputs(job, request, announced_logs(job)[1])
    with job_session("kafkalog migrate-offsets", with_delta=job.is_delta) as spark:
        stores = offset_stores(spark, job, request, inputs)
        groups = NameFilter(request.groups, request.group_pattern)
        topics = NameFilter(request.topics, request.topic_pattern)
        pairs = compared(stores)
        chosen = topics.matching(groups.matching(pairs, "group_id"), "topic")
        found = judged(chosen, stores.cluster, request.judgement(stores.replicas)).persist()
        tables = {
            "offset_migration": migration.offset_migration(found).persist(),
            "migration_phases": migration.migration_phases(found).persist(),
        }
        paths = [replace_rows(job, table, stores.inputs, frame) for table, frame in tables.items()]
        rows, phases = tables.values()
        (totals,) = migration.migration_totals(rows).collect()
        if job.show and totals.groups:
            phases.orderBy("phase", "group_id").select(*_SHOWN).show(job.show, truncate=False)
        phase_totals = migration.phase_totals(phases).collect()
        missing = [
            *groups.missing_words("--group", rows, lambda: pairs, "group_id"),
            *topics.missing_words("--topic", rows, lambda: pairs, "topic"),
        ]
        print(words.migration_verdict(stores.cluster, totals, phase_totals))
        missing_brokers = stores.replicas.missing_brokers()
        print(*words.move_words(request.directions, totals, missing_brokers), sep="\n")
        for line in missing:
            print(line)
        for line in written_moves(stores, rows, request, time.time_ns() // 1_000_000):
            print(line)
    findings = words.migration_findings(request.directions, totals)
    print(f"findings: {', '.join(findings) or 'none'}")
    print("tables:", *paths)
    return job.exit_code(has_findings=bool(findings))


def compared(stores: OffsetStores) -> DataFrame:
    """Return both stores side by side: a row per group, topic and partition."""
    from kafkalog.analysis.zookeeper.offset_migration import StoredOffsets, compared_offsets

    stored = StoredOffsets(
        *(stores.zookeeper_offsets, stores.consumers, stores.topics),
        *(stores.commits, stores.group_metadata, stores.log_ends),
    )
    return compared_offsets(stored, stores.partitions)


if __name__ == "__main__":
    sys.exit(main())
