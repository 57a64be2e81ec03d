"""What old consumers have in ZooKeeper and should have, and who had which partition when.

Owners, sessions, offsets, topics on their way out, broker ids and cluster ids. Report only: nothing
is ever changed or deleted.

Tables: partition_ownership, consumer_findings, ownership_history.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import Row

from kafkalog.analysis.zookeeper.consumer_audit import (
    consumer_findings,
    finding_counts,
    of_members,
    ownership_changes,
    ownership_totals,
    ownerships,
    partition_ownership,
    with_log_findings,
)
from kafkalog.coordination.zookeeper.ensemble_clusters import members_by_cluster
from kafkalog.spark.jobs.job import (
    ZOOKEEPER_DIRS,
    ExitCode,
    announced_data_dirs,
    counted,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.jobs.lag.zookeeper_lag import found_clusters
from kafkalog.spark.jobs.zookeeper.consumer_auditing import consumer_audit, with_logs
from kafkalog.spark.jobs.zookeeper.zookeeper_job import given_log_dirs, members_words
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows
from kafkalog.views.options.options import Mode


def verdict(totals: Row, counts: Sequence[Row], moves: int) -> list[str]:
    """How much is owned and assigned, how often that changed, and what is not as it should be."""
    head = f"{counted(totals.groups, 'group')}, {counted(totals.partitions, 'partition')}: "
    head += f"{totals.owned:,} owned, {totals.assigned:,} assigned; "
    head += f"{counted(moves, 'claim')} in the history"
    return [head, *(f"{row.finding}: {row['count']:,}, {row.for_example}" for row in counts)]


def run(args: Namespace) -> ExitCode:
    """Audit, write the tables, and say what was found."""
    data_dirs = announced_data_dirs(args)
    log_dirs = given_log_dirs(args)
    inputs = [data_dir.path for data_dir in data_dirs]
    with job_session("kafkalog audit_consumers", with_delta=args.format == "delta") as spark:
        every = consumer_audit(spark, data_dirs, log_dirs, Mode(args.mode)).persist()
        found_in = found_clusters(every)
        clusters = members_by_cluster(found_in)
        audit = of_members(every, (members[0] for members in clusters))
        known = with_logs(ownerships(audit), log_dirs, found_in, time.time_ns() // 1_000_000)
        owned = with_log_findings(known).persist()
        found, claims = (
            consumer_findings(audit, owned).persist(),
            ownership_changes(audit).persist(),
        )
        tables = {
            "partition_ownership": partition_ownership(owned),
            "consumer_findings": found,
            "ownership_history": claims,
        }
        for table, rows in tables.items():
            replace_rows(rows, args.output, table, args.format, inputs)
        (totals,) = ownership_totals(owned).collect()
        counts = finding_counts(found).orderBy("finding").collect()
        said = [*members_words(clusters), *verdict(totals, counts, claims.count())]
        if args.show and counts:
            shown = found.select("finding", "group_id", "topic", "partition", "detail")
            shown.orderBy(*shown.columns).show(args.show, truncate=False)
    print(*said, f"tables: {', '.join(tables)} in {args.output}", sep="\n")
    return exit_code(args, has_findings=bool(counts))


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "audit_consumers",
        "Compare who owns partitions with what the registered consumers are assigned, tell the "
        "history of ownership, and what is wrong with sessions, offsets, topics on their way out, "
        "broker ids and cluster ids. Nothing is changed or deleted.",
        "/var/lib/zookeeper --log-dirs /var/lib/kafka/data --output /tmp/audit",
        inputs=ZOOKEEPER_DIRS,
    )
    parser.add_argument(
        "--log-dirs",
        metavar="LOG_DIR",
        nargs="+",
        default=[],
        help="the brokers' log directories: offsets are compared with the logs, topics and cluster "
        "ids with what is on disk",
    )
    return run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
