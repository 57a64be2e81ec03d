"""Show how many keys topics have, which are heavy, and which records repeat others.

Tables: key_usage, a row per partition; heavy_keys, a row per topic and key.
"""

from __future__ import annotations

import sys

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command

_SHOWN = (
    *("topic", "partition", "records", "distinct_keys", "tombstones", "repeated_records"),
    *("resent_records", "bytes", "heaviest_key_share", "largest_record_bytes"),
)


@job_command("key-usage", "/var/lib/kafka/data --output-dir /tmp/keys")
def main(job: JobSettings) -> ExitCode:
    """Show how many keys topics have, which of them have most bytes, how many records are
    tombstones, and which repeat a record shortly before."""
    from kafkalog.questions.topics.key_usage import HEAVY, TABLE, KeyUsageRequest, key_usage
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    inputs, logs = announced_logs(job)
    with job_run(job, inputs, logs) as run:
        usage = key_usage(run.views, KeyUsageRequest())
        tables = {TABLE: usage.partitions, HEAVY: usage.heavy}
        run.save(tables, {TABLE: _SHOWN})
    return run.ended(usage.words(), has_findings=False)


if __name__ == "__main__":
    sys.exit(main())
