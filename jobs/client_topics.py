"""Show what Kafka Connect, Kafka Streams, MirrorMaker and ksqlDB keep in topics of the cluster.

Tables: connectors, connector_tasks and connector_offsets; streams_positions; mirror_checkpoints,
mirror_offset_syncs and mirror_heartbeats; and ksql_statements.
"""

from __future__ import annotations

import sys

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command

# In the order of their tables on the terminal.
_SHOWN = {
    "connectors": (
        *("connector", "target_state", "state", "tasks", "tasks_running", "tasks_failed", "error"),
    ),
    "streams_positions": (
        *("application_id", "topic", "partition", "committed_offset", "stream_time_ms"),
        "committed_ms",
    ),
    "mirror_checkpoints": (
        *("group_id", "topic", "partition", "source_offset", "target_offset", "source_cluster"),
        "written_ms",
    ),
    "ksql_statements": ("kind", "name", "action", "state", "query_id", "written_ms"),
}


@job_command("client-topics", "/var/lib/kafka/data --output-dir /tmp/client-topics")
def main(job: JobSettings) -> ExitCode:
    """Show the connectors of Kafka Connect, their tasks and source offsets, how far applications of
    Kafka Streams are, what MirrorMaker has copied, and the statements of ksqlDB, by what these
    programs keep in topics. Findings are connectors and tasks that failed."""
    from kafkalog.questions.topics import connectors as connect
    from kafkalog.questions.topics import ksql_statements, mirrors, streams_positions
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    inputs, logs = announced_logs(job)
    with job_run(job, inputs, logs) as run:
        found = connect.connectors(run.views, connect.ConnectorsRequest())
        positions = streams_positions.streams_positions(run.views)
        mirrored = mirrors.mirrors(run.views)
        statements = ksql_statements.ksql_statements(run.views)
        rows = {
            connect.TABLE: found.connectors,
            connect.TASKS: found.tasks,
            connect.OFFSETS: found.offsets,
            streams_positions.TABLE: positions.rows,
            **{mirrors.TABLES[kind]: each for kind, each in mirrored.rows.items()},
            ksql_statements.TABLE: statements.rows,
        }
        run.save(rows, _SHOWN)
    words = [*found.words(), *positions.words(), *mirrored.words(), *statements.words()]
    return run.ended(words, has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
