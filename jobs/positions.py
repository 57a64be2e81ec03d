"""Compare positions that others than consumer groups keep with the logs.

Table: kept_positions, a row per position: of a query of Spark's, a table, a connector, or
MirrorMaker.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import click

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared

_SHOWN = (
    *("keeper", "kept_in", "name", "topic", "partition", "next_offset", "log_start_offset"),
    *("log_end_offset", "records_behind", "status"),
)
_MEANING = """\
\b
PATH is a place that keeps positions, or a broker's log directory; at least one of the latter. Such
places are the checkpoint of a query of Spark's, and a Delta, Iceberg or Parquet table.
"""


@job_command(
    "positions",
    "/srv/spark/checkpoints/orders /var/lib/kafka/data --output-dir /tmp/positions",
    meaning=_MEANING,
)
@shared.catalog_option("An Iceberg catalog, with a table beside those in PATH.")
@click.option("--table", metavar="NAME", help="A table of the catalog.")
@shared.connect_topic_option
def main(
    job: JobSettings, catalog: str | None, table: str | None, connect_topics: Sequence[str]
) -> ExitCode:
    """Compare positions that Spark's checkpoints, Delta and Iceberg tables, source connectors of
    Kafka Connect and MirrorMaker keep with the logs. Findings are positions of topics that were
    deleted or made again, positions beyond the end of the log, and those below its start."""
    from kafkalog.questions.positions.kept_positions import (
        TABLE,
        PositionsRequest,
        divided_paths,
        keepers_suggested,
        positions,
        refuse_without_positions,
    )
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    keepers, log_dirs = divided_paths(job.paths)
    with keepers_suggested(log_dirs):
        inputs, logs = announced_logs(replace(job, paths=tuple(log_dirs)))
    of_catalog = shared.catalog_table(catalog, table)
    now_ms = time.time_ns() // 1_000_000
    request = PositionsRequest(keepers, now_ms, connect_topics, of_catalog)
    with job_run(job, inputs, logs, about=[*inputs, *keepers]) as run:
        found = positions(run.views, request)
        refuse_without_positions(found, [*keepers, *inputs])
        run.save({TABLE: found.rows}, {TABLE: _SHOWN})
    return run.ended(found.words(), has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
