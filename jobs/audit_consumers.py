"""Compare what old consumers have in ZooKeeper with what they are assigned; show who owned what.

Owners, sessions, offsets, deletions of topics under way, broker ids and cluster ids. The job only
reports: it never changes or deletes anything.

Tables: partition_ownership, consumer_findings, ownership_history.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kafkalog.spark.jobs.job import ZOOKEEPER_PATHS_MEANING, ExitCode, JobSettings, job_command
from kafkalog.views.options.options import Mode
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.words import counted

if TYPE_CHECKING:
    from pyspark.sql import Row


@job_command(
    "audit-consumers",
    "/var/lib/zookeeper --log-dir /var/lib/kafka/data --output-dir /tmp/audit",
    meaning=ZOOKEEPER_PATHS_MEANING,
)
@click.option(
    "--log-dir",
    "log_dirs",
    metavar="LOG_DIR",
    type=GivenPath(),
    multiple=True,
    help="A broker's log directory: compare offsets with its logs, topics and cluster ids with "
    "what is on disk; repeatable.",
)
def main(job: JobSettings, log_dirs: tuple[str, ...]) -> ExitCode:
    """Compare who owns partitions with what the registered consumers are assigned, show the history
    of ownership, and what is wrong with sessions, offsets, deletions of topics under way, broker
    ids and cluster ids. The job changes and deletes nothing."""
    from kafkalog.analysis.zookeeper import consumer_audit as analysis
    from kafkalog.coordination.zookeeper.ensemble_clusters import members_by_cluster
    from kafkalog.spark.jobs.inputs import announced_data_dirs
    from kafkalog.spark.jobs.lag.zookeeper_lag import found_clusters
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.jobs.zookeeper.consumer_auditing import (
        consumer_audit,
        given_log_dirs,
        members_words,
        with_logs,
    )
    from kafkalog.spark.session import job_session

    data_dirs = announced_data_dirs(job)
    logs = given_log_dirs(log_dirs, job.output_dir)
    inputs = [data_dir.path for data_dir in data_dirs]
    with job_session("kafkalog audit-consumers", with_delta=job.is_delta) as spark:
        every = consumer_audit(spark, data_dirs, logs, Mode(job.mode)).persist()
        found_in = found_clusters(every)
        clusters = members_by_cluster(found_in)
        audit = analysis.of_members(every, (members[0] for members in clusters))
        now_ms = time.time_ns() // 1_000_000
        known = with_logs(analysis.ownerships(audit), logs, found_in, now_ms)
        owned = analysis.with_log_findings(known).persist()
        found, claims = (
            analysis.consumer_findings(audit, owned).persist(),
            analysis.ownership_changes(audit).persist(),
        )
        tables = {
            "partition_ownership": analysis.partition_ownership(owned),
            "consumer_findings": found,
            "ownership_history": claims,
        }
        for table, rows in tables.items():
            replace_rows(job, table, inputs, rows)
        (totals,) = analysis.ownership_totals(owned).collect()
        counts = analysis.finding_counts(found).orderBy("finding").collect()
        said = [*members_words(clusters), *verdict(totals, counts, claims.count())]
        if job.show and counts:
            shown = found.select("finding", "group_id", "topic", "partition", "detail")
            shown.orderBy(*shown.columns).show(job.show, truncate=False)
    print(*said, f"tables: {', '.join(tables)} in {job.output_dir}", sep="\n")
    return job.exit_code(has_findings=bool(counts))


def verdict(totals: Row, counts: Sequence[Row], moves: int) -> list[str]:
    """Say how much is owned and assigned, how often that changed, and what is wrong."""
    head = f"{counted(totals.groups, 'group')}, {counted(totals.partitions, 'partition')}: "
    head += f"{totals.owned:,} owned, {totals.assigned:,} assigned; "
    head += f"{counted(moves, 'claim')} in the history"
    return [head, *(f"{row.finding}: {row['count']:,}, {row.for_example}" for row in counts)]


if __name__ == "__main__":
    sys.exit(main())
