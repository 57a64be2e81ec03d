"""Write the latest committed value of each key to a table, from where the last run ended.

Tables: state, a row per key; state_partitions; state_decoded, with --key- or --value-format.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkalog.lake.decoding.decoding_requests import (
    DecodingOptions,
    decoding_options,
    decoding_requests,
    need_avro,
)
from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options.options import Mode
from kafkalog.views.options.state_options import StateRequest, state_run_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

    from kafkalog.views.planning.state_positions import StateRun
    from kafkalog.views.planning.table_positions import StateSource

_EXAMPLE = """\
/var/lib/kafka/data --topic orders --output-dir /tmp/state
  python jobs/reconstruct_state.py /var/lib/kafka/data --topic orders --output-dir /tmp/noon \\
    --as-of 2026-11-21T12:00:00Z
The first, run again, reads what is new since; the second is the state at that time."""


@job_command("reconstruct-state", _EXAMPLE, mode=Mode.FAILFAST)
@state_run_options
@decoding_options
def main(job: JobSettings, request: StateRequest, decoding: DecodingOptions) -> ExitCode:
    """Write the latest committed value of each key; a second run reads what is new since the first.
    Findings are partitions whose cleaner may have removed values of the requested time, and records
    with a time in the future."""
    from pyspark.sql import Observation

    from kafkalog.questions.state import state_doubts, state_words
    from kafkalog.spark.decoding import decoded_frames as decoded
    from kafkalog.spark.decoding.format_choices import format_choices
    from kafkalog.spark.jobs.tables import state_by_tasks, state_table
    from kafkalog.spark.jobs.tables.runs import announced_logs, is_small, job_run
    from kafkalog.spark.jobs.tables.source_frames import sources_frame
    from kafkalog.views.planning.state_sources import state_sources

    inputs, logs = announced_logs(job, chosen=request.choice.chosen)
    requests = decoding_requests(decoding, job.paths, job.mode)
    options = request.options(inputs, job.mode, now_ms=time.time_ns() // 1_000_000)
    sources = state_sources(options)
    with job_run(
        *(job, inputs, logs),
        with_avro=need_avro(requests),
        compiles_less=not requests or is_small(request.choice.chosen(logs)),
    ) as run:
        spark, paths = run.spark, run.paths
        choices = format_choices(spark, requests)
        version = state_by_tasks.version_of(spark, job)
        planned = state_table.planned_state_run(spark, job, request, sources)
        if state_by_tasks.why_by_spark(spark, job, planned) is None:
            done = state_by_tasks.write_state(spark, job, inputs, planned, sources, version)
            files, keyless_records = done.files, done.keyless
        else:
            keyless = Observation()
            rows = build(spark, job, planned, sources, keyless)
            state_table.write_rows(rows, job, inputs, planned)
            # An observation without an action would wait for ever.
            keyless_records = keyless.get[state_table.KEYLESS] if planned.starts else 0
            files = None
        paths.append(os.path.join(job.output_dir, "state"))
        paths.append(state_table.write_partitions(spark, job, inputs, planned, sources))
        totals = state_table.table_totals(spark, job, planned, files)
        if choices or job.show:
            table = state_table.read_state(spark, job)
            if choices:
                own = state_table.in_partitions(table, sources_frame(spark, sources))
                table = decoded.with_decoded_columns(own, choices)
                paths.append(state_table.write_decoded(table, job))
            if job.show:
                state_table.newest(table).show(job.show, truncate=60)
    doubts = state_doubts(sources)
    words = state_words(totals, planned, keyless_records, sources)
    return run.ended(words, has_findings=bool(doubts))


def build(
    spark: SparkSession,
    job: JobSettings,
    run: StateRun,
    sources: Sequence[StateSource],
    keyless: Observation | None = None,
) -> DataFrame:
    """Return the latest record of each key in the offsets to read, deletes included; `keyless`
    counts the records without a key."""
    from kafkalog.lake.state.state_rows import STATE_RECORD_COLUMNS
    from kafkalog.spark.jobs.tables import state_table
    from kafkalog.spark.jobs.tables.source_frames import sources_frame, state_records

    isolation_level = run.positions.isolation_level
    records = state_records(spark, job, isolation_level, run, sources, STATE_RECORD_COLUMNS)
    if keyless is not None:
        records = state_table.with_keyless_counted(records, keyless)
    return state_table.state(state_table.latest_by_key(records), sources_frame(spark, sources))


if __name__ == "__main__":
    sys.exit(main())
