"""Compares groups' offsets in ZooKeeper and in Kafka, and writes what moves them to the other.

Tables: offset_migration, a row per group, topic and partition; migration_phases, a row per group.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame

from kafkalog.analysis.zookeeper.offset_migration import (
    StoredOffsets,
    compared_offsets,
    migration_phases,
    migration_totals,
    offset_migration,
    phase_totals,
)
from kafkalog.spark.jobs import job
from kafkalog.spark.jobs.lag.lag_settings import NameFilter
from kafkalog.spark.jobs.zookeeper.migration_arguments import add_migration_arguments, judgement
from kafkalog.spark.jobs.zookeeper.migration_reading import (
    OffsetStores,
    offset_inputs,
    offset_stores,
)
from kafkalog.spark.jobs.zookeeper.migration_words import (
    migration_findings,
    migration_verdict,
    move_words,
)
from kafkalog.spark.jobs.zookeeper.migration_writing import written_moves
from kafkalog.spark.jobs.zookeeper.offset_judgement import judged
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows

_SHOWN = ("group_id", "phase", "partitions", "to_move", "refused", "is_safe", "objections")


def compared(stores: OffsetStores, args: Namespace) -> DataFrame:
    """Both stores side by side, judged: a row per group, topic and partition."""
    stored = StoredOffsets(
        *(stores.zookeeper_offsets, stores.consumers, stores.topics),
        *(stores.commits, stores.group_metadata, stores.log_ends),
    )
    pairs = compared_offsets(stored, stores.partitions)
    pairs = NameFilter(pattern=args.groups).matching(pairs, "group_id")
    chosen = NameFilter(pattern=args.topics).matching(pairs, "topic")
    return judged(chosen, stores.cluster, judgement(args, stores.replicas)).persist()


def run(args: Namespace) -> job.ExitCode:
    """Compare, write both tables and what was asked for, and say what it comes to."""
    inputs = offset_inputs(args, job.announced_logs(args)[1])
    with job_session("kafkalog migrate_offsets", with_delta=args.format == "delta") as spark:
        stores = offset_stores(spark, args, inputs)
        found = compared(stores, args)
        tables = {
            "offset_migration": offset_migration(found).persist(),
            "migration_phases": migration_phases(found).persist(),
        }
        paths = [
            replace_rows(frame, args.output, table, args.format, stores.inputs)
            for table, frame in tables.items()
        ]
        rows, phases = tables.values()
        (totals,) = migration_totals(rows).collect()
        if args.show and totals.groups:
            phases.orderBy("phase", "group_id").select(*_SHOWN).show(args.show, truncate=False)
        print(migration_verdict(stores.cluster, totals, phase_totals(phases).collect()))
        print(*move_words(args, totals, stores.replicas.missing_brokers()), sep="\n")
        for line in written_moves(stores, rows, args, time.time_ns() // 1_000_000):
            print(line)
    found_words = migration_findings(args, totals)
    print(f"findings: {', '.join(found_words) or 'none'}")
    print("tables:", *paths)
    return job.exit_code(args, has_findings=bool(found_words))


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job.job_parser(
        "migrate_offsets",
        "Compare the offsets that consumer groups have in ZooKeeper and in Kafka, tell how far "
        "each group's migration has come and whether the next step is safe, and write what moves "
        "offsets from one to the other. Findings are offsets that are not moved unless told to, "
        "and those that no log has.",
        "/var/lib/kafka/data --zookeeper /var/lib/zookeeper --output /tmp/migration",
    )
    add_migration_arguments(parser)
    return job.run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
