"""Check whether cleaned logs keep the cleaner's guarantees, and what a cleaning would free.

Tables: compaction_report, a row per compacted partition; compaction_findings, a row per finding.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.words import counted

if TYPE_CHECKING:
    from kafkalog.analysis.partitions.compaction import CompactionTotals

_SHOWN = ("topic", "partition", "severity", "kind", "offset", "other_offset", "key", "detail")
_DUE = ("topic", "partition", "dirty_ratio", "is_due", "why_not")


@job_command(
    "verify-compaction",
    "/var/lib/kafka/data --output-dir /tmp/compaction --before /mnt/copy/kafka-logs",
)
@click.option(
    "--before", metavar="LOG_DIR", type=GivenPath(), help="An earlier copy, to find lost keys."
)
@shared.config_options
@shared.as_of_option("Check as of this time instead of now")
def main(
    job: JobSettings, before: str | None, configs: ConfigSources, as_of: int | None
) -> ExitCode:
    """Show whether cleaned logs keep the cleaner's promises, and what a cleaning would free.
    Findings are keys and deletes for which it has not kept them."""
    from kafkalog.analysis.partitions.compaction import compaction_findings, compaction_totals
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.planned_views import PlannedViews
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.kept_rows import kept_rows
    from kafkalog.spark.session import job_session

    config = configs.options()
    inputs, logs = announced_logs(job)
    as_of = time.time_ns() // 1_000_000 if as_of is None else as_of
    if before is not None:
        find_logs([before], strict=job.mode == "FAILFAST")
    with job_session(
        "kafkalog verify-compaction", with_delta=job.is_delta, compiles_less=True
    ) as spark:
        views = PlannedViews(spark, inputs, logs, {"mode": job.mode, "asOf": as_of, **config})
        report = kept_rows(views.view("compaction_report", before=before))
        findings = kept_rows(compaction_findings(report.frame))
        totals = compaction_totals(report)
        paths = [
            replace_rows(job, "compaction_report", inputs, report),
            replace_rows(job, "compaction_findings", inputs, findings),
        ]
        if job.show and not findings.is_empty:
            findings.frame.select(*_SHOWN).show(job.show, truncate=False)
        if job.show and totals.partitions:
            report.sorted_frame(report, _DUE).show(job.show, truncate=False)
    print(verdict(totals, before), f"tables: {' '.join(paths)}", sep="\n")
    return job.exit_code(has_findings=bool(totals.faulty_partitions))


def verdict(totals: CompactionTotals, before: str | None) -> str:
    """Say whether the promises are kept, how much a cleaning would free, what was not checked."""
    said = [counted(totals.partitions, "compacted partition")]
    kept = f"{counted(totals.cleaned_records, 'cleaned record')} as the cleaner promises"
    if not totals.cleaned_records:
        kept = "none is cleaned, according to the checkpoints"
    if totals.faulty_partitions:
        faults = f"{counted(totals.errors, 'error')}, {counted(totals.warnings, 'warning')}"
        kept = f"BROKEN: {faults} in {counted(totals.faulty_partitions, 'partition')}"
    said.append(kept)
    freeable = f"a cleaning would free {counted(totals.freeable_bytes, 'byte')}"
    said.append(f"{freeable}, {counted(totals.due_partitions, 'partition')} due")
    if totals.unknown_partitions:
        unknown = counted(totals.unknown_partitions, "partition")
        said[-1] += f", of {unknown} it is not known (see column why_not)"
    if before is not None:
        said.append(f"{counted(totals.compared, 'partition')} compared with the earlier copy")
    if totals.unread_bytes:
        said.append(f"{counted(totals.unread_bytes, 'byte')} of damage not checked")
    return "; ".join(said)


if __name__ == "__main__":
    sys.exit(main())
