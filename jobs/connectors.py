"""Show the connectors of Kafka Connect, their tasks and source offsets.

Tables: connectors, connector_tasks and connector_offsets.
"""

from __future__ import annotations

import sys

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command

_SHOWN = ("connector", "target_state", "state", "tasks", "tasks_running", "tasks_failed", "error")


@job_command("connectors", "/var/lib/kafka/data --output-dir /tmp/connectors")
def main(job: JobSettings) -> ExitCode:
    """Show the connectors of Kafka Connect by the topics of its workers, their tasks and source
    offsets. Findings are connectors and tasks that failed."""
    from kafkalog.questions.topics.connectors import (
        OFFSETS,
        TABLE,
        TASKS,
        ConnectorsRequest,
        connectors,
    )
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.session import job_session
    from kafkalog.spark.tables import show_rows

    inputs, logs = announced_logs(job)
    with job_session("kafkalog connectors", with_delta=job.is_delta, compiles_less=True) as spark:
        found = connectors(SparkViews(spark, inputs, logs, {"mode": job.mode}), ConnectorsRequest())
        replace_rows(job, TASKS, inputs, found.tasks)
        replace_rows(job, OFFSETS, inputs, found.offsets)
        path = replace_rows(job, TABLE, inputs, found.connectors)
        show_rows(spark, TABLE, found.connectors, _SHOWN, job.show)
    print(*found.words(), f"tables: {path}", sep="\n")
    return job.exit_code(has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
