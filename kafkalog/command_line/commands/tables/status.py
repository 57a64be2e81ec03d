"""`kafkalog status`: what a table has of each partition, what waits in the logs, and why."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace

import click

from kafkalog.command_line.answer_output import (
    exit_code,
    shown_rows_option,
    write_findings,
    write_verdict,
)
from kafkalog.command_line.terminal import print_note, printed_columns, table_format_option
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.words import counted, time_text

_EPILOG = f"""\
TABLE is the directory of a table that `kafkalog export` or job ingest-topics has written, of any
format, or of the Delta table of job reconstruct-state. Nothing is written.

{shared.PATHS_MEANING}
NEXT-OFFSET is where the table ends, WAITING-OFFSETS is how many offsets the log has from there on,
NEXT-RUN-OFFSETS how many of them a run would read now. A partition can have several reasons: STATUS
is the first of these, DETAIL has all.

\b
STATUS, findings first:
  gone              the table has the partition, the log directories do not
  recreated         the topic was deleted and created again
  truncated         the log ends before the table does
  rewritten         the log was truncated and written again
  gap               records were deleted before they were read
  damage            bytes of what waits are damaged
  missing           offsets of what waits are in no segment
  future_time       the next record's time is ahead of the clock, or of the records after it
  open_transaction  what waits is behind the last stable offset
  high_watermark    what waits is above the high watermark
  until_time        the range of a run with --until-time, or of the last run, ends before it
  not_read          no run has read the partition
  new               the next run reads what waits
  complete          nothing waits

\b
Examples:
  kafkalog status /lake/kafka/ingested_records /var/lib/kafka/data
  kafkalog status /lake/tables/kafkalog/ingested_records /var/lib/kafka/data --until-time today
  kafkalog status --catalog lake --table raw.records /var/lib/kafka/data --format json
"""


@click.command(epilog=_EPILOG)
@click.argument("places", metavar="TABLE PATH...", nargs=-1, type=GivenPath())
@shared.catalog_option("An Iceberg catalog, instead of TABLE.")
@click.option("--table", metavar="NAME", help="A table of the catalog.")
@shared.topic_pattern_option()
@shared.topic_option(
    "Only this topic; repeatable. '*' is all; without --topic those that the table has."
)
@click.option(
    "--stop-at",
    type=click.Choice([rule.value for rule in EndRule]),
    default=EndRule.HIGH_WATERMARK.value,
    show_default=True,
    help="Where a log ends for a run, as with `kafkalog export`.",
)
@shared.until_time_option("Show what a run with this --until-time would leave")
@shared.max_future_option(
    "A record whose time is further ahead of this machine's clock than this, or of most of the "
    "batches that follow it, is named."
)
@click.option("--deep", is_flag=True, help="Check the checksums of what waits, too.")
@shown_rows_option("partitions")
@shared.fail_on_findings_option(default=True)
@table_format_option
def status(
    places: tuple[str, ...],
    catalog: str | None,
    table: str | None,
    topics: tuple[str, ...],
    topic_pattern: str | None,
    stop_at: str,
    until_ms: int | None,
    max_future_ms: int,
    deep: bool,
    show: int,
    fail_on_findings: bool,
    table_format: str,
) -> ExitCode:
    """Compare a table with the logs: what each partition has, what waits, and why."""
    from kafkalog.lake.formats.recorded_table import recorded_positions
    from kafkalog.storage.reading.offset_ranges import TimeRule
    from kafkalog.views.options.offset_options import limited_by_time
    from kafkalog.views.options.options import Mode
    from kafkalog.views.options.source_options import SourceRequest
    from kafkalog.views.planning.ingest_status import (
        PartitionStatus,
        StatusRequest,
        requested_statuses,
        verdict,
    )

    printed_columns(PartitionStatus._fields)
    directory, paths = _places(places, catalog, table)
    recorded = recorded_positions(directory, catalog, table)
    source = SourceRequest((), None, recorded.isolation_level, stop_at)
    rule = TimeRule(time.time_ns() // 1_000_000, max_future_ms, passes_over=True)
    options = source.of_records(paths, Mode.PERMISSIVE.value).by_time_rule(rule)
    limits = limited_by_time(options.offsets, "", None, "--until-time", until_ms)
    options = replace(options, offsets=limits)
    request = StatusRequest(topics, topic_pattern, is_deep=deep)
    rows, others = requested_statuses(recorded, options, request)
    write_findings(
        PartitionStatus._fields,
        rows,
        table_format,
        show=show,
        noun="partition",
        texts={"next_time_ms": time_text},
    )
    if others:
        print_note(f"the logs have {counted(others, 'topic')} more: --topic '*' shows all")
    has_findings = any(row.is_finding for row in rows)
    write_verdict(verdict(rows, is_deep=deep), table_format, has_findings=has_findings)
    return exit_code(has_findings=has_findings, fails=fail_on_findings)


def _places(
    places: tuple[str, ...], catalog: str | None, table: str | None
) -> tuple[str | None, Sequence[str]]:
    """Return the directory of the table, None with a catalog, and the paths of the logs."""
    directory, paths = None, places
    if catalog is None and table is None:
        directory, paths = (places[0], places[1:]) if places else (None, ())
    if not paths:
        paths = tuple(filter(None, os.environ.get(shared.LOG_DIRS_VARIABLE, "").split(",")))
    if not paths:
        raise click.UsageError("give TABLE, or --catalog and --table, and then a PATH of the logs")
    return directory, paths
