"""Show which segments a broker's retention would delete, now or at a given time, and why.

Table: retention_plan, a row per segment.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.words import counted

if TYPE_CHECKING:
    from kafkalog.inspection.partitions.retention_totals import TopicTotals

_TOTALS = (
    "topic string, segments bigint, segments_going bigint, bytes bigint, bytes_freed bigint, "
    "bytes_unknown bigint, bytes_past_time bigint, blocked_partitions bigint, "
    "blocked_by_ms bigint, padded_segments bigint, missing_settings string"
)


@job_command(
    "plan-retention",
    "/var/lib/kafka/data --output-dir /tmp/plan --server-properties server.properties",
)
@shared.config_options
@shared.as_of_option("Plan as of this time instead of now")
def main(job: JobSettings, configs: ConfigSources, as_of: int | None) -> ExitCode:
    """Show which segments retention would delete and why. Findings are topics whose retention is
    blocked by a timestamp in the future, and segments that a broker takes to be of 1970 because
    their time index ends with zeros."""
    from kafkalog.inspection.partitions.retention_totals import topic_totals
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.session import job_session
    from kafkalog.spark.tables import local_rows
    from kafkalog.views.engine import rows_of_view

    config = configs.options()
    inputs, logs = announced_logs(job)
    as_of = time.time_ns() // 1_000_000 if as_of is None else as_of
    with job_session(
        "kafkalog plan-retention", with_delta=job.is_delta, compiles_less=True
    ) as spark:
        views = SparkViews(spark, inputs, logs, {"mode": job.mode, "asOf": as_of, **config})
        plan = rows_of_view(views, "retention_plan")
        path = replace_rows(job, "retention_plan", inputs, plan)
        topics = topic_totals(plan)
        if job.show:
            most_first = sorted(topics, key=lambda topic: topic.bytes_freed, reverse=True)
            shown = ((*astuple(each)[:-1], _missing(each)) for each in most_first)
            local_rows(spark, shown, _TOTALS).show(job.show, truncate=False)
    print(*verdict(topics), f"tables: {path}", sep="\n")
    has_findings = any(row.blocked_partitions or row.padded_segments for row in topics)
    return job.exit_code(has_findings=has_findings)


def verdict(topics: Sequence[TopicTotals]) -> list[str]:
    """Say what would be deleted, which topics are blocked, and whose limits are unknown."""
    going, freed = sum(row.segments_going for row in topics), sum(row.bytes_freed for row in topics)
    whole = counted(sum(row.segments for row in topics), "segment")
    lines = [f"{going:,} of {whole} would go, {counted(freed, 'byte')} freed"]
    blocked = [row.topic or "?" for row in topics if row.blocked_partitions]
    if blocked:
        lines.append(f"blocked by a timestamp in the future: {', '.join(blocked)}")
    padded = [row.topic or "?" for row in topics if row.padded_segments]
    if padded:
        lines.append(
            "taken for 1970, because zeros are at the end of time indexes: segments of "
            f"{', '.join(padded)}: remove their .index and .timeindex before the broker starts, "
            "and it recreates them"
        )
    unknown = [row for row in topics if row.bytes_unknown]
    if unknown:
        named = ", ".join(
            f"{row.topic or '?'} ({_missing(row) or 'see reason'})" for row in unknown
        )
        lines.append(
            f"not known for want of settings: {named}; --server-properties, --topic-config, "
            "--zookeeper or a log directory with __cluster_metadata give them"
        )
    past = sum(row.bytes_past_time for row in topics)
    if past:
        lines.append(
            f"{counted(past, 'byte')} of these are past retention.ms, and go if cleanup.policy has "
            "delete"
        )
    return lines


def _missing(row: TopicTotals) -> str | None:
    """Return the settings that nothing gives."""
    return ", ".join(sorted(row.missing_settings)) or None


if __name__ == "__main__":
    sys.exit(main())
