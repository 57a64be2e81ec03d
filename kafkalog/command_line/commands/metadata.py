"""`kafkalog metadata`: a cluster's topics, configs and ACLs as of any moment, and what changed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kafkalog.command_line.terminal import table_format_option
from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import AS_OF_OFFSET
from kafkalog.views.options.parameter_types import GivenOffsets, PartitionOffset

_KINDS = (
    *("topic", "partition", "broker", "controller", "config", "acl", "user", "quota"),
    *("feature", "voter", "token"),
)

_EPILOG = """\
\b
PATH is the log directory, or metadata.log.dir, of a controller or a broker, the
directory __cluster_metadata-0 in it, or a glob of these: a local path, or a URI
such as s3://bucket/path with credentials in the environment.

Every node of a KRaft cluster has a copy of the metadata. Of several, the command reads the best:
the one with the highest last epoch, then the longest log. It starts with the last snapshot before
the requested moment, and replays the log. What only one node has at the end of its log may not have
been committed. Secrets are hidden: passwords and keys in configs, and the keys of SCRAM users.

\b
Examples:
  kafkalog metadata /var/lib/kafka/metadata
  kafkalog metadata /var/lib/kafka/data --by partition --topic orders
  kafkalog metadata '/backup/controller-*' --by acl --as-of 2026-11-21T12:00:00Z
  kafkalog metadata /var/lib/kafka/data --diff --from-time 2026-11-21T12:00:00Z
  kafkalog metadata /var/lib/kafka/data --commands --topic orders
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@click.option(
    "--by",
    type=click.Choice(_KINDS),
    help="Print a row per topic, the default, per partition and so on; with --diff only changes of "
    "these.",
)
@shared.topic_option()
@shared.as_of_option("The state at this time instead of the end")
@shared.as_of_offset_option("The state before this offset, -1 for the end.")
@click.option(
    "--diff", "shows", flag_value="changes", help="List what changed, when, and in which record."
)
@shared.from_time_option("With --diff: changes from this time on")
@shared.until_time_option("With --diff: changes before this time")
@shared.offsets_option("With --diff: changes by the records with these offsets.")
@click.option(
    "--commands",
    "shows",
    flag_value="commands",
    help="Print command lines of Kafka's tools that make topics, configs, quotas and ACLs again.",
)
@click.option("--show-secrets", is_flag=True, help="Show secrets.")
@table_format_option
def metadata(
    paths: Sequence[str],
    by: str | None,
    topics: Sequence[str],
    as_of: int | None,
    as_of_offsets: Sequence[PartitionOffset],
    shows: str | None,
    from_ms: int | None,
    until_ms: int | None,
    offsets: Sequence[GivenOffsets],
    show_secrets: bool,
    table_format: str,
) -> ExitCode:
    """Show a cluster's topics, configs, ACLs and the like as of any moment, without a broker."""
    from kafkalog.command_line.metadata.cluster_tables import Request
    from kafkalog.command_line.metadata.moments import moment_of, range_of

    is_diff = shows == "changes"
    if shows == "commands" and (by is not None or table_format != "text"):
        raise ConflictingOptionsError("--commands", "--format" if by is None else "--by")
    if is_diff and (as_of is not None or as_of_offsets):
        raise ConflictingOptionsError("--diff", "--as-of" if as_of is not None else AS_OF_OFFSET)
    until = moment_of(as_of, as_of_offsets)
    first, last = range_of(from_ms, until_ms, offsets)
    if not is_diff and (first, last) != range_of(None, None, ()):
        raise OptionError("--from-time, --until-time or --offsets", "a range", "given with --diff")
    request = Request(tuple(paths), by, tuple(topics), show_secrets, table_format)
    if is_diff:
        return request.write_changes(first, last)
    return request.write_commands(until) if shows else request.write_rows(until)
