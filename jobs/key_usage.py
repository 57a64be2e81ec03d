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
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.jobs.tables.answers import ended, saved
    from kafkalog.spark.session import job_session

    inputs, logs = announced_logs(job)
    with job_session("kafkalog key-usage", with_delta=job.is_delta, compiles_less=True) as spark:
        views = SparkViews(spark, inputs, logs, {"mode": job.mode})
        usage = key_usage(views, KeyUsageRequest())
        tables = {TABLE: usage.partitions, HEAVY: usage.heavy}
        paths = saved(spark, job, inputs, tables, {TABLE: _SHOWN})
    return ended(job, usage.words(), paths, has_findings=False)


if __name__ == "__main__":
    sys.exit(main())
