"""Copy the records of topics into a table, each exactly once, from where the last run ended.

Tables: ingested_records, a row per record; ingest_manifest, which offsets each run read.
"""

from __future__ import annotations

import sys
import time

import click

from kafkalog.lake.decoding.decoding_requests import (
    TableDecodingOptions,
    decoding_requests,
    need_avro,
    suppression_of,
    table_decoding_options,
)
from kafkalog.lake.table_options import TableRequest, table_options
from kafkalog.spark.jobs.job import JobSettings, ended, job_command
from kafkalog.views.options.ingest_request import IngestRequest, ingest_options
from kafkalog.views.options.options import Mode
from kafkalog.views.options.topics_file import TopicRun, topic_runs, topics_file_option, worst_code

_FORMATS = ("key_format", "value_format")
_EXAMPLE = """\
/var/lib/kafka/data --output-dir /lake/kafka \\
    --starting-offsets-out /lake/kafka/starting_offsets.json
  python jobs/ingest_topics.py /var/lib/kafka/data --output-dir /lake/kafka \\
    --from-time 2026-11-01T00:00:00Z --until-time 2026-11-02T00:00:00Z
  python jobs/ingest_topics.py /var/lib/kafka/data --format iceberg --catalog lake
The first adds what is new since its last run; the second writes the records of a day once more; the
third adds to a table of an Iceberg catalog."""


# Rows and offsets are written in one commit of the table.
@job_command(
    "ingest-topics",
    _EXAMPLE,
    mode=Mode.FAILFAST,
    formats=("delta", "iceberg", "parquet"),
    needs_output_dir=False,
)
@ingest_options
@table_options
@table_decoding_options
@topics_file_option
def main(
    job: JobSettings,
    request: IngestRequest,
    tables: TableRequest,
    decoding: TableDecodingOptions,
    topics_file: str | None,
) -> int:
    """Write the records of topics to a table, each exactly once; a run adds what is new.
    Findings are records that were deleted before they were read, logs other than those that were
    read before, and records with a time in the future."""
    from kafkalog.lake.export_plan import starting_offsets
    from kafkalog.lake.export_report import TopicRow, topic_rows, verdict
    from kafkalog.lake.formats.dead_letters import refuse_dead_letters
    from kafkalog.lake.formats.local_export import ExportSettings
    from kafkalog.lake.formats.targets import requested_place
    from kafkalog.spark.jobs.tables.runs import announced_logs, is_small
    from kafkalog.spark.lake.spark_export import export_tables
    from kafkalog.spark.session import job_session
    from kafkalog.storage.files.output_files import given_file
    from kafkalog.views.planning.state_sources import found_sources

    if topics_file is not None:
        return _each_topic(topics_file)
    place = requested_place(job.table_format, job.output_dir or None, tables)
    inputs, logs = announced_logs(job, chosen=request.choice.chosen)
    now_ms = time.time_ns() // 1_000_000
    options = request.options(inputs, job.mode, place.output_dir, now_ms=now_ms)
    suppress = request.suppress
    requests = decoding_requests(
        decoding, options.paths, job.mode, has_suppression=suppress is not None
    )
    suppression = suppression_of(suppress, decoding, options.paths)
    settings = ExportSettings(options, request, tables, place, decoding, suppression)
    refuse_dead_letters(decoding.dead_letters, place, is_decoding=bool(requests))
    sources = found_sources(options)
    with job_session(
        "kafkalog ingest-topics",
        with_delta=job.is_delta,
        with_avro=need_avro(requests),
        # Rows pass through the JVM only to be decoded.
        compiles_less=not requests or is_small(request.choice.chosen(logs)),
        has_own_progress=True,
    ) as spark:
        runs, lines = export_tables(spark, settings, sources, requests)
        rows = topic_rows(runs)
        if rows and job.show:
            spark.createDataFrame(rows, list(TopicRow._fields)).show(job.show)
        if request.starting_offsets_out:
            with given_file("--starting-offsets-out", request.starting_offsets_out) as file:
                file.write(starting_offsets(runs).encode())
    print(*verdict(runs), *lines, sep="\n")
    return job.exit_code(has_findings=any(run.has_findings for run in runs))


def _each_topic(file: str) -> int:
    """Run the job for the topics of a file, all in one session. A topic that fails leaves the
    others as they are."""
    from kafkalog.lake.formats.targets import refuse_places
    from kafkalog.spark.session import job_session

    context = click.get_current_context()
    runs = topic_runs(file, context)
    refuse_places(file, runs, by_spark=True)
    formats = {run.parameters["table_format"] for run in runs}
    decoded = {run.parameters[name] or "" for run in runs for name in _FORMATS}

    def run_of(run: TopicRun) -> int:
        print(f"{run.name}:")
        return ended(lambda: run.invoked(context), context.command)

    with job_session(
        "kafkalog ingest-topics",
        with_delta="delta" in formats,
        with_avro=any(each.endswith("avro") for each in decoded),
        has_own_progress=True,
    ):
        return worst_code(map(run_of, runs))


if __name__ == "__main__":
    sys.exit(main())
