"""`kafkalog dump`: the contents of Kafka's files."""

from __future__ import annotations

import click

from kafkalog.command_line.dump.request import DumpRequest, bytes_given
from kafkalog.errors import RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared

_EPILOG = """\
\b
Examples:
  kafkalog dump /data/kafka/orders-0/00000000000000000000.log
  kafkalog dump --deep --topic orders --offsets 1000:1010 /data/kafka
  kafkalog dump --deep --key customer-17 --format json /data/kafka/orders-*
  kafkalog dump --deep --topic orders --output orders.parquet /data/kafka
  kafkalog dump --deep --from-time 2026-11-21T12:00:00Z --limit 5 /data/kafka/orders-0
  kafkalog dump --follow /data/kafka/orders-0

\b
PATH is a log directory, a partition directory, a file of one, or a glob of
these. The command reads .log, .index, .timeindex, .txnindex, .snapshot and
.checkpoint files (KRaft metadata), and the checkpoints of log directories and
partitions.

\b
Text output has the lines of kafka-dump-log. Keys and values are UTF-8; other
bytes, and control characters, are escapes such as \\x1b. JSON lines and CSV
lose nothing: keyBase64 and payloadBase64 have what is not UTF-8.
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@click.option("--deep", is_flag=True, help="Show records, not only batches.")
@click.option(
    "--payloads/--no-payloads",
    default=True,
    show_default=True,
    help="Include the keys and values of records.",
)
@click.option("--raw", is_flag=True, help="Do not decode the records of internal topics.")
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Show secrets in the records of internal topics and in Kafka Connect's configs.",
)
@click.option(
    "--format",
    "given_format",
    type=click.Choice(("text", "json", "csv", "parquet")),
    help="Default: by the ending of --output (.json, .jsonl, .csv, .parquet); text without an "
    "ending. parquet has the columns of views batches and records.",
)
@shared.output_option(
    "Write to FILE instead of stdout, replacing an older one when complete. FILE must not be one "
    "of the input files."
)
@shared.topic_option()
@shared.partition_option()
@shared.offsets_option(
    "Only these offsets, UNTIL not included, of all partitions or of one; repeatable for several "
    "partitions."
)
@shared.from_time_option("Only records of this time or later")
@shared.until_time_option("Only records before this time")
@click.option(
    "--key",
    "-k",
    metavar="KEY",
    callback=lambda _context, _option, key: bytes_given("--key", key),
    help="Only records with this key: text, hex:… or base64:….",
)
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), help="Stop after N batches or records."
)
@click.option("--follow", is_flag=True, help="Wait for new batches as logs grow, until Ctrl-C.")
@shared.fail_on_findings_option(default=False)
@shared.processes_option
@shared.settings_options(DumpRequest, "request")
def dump(request: DumpRequest, follow: bool, fail_on_findings: bool) -> ExitCode:
    """Show the batches or records of logs, and the contents of the files beside them.

    Damage is reported at its position, and reading continues after it. --key, --from-time and
    --until-time imply --deep.
    """
    is_parquet = request.output_format == "parquet"
    if is_parquet and (request.output is None or follow):
        raise RefusedOptionError("--format", "parquet needs --output FILE, and no --follow")
    if follow:
        from kafkalog.command_line.dump.follow import run_follow

        return run_follow(request, fail_on_findings=fail_on_findings)
    if is_parquet:
        from kafkalog.command_line.dump.parquet import run_parquet

        return run_parquet(request, fail_on_findings=fail_on_findings)
    from kafkalog.command_line.dump.run import run_dump

    return run_dump(request, fail_on_findings=fail_on_findings)
