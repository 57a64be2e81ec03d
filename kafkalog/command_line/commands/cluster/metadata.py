"""`kafkalog metadata`: a cluster's topics, configs and ACLs as of any moment, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.metadata.moments import MomentType, moment_of, moments_in_order
from kafkalog.command_line.terminal import table_format_option
from kafkalog.coordination.metadata.image import Moment
from kafkalog.errors import ConflictingOptionsError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import PartitionOffset

_KINDS = (
    *("topic", "partition", "broker", "controller", "config", "acl", "user", "quota"),
    *("feature", "voter", "token", "record", "record-hour"),
)
_USAGE = _KINDS[-2:]
_FEATURE = "feature"

_EPILOG = """\
\b
PATH is the log directory, or metadata.log.dir, of a controller or a broker, the
directory __cluster_metadata-0 in it, or a glob of these: a local path, or a URI
such as s3://bucket/path with credentials in the environment.

Every node of a KRaft cluster has a copy of the metadata. Of several, the command reads the best:
the one with the highest last epoch, then the longest log. It starts with the last snapshot before
the requested moment, and replays the log. What only one node has at the end of its log may not have
been committed. Secrets are hidden: passwords and keys in configs, and the keys of SCRAM users.

Of a cluster without KRaft, PATH is the data directory of a server of ZooKeeper; of several members
of an ensemble the newest counts. --by topic, partition, broker, config, acl, user and quota have
the same columns; what ZooKeeper does not have is empty. --as-of reaches as far back as its logs.
--diff shows partitions, with what caused a change of leader.

\b
Examples:
  kafkalog metadata /var/lib/kafka/metadata
  kafkalog metadata /var/lib/kafka/data --by partition --topic orders
  kafkalog metadata '/backup/controller-*' --by acl --as-of 2026-11-21T12:00:00Z
  kafkalog metadata /var/lib/kafka/data --diff 2026-11-21T12:00:00Z end
  kafkalog metadata /var/lib/kafka/data --commands --topic orders
  kafkalog metadata /var/lib/kafka/data --by feature --kafka 4.1
  kafkalog metadata /var/lib/kafka/data --by record
  kafkalog metadata /var/lib/kafka/data --by partition --diff start end | grep 'leader '
  kafkalog metadata /var/lib/zookeeper --by partition
  kafkalog metadata /var/lib/zookeeper --by partition --diff start end
"""


def _short_for_by(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --topics, --brokers and so on, each short for --by and its singular."""
    for kind in _KINDS[: -len(_USAGE)]:
        command = click.option(f"--{kind}s", "by", flag_value=kind, hidden=True)(command)
    return command


@click.command(epilog=_EPILOG)
@shared.paths_argument
@click.option(
    "--by",
    type=click.Choice(_KINDS),
    help="Print a row per topic, the default, per partition and so on; with --diff only changes of "
    "these. --topics, --partitions and so on are short for it. record and record-hour show what "
    "fills the log: the records by type and broker, and in each hour.",
)
@_short_for_by
@shared.topic_option()
@shared.as_of_option("The state at this time instead of the end")
@shared.as_of_offset_option("The state before this offset, -1 for the end.")
@click.option(
    "--diff",
    nargs=2,
    metavar="FROM TO",
    type=MomentType(),
    callback=moments_in_order,
    help="List what changed between two moments, when, and in which record. A moment is a time, an "
    "offset of the metadata, start or end.",
)
@click.option(
    "--commands",
    is_flag=True,
    help="Print command lines of Kafka's tools that make topics, configs, quotas and ACLs again.",
)
@click.option(
    "--kafka",
    metavar="VERSION",
    help="With --by feature: what this version of Kafka, such as 4.1, refuses of the cluster.",
)
@shared.chroot_option
@click.option("--show-secrets", is_flag=True, help="Show secrets.")
@table_format_option
def metadata(
    paths: Sequence[str],
    by: str | None,
    topics: Sequence[str],
    as_of: int | None,
    as_of_offsets: Sequence[PartitionOffset],
    diff: tuple[Moment, Moment] | None,
    commands: bool,
    kafka: str | None,
    chroot: str | None,
    show_secrets: bool,
    table_format: str,
) -> ExitCode:
    """Show a cluster's topics, configs, ACLs and the like as of any moment, without a broker."""
    from kafkalog.command_line.metadata.cluster_tables import Request, cluster_columns
    from kafkalog.command_line.metadata.zookeeper_tables import ZooKeeperRequest
    from kafkalog.zookeeper.data_dir import is_of_zookeeper

    if commands and (by is not None or table_format != "text"):
        raise ConflictingOptionsError("--commands", "--format" if by is None else "--by")
    if diff and (commands or as_of is not None or as_of_offsets):
        other = "--as-of" if as_of is not None else shared.AS_OF_OFFSET
        raise ConflictingOptionsError("--diff", "--commands" if commands else other)
    if kafka is not None:
        _refuse_beside_kafka(by, has_diff=diff is not None, has_commands=commands)
    until = moment_of(as_of, as_of_offsets)
    if by in _USAGE:
        return _write_usage(paths, by, topics, until, table_format, has_diff=diff is not None)
    if not commands and kafka is None:
        cluster_columns(by, table_format, is_diff=diff is not None)
    if is_of_zookeeper(paths):
        if as_of_offsets or kafka is not None:
            option = shared.AS_OF_OFFSET if as_of_offsets else "--kafka"
            raise RefusedOptionError(option, "needs __cluster_metadata, not files of ZooKeeper")
        older = ZooKeeperRequest(
            tuple(paths), chroot, by, tuple(topics), as_of, show_secrets, table_format
        )
        if diff:
            return older.write_changes(*diff)
        return older.write_commands() if commands else older.write_rows()
    if chroot is not None:
        raise RefusedOptionError("--chroot", "needs data directories of ZooKeeper")
    request = Request(tuple(paths), by, tuple(topics), show_secrets, table_format)
    if kafka is not None:
        from kafkalog.command_line.metadata.version_tables import VersionRequest

        return VersionRequest(request, kafka).write(until)
    if diff:
        return request.write_changes(*diff)
    return request.write_commands(until) if commands else request.write_rows(until)


def _write_usage(
    paths: Sequence[str],
    by: str,
    topics: Sequence[str],
    until: Moment,
    table_format: str,
    *,
    has_diff: bool,
) -> ExitCode:
    """Print what fills the log of the metadata."""
    from kafkalog.command_line.metadata.cluster_tables import write_usage

    if topics or has_diff:
        raise ConflictingOptionsError(f"--by {by}", "--topic" if topics else "--diff")
    return write_usage(paths, by, until, table_format)


def _refuse_beside_kafka(by: str | None, *, has_diff: bool, has_commands: bool) -> None:
    if has_diff or has_commands:
        raise ConflictingOptionsError("--kafka", "--diff" if has_diff else "--commands")
    if by != _FEATURE:
        raise RefusedOptionError("--kafka", f"needs --by {_FEATURE}")
