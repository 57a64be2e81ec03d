"""`kafkalog dump`: what stands in Kafka's files."""

from __future__ import annotations

import click

from kafkalog.command_line.inputs import partition_options, time_option
from kafkalog.command_line.parallel import processes_option
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode

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
A PATH is a log directory, a partition directory, a file of one, or a glob of
these. Known are .log, .index, .timeindex, .txnindex, .snapshot, .checkpoint
(of KRaft's metadata) and the checkpoints of log directories and partitions.

\b
Text has kafka-dump-log's lines. A key or a value that is UTF-8 stands as it is,
what is not, and what a terminal could take for a command, as \\x1b. JSON lines
and CSV lose nothing: what is no UTF-8 is in base64, in keyBase64, payloadBase64.
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option("--deep", is_flag=True, help="Records too, not batches alone.")
@click.option("--payloads/--no-payloads", default=True, help="Of records, keys and values too.")
@click.option("--raw", is_flag=True, help="Do not decode the records of internal topics.")
@click.option("--show-secrets", is_flag=True, help="Also what schemas of internal topics hide.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(("text", "json", "csv", "parquet")),
    help="text, unless --output ends with .json, .jsonl, .csv or .parquet; parquet has the columns "
    "of views batches and records.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write to this file instead of stdout; it replaces an older one when it is complete. A "
    "file that is read is refused.",
)
@partition_options
@click.option("--offsets", metavar="FROM:UNTIL", help="These offsets, UNTIL not included.")
@time_option(["--from-time"], "from_ms", "Records of this time or later")
@time_option(["--until-time"], "until_ms", "Records before this time")
@click.option("--key", metavar="KEY", help="Records with this key: text, hex:… or base64:….")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="So many, then stop.")
@click.option("--follow", is_flag=True, help="Go on as logs grow, until Ctrl-C.")
@click.option("--fail-on-findings", is_flag=True, help="Exit with 1 if there is damage.")
@processes_option
def dump(
    paths: tuple[str, ...],
    deep: bool,
    payloads: bool,
    raw: bool,
    show_secrets: bool,
    output_format: str | None,
    output: str | None,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    offsets: str | None,
    from_ms: int | None,
    until_ms: int | None,
    key: str | None,
    limit: int | None,
    follow: bool,
    fail_on_findings: bool,
    processes: int | None,
) -> ExitCode:
    """Show the batches of logs, or the records with --deep, and what stands in the files beside.

    Damage is told at its place, and reading goes on behind it. --key and times imply --deep.
    """
    from kafkalog.command_line.dump.request import (
        DumpRequest,
        bytes_given,
        format_asked,
        offsets_asked,
        times_asked,
    )

    first_offset, end_offset = offsets_asked(offsets)
    timestamps = times_asked(from_ms, until_ms)
    given_format = format_asked(output_format, output)
    request = DumpRequest(
        paths=paths,
        topics=topics,
        partitions=partitions,
        first_offset=first_offset,
        end_offset=end_offset,
        timestamps=timestamps,
        key=bytes_given("--key", key),
        output_format=given_format,
        is_deep=deep or key is not None or timestamps is not None,
        payloads=payloads,
        decodes=not raw,
        show_secrets=show_secrets,
        limit=limit,
        processes=processes,
        output=output,
    )
    if given_format == "parquet" and (output is None or follow):
        raise OptionError("--format", "parquet", "with --output FILE, and not with --follow")
    if follow:
        from kafkalog.command_line.dump.follow import run_follow

        return run_follow(request, fail_on_findings=fail_on_findings)
    if given_format == "parquet":
        from kafkalog.command_line.dump.parquet import run_parquet

        return run_parquet(request, fail_on_findings=fail_on_findings)
    from kafkalog.command_line.dump.run import run_dump

    return run_dump(request, fail_on_findings=fail_on_findings)
