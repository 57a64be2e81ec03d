"""Whether cleaned logs keep the cleaner's promises, and what a cleaning would free.

Tables: compaction_report, a row per compacted partition; compaction_findings, a row per finding.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Row, SparkSession

from kafkalog.analysis.partitions.compaction import compaction_findings, compaction_totals
from kafkalog.spark.jobs import job
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows
from kafkalog.storage.log_dir.log_dir import find_partitions

_SHOWN = ("topic", "partition", "severity", "kind", "offset", "other_offset", "key", "detail")


def build(
    spark: SparkSession, log_dirs: Sequence[str], config: Mapping[str, str], args: Namespace
) -> DataFrame:
    """The report on all compacted partitions under the log directories."""
    reader = spark.read.format("kafkalog").option("view", "compaction_report")
    reader = reader.option("subscribe", "*").option("mode", args.mode).option("nowMs", args.at)
    reader = reader if args.before is None else reader.option("before", args.before)
    return reader.options(**config).load(list(log_dirs))


def verdict(totals: Row, before: str | None) -> str:
    """Whether the promises are kept; how much a cleaning would free; what was not looked at."""
    said = [job.counted(totals.partitions, "compacted partition")]
    kept = f"{job.counted(totals.cleaned_records, 'cleaned record')} as the cleaner promises"
    if not totals.cleaned_records:
        kept = "nothing of them is cleaned, so far as checkpoints tell"
    if totals.faulty_partitions:
        faults = f"{job.counted(totals.errors, 'error')}, {job.counted(totals.warnings, 'warning')}"
        kept = f"BROKEN: {faults} in {job.counted(totals.faulty_partitions, 'partition')}"
    said.append(kept)
    freeable = f"a cleaning would free {job.counted(totals.freeable_bytes, 'byte')}"
    said.append(f"{freeable}, {job.counted(totals.due_partitions, 'partition')} due")
    if before is not None:
        said.append(f"{job.counted(totals.compared, 'partition')} compared with the earlier copy")
    if totals.unread_bytes:
        said.append(f"{job.counted(totals.unread_bytes, 'byte')} of damage not looked at")
    return "; ".join(said)


def run(args: Namespace) -> job.ExitCode:
    """Check, write both tables, and say what was found."""
    config, inputs = job.config_options(args), job.announced_inputs(args)
    if args.before is not None:
        find_partitions([args.before], strict=args.mode == "FAILFAST")
    with job_session("kafkalog verify_compaction", with_delta=args.format == "delta") as spark:
        report = build(spark, inputs, config, args).persist()
        findings = compaction_findings(report)
        (totals,) = compaction_totals(report).collect()
        paths = [
            replace_rows(report, args.output, "compaction_report", args.format, inputs),
            replace_rows(findings, args.output, "compaction_findings", args.format, inputs),
        ]
        if args.show and not findings.isEmpty():
            findings.select(*_SHOWN).show(args.show, truncate=False)
    print(verdict(totals, args.before), f"tables: {' '.join(paths)}", sep="\n")
    return job.exit_code(args, has_findings=bool(totals.faulty_partitions))


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job.job_parser(
        "verify_compaction",
        "Say whether cleaned logs keep the cleaner's promises, and what a cleaning would free.",
        "/var/lib/kafka/data --output /tmp/compaction --before /mnt/copy/kafka-logs",
    )
    parser.add_argument("--before", metavar="LOG_DIR", help="an earlier copy, to find lost keys")
    job.add_config_arguments(parser)
    job.add_time_argument(parser, "--at", "the time of the check", time.time_ns() // 1_000_000)
    return job.run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
