"""Compare groups' offsets in ZooKeeper and in Kafka, and write what moves them to the other.

Tables: offset_migration, a row per group, topic and partition; migration_phases, a row per group.
"""

from __future__ import annotations

import sys
import time

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options.zookeeper.migration_options import MigrationRequest, migration_options

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
    from kafkalog.questions.zookeeper.migration import PHASES, MigrationSettings, migration
    from kafkalog.questions.zookeeper.moved_offsets import MoveOutput, write_moves
    from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster, zookeeper_input
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run, with_internal
    from kafkalog.storage.log_dir.log_dir import input_entries
    from kafkalog.storage.log_dir.read_directories import directories_read, refuse_tables

    inputs, logs = announced_logs(job, chosen=with_internal(request.chosen.is_topic))
    given = zookeeper_input(request.zookeeper, job.mode, request.chroot)
    entries = [entry for path in job.paths for entry in input_entries(path)]
    directories = [*given.paths, *directories_read(entries, logs)]
    refuse_tables(job.output_dir, directories)
    now_ms = time.time_ns() // 1_000_000
    output = MoveOutput.of(request, now_ms)
    output.refuse_places(directories)
    ids = {log.log_dir.cluster_id for log in logs}
    zookeeper = ZookeeperCluster(given, ids, allow_unknown=request.allow_unknown_cluster)
    with job_run(job, inputs, logs, about=given.inputs, compiles_less=False) as run:
        found = migration(run.views, zookeeper, MigrationSettings.of(request, now_ms))
        run.save(found.tables, {PHASES: _SHOWN})
    findings = found.findings()
    moves = write_moves(output, found, logs, zookeeper, now_ms)
    words = [*found.words(), *moves, f"findings: {', '.join(findings) or 'none'}"]
    return run.ended(words, has_findings=bool(findings))


if __name__ == "__main__":
    sys.exit(main())
