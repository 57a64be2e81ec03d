"""Write a new log directory with all that is intact in a damaged one, for a broker to open.

Tables: salvage, a row per partition; lost_ranges, a row per range of bytes or offsets that is not
in the new directory.
"""

from __future__ import annotations

import sys
import time

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.recovery_options import SalvageRequest, salvage_options

_SHOWN = ("topic", "partition", "kind", "length", "first_offset", "last_offset", "detail")


@job_command(
    "salvage", "/mnt/damaged/kafka-logs --to /mnt/new/kafka-logs --output-dir /tmp/salvaged"
)
@shared.new_log_dir_option
@salvage_options
def main(job: JobSettings, target: str, request: SalvageRequest) -> ExitCode:
    """Write a new log directory with all that is intact in a damaged one. Findings are what is
    lost, what is doubtful, and what would keep a broker from starting."""
    from kafkalog.inspection.partitions.salvaged_logs import SalvageTotals, lost_rows
    from kafkalog.spark.jobs.salvage import salvage_in_tasks
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run, print_absent
    from kafkalog.spark.kept_rows import KeptRows
    from kafkalog.spark.tables import refuse_other_inputs, spark_schema
    from kafkalog.storage.files.output_files import refuse_existing_directory
    from kafkalog.storage.log_dir.read_directories import refuse_inside
    from kafkalog.storage.writing.salvaged_log_dir import left_out_lines, salvageable

    inputs, found = announced_logs(job)
    refuse_inside("--output-dir", job.output_dir, [target])
    refuse_inside("--to", target, [*inputs, *(log.path for log in found)])
    refuse_existing_directory("--to", target)
    logs = salvageable(found)
    settings = request.settings(logs, found, time.time_ns() // 1_000_000)
    with job_run(job, inputs, logs) as run:
        for table in ("salvage", "lost_ranges"):
            refuse_other_inputs(run.spark, job.output_dir, table, job.table_format, inputs)
        salvaged = salvage_in_tasks(run.spark, logs, target, settings)
        totals = SalvageTotals.of(salvaged)
        lost = KeptRows.of(run.spark, lost_rows(salvaged), spark_schema("lost_ranges"))
        tables = {"salvage": salvaged, "lost_ranges": lost}
        run.save(tables, {"lost_ranges": _SHOWN})
    print_absent(inputs, found)
    words = [*left_out_lines(found), totals.words(target)]
    return run.ended(words, has_findings=totals.has_findings)


if __name__ == "__main__":
    sys.exit(main())
