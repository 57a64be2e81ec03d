"""`kafkalog export`: the records of topics as tables, without Spark and Java."""

from __future__ import annotations

import time

import click

from kafkalog.command_line.findings_table import exit_code
from kafkalog.exit_codes import ExitCode
from kafkalog.lake.formats.targets import FORMATS, PARQUET, requested_place
from kafkalog.lake.table_options import TableRequest, table_options
from kafkalog.storage.files.uris import absolute_path
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import PATHS_MEANING
from kafkalog.views.options.ingest_request import IngestRequest, ingest_options
from kafkalog.views.options.options import Mode

_EPILOG = f"""\
{PATHS_MEANING}
Each run adds what is new since the last one to table ingested_records, every record once, and what
it read to table ingest_manifest. A run that fails, or that is stopped, leaves the tables as they
were. Findings are records that were deleted before they were read, logs other than those that were
read before, and records with a time in the future. See docs/ingest.md.

\b
Examples:
  kafkalog export /var/lib/kafka/data --output-dir /lake/kafka
  kafkalog export /var/lib/kafka/data --output-dir /lake/kafka --table-per-topic
  kafkalog export /var/lib/kafka/data --output-dir /lake/tables --format iceberg
  kafkalog export /var/lib/kafka/data --output-dir /lake/delta --format delta
  kafkalog export /var/lib/kafka/data --format iceberg --catalog lake --table raw.records
  kafkalog export '/backup/*/orders-*' --output-dir s3://lake/kafka --partition-by day
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.output_dir_option(
    "Directory of the tables: a local path, or for Parquet a URI such as s3://bucket/path.",
    required=False,
)
@shared.format_option(
    FORMATS, "Format of the tables. delta needs the extra kafkalog[deltalake].", default=PARQUET
)
@table_options
@ingest_options
@shared.show_option("topics", default=20)
@shared.mode_option(Mode.FAILFAST)
@shared.fail_on_findings_option(default=False)
@shared.processes_option
def export(
    paths: tuple[str, ...],
    output_dir: str,
    table_format: str,
    show: int,
    mode: str,
    fail_on_findings: bool,
    processes: int | None,
    request: IngestRequest,
    tables: TableRequest,
) -> ExitCode:
    """Write the records of topics to Parquet, Iceberg or Delta tables, each exactly once."""
    from kafkalog.command_line.export.run import ExportSettings, run_export

    directory = absolute_path(output_dir) if output_dir else None
    place = requested_place(table_format, directory, tables)
    settings = ExportSettings(paths, place, mode, processes, show)
    now_ms = time.time_ns() // 1_000_000
    has_findings = run_export(settings, request, tables, now_ms=now_ms)
    return exit_code(has_findings=has_findings, fails=fail_on_findings)
