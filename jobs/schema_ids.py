"""Show which schema ids the records of each topic name.

Table: schema_ids, a row per partition, field and id.
"""

from __future__ import annotations

import sys

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command

_SHOWN = ("topic", "partition", "field", "schema_id", "guid", "subject", "version", "records")


@job_command("schema-ids", "/var/lib/kafka/data --output-dir /tmp/schemas")
def main(job: JobSettings) -> ExitCode:
    """Show which schema ids the records of each topic name, and which schemas of the topic _schemas
    they are. Findings are ids that it does not have."""
    from kafkalog.questions.topics.schema_ids import TABLE, SchemaIdsRequest, schema_ids
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    inputs, logs = announced_logs(job)
    with job_run(job, inputs, logs) as run:
        found = schema_ids(run.views, SchemaIdsRequest())
        run.save({TABLE: found.rows}, {TABLE: _SHOWN})
    return run.ended(found.words(), has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
