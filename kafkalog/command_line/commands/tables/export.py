"""`kafkalog export`: the records of topics as tables, without Spark and Java."""

from __future__ import annotations

import time

import click

from kafkalog.command_line.answer_output import exit_code
from kafkalog.errors import KafkaLogError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.lake.decoding.decoding_requests import TableDecodingOptions, table_decoding_options
from kafkalog.lake.formats.targets import FORMATS, PARQUET, refuse_places, requested_place
from kafkalog.lake.table_options import TableRequest, table_options
from kafkalog.storage.files.uris import absolute_path
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.ingest_request import IngestRequest, ingest_options
from kafkalog.views.options.options import Mode
from kafkalog.views.options.topics_file import TopicRun, topic_runs, topics_file_option, worst_code

_EPILOG = f"""\
{shared.PATHS_MEANING}
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
  kafkalog export /data/kafka --output-dir /lake --topic orders --value-format confluent-avro
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
@table_decoding_options
@topics_file_option
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
    decoding: TableDecodingOptions,
    topics_file: str | None,
) -> int:
    """Write the records of topics to Parquet, Iceberg or Delta tables, each exactly once."""
    from kafkalog.command_line.export.run import ExportCommand, run_export

    if topics_file is not None:
        return _each_topic(topics_file)

    directory = absolute_path(output_dir) if output_dir else None
    place = requested_place(table_format, directory, tables)
    settings = ExportCommand(paths, place, mode, processes, show, decoding)
    now_ms = time.time_ns() // 1_000_000
    has_findings = run_export(settings, request, tables, now_ms=now_ms)
    return exit_code(has_findings=has_findings, fails=fail_on_findings)


def _each_topic(file: str) -> int:
    """Run the command for the topics of a file. A topic that fails leaves the others as they
    are."""
    from kafkalog.command_line.terminal import print_error, print_text
    from kafkalog.views.options.option_names import named_as_given

    context = click.get_current_context()

    def run_of(run: TopicRun) -> int:
        print_text(f"{run.name}:")
        try:
            return run.invoked(context)
        except OptionError as error:
            said = named_as_given(error, context.command)
            return print_error(said, ExitCode.WRONG_ARGUMENTS)
        except (KafkaLogError, OSError) as error:
            return print_error(str(error), ExitCode.UNREADABLE_INPUT)

    runs = topic_runs(file, context)
    refuse_places(file, runs, by_spark=False)
    return worst_code(map(run_of, runs))
