"""Options that commands and jobs share, as click decorators: each has one name and one meaning.

The table of names is in CONTRIBUTING.md. A decorator's docstring names the parameter that the
function receives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import wraps
from inspect import signature
from typing import Any

import click

from kafkalog.coordination.groups.lag_question import MS_PER_MINUTE
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.views.options.options import Isolation, Mode
from kafkalog.views.options.parameter_types import (
    Duration,
    GivenPath,
    OffsetOfPartition,
    Offsets,
    Pattern,
    Time,
    Topic,
    TopicSetting,
)
from kafkalog.words import TIMES_ALLOWED

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

AS_OF_OFFSET = "--as-of-offset"
# Where PATH... comes from if it is not given.
LOG_DIRS_VARIABLE = "KAFKALOG_LOG_DIRS"
# What a PATH is, for the end of a help text.
PATHS_MEANING = """\
\b
PATH is a broker's log directory, a partition directory, a .log file, or a glob
of these: a local path, or a URI such as s3://bucket/path with credentials in the
environment. Without PATH, KAFKALOG_LOG_DIRS has them, separated by commas.
"""
# The meaning of PATH where ZooKeeper's files are read.
ZOOKEEPER_PATHS_MEANING = """\
\b
PATH is a ZooKeeper server's dataDir, its folder version-2, or a glob of these; give dataDir and
dataLogDir together. Of several members of an ensemble the newest counts.
"""


def settings_options(
    settings: Callable[..., Any], parameter: str, *options: Decorator
) -> Decorator:
    """Add options whose values the function receives as one object: what `settings`, a class or a
    function, makes of those that are among its parameters."""
    names = list(signature(settings).parameters)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_settings(**given: Any) -> Any:
            own = {name: given.pop(name) for name in names if name in given}
            return function(**given, **{parameter: settings(**own)})

        decorated: Callable[..., Any] = with_settings
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def paths_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument PATH..., received as `paths`."""
    return click.argument(
        "paths",
        metavar="PATH...",
        nargs=-1,
        required=True,
        type=GivenPath(),
        envvar=LOG_DIRS_VARIABLE,
    )(function)


def connect_topic_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --connect-topic, received as `connect_topics`."""
    return click.option(
        "--connect-topic",
        "connect_topics",
        metavar="TOPIC",
        multiple=True,
        help="A topic with the offsets of Kafka Connect's source connectors (offset.storage.topic) "
        "under another name than connect-offsets; repeatable.",
    )(function)


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument TABLE, received as `directory`, and --catalog and --table in its place."""
    add_table = click.option("--table", metavar="NAME", help="A table of the catalog.")
    add_catalog = catalog_option("An Iceberg catalog, instead of TABLE.")
    argument = click.argument("directory", metavar="TABLE", type=GivenPath(), required=False)
    return argument(add_catalog(add_table(function)))


def catalog_option(meaning: str) -> Decorator:
    """Add --catalog, received as `catalog`."""
    help_text = f"{meaning} Its NAME is in .pyiceberg.yaml or PYICEBERG_CATALOG__*."
    return click.option("--catalog", metavar="NAME", help=help_text)


def catalog_table(catalog: str | None, table: str | None) -> tuple[str, str] | None:
    """Return --catalog and --table where both are given. Raises click.UsageError for one alone."""
    if catalog is None and table is None:
        return None
    if catalog is None or table is None:
        raise click.UsageError("give --catalog and --table together")
    return catalog, table


def topic_option(
    meaning: str = "Only this topic; repeatable.", *, required: bool = False
) -> Decorator:
    """Add --topic, received as `topics`."""
    return click.option(
        "--topic",
        "-t",
        "topics",
        metavar="TOPIC",
        type=Topic(),
        multiple=True,
        required=required,
        help=meaning,
    )


def topic_pattern_option(
    meaning: str = "Only topics in whose name this regular expression is found.",
) -> Decorator:
    """Add --topic-pattern, received as `topic_pattern`."""
    return click.option("--topic-pattern", metavar="REGEX", type=Pattern(), help=meaning)


def partition_option(meaning: str = "Only this partition of each topic; repeatable.") -> Decorator:
    """Add --partition, received as `partitions`."""
    return click.option(
        "--partition",
        "-p",
        "partitions",
        metavar="N",
        type=click.IntRange(min=0),
        multiple=True,
        help=meaning,
    )


def group_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --group, received as `groups`."""
    return click.option(
        "--group", "groups", metavar="GROUP", multiple=True, help="Only this group; repeatable."
    )(function)


def group_pattern_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --group-pattern, received as `group_pattern`."""
    return click.option(
        "--group-pattern",
        metavar="REGEX",
        type=Pattern(),
        help="Only groups in whose name this regular expression is found.",
    )(function)


def time_option(*names_and_parameter: str, meaning: str) -> Decorator:
    """Add an option that is a time, by its names, received as the parameter in milliseconds since
    1970."""
    words = f"{meaning}. TIME: 2026-11-21T12:00:00Z for example, {TIMES_ALLOWED}."
    return click.option(*names_and_parameter, metavar="TIME", type=Time(), help=words)


def as_of_option(meaning: str) -> Decorator:
    """Add --as-of, received as `as_of` in milliseconds since 1970, None where it is not given."""
    return time_option("--as-of", "as_of", meaning=meaning)


def as_of_offset_option(meaning: str) -> Decorator:
    """Add --as-of-offset, received as `as_of_offsets`: a tuple of PartitionOffset."""
    return click.option(
        AS_OF_OFFSET,
        "as_of_offsets",
        metavar="[TOPIC-PARTITION=]OFFSET",
        type=OffsetOfPartition(),
        multiple=True,
        help=meaning,
    )


def from_time_option(meaning: str) -> Decorator:
    """Add --from-time, which is --since too, received as `from_ms`."""
    return time_option("--from-time", "--since", "from_ms", meaning=meaning)


def until_time_option(meaning: str) -> Decorator:
    """Add --until-time, received as `until_ms`."""
    return time_option("--until-time", "until_ms", meaning=meaning)


def max_future_option(meaning: str) -> Decorator:
    """Add --max-future, received as `max_future_ms`."""
    return click.option(
        "--max-future",
        "max_future_ms",
        metavar="DURATION",
        type=Duration(),
        default="1h",
        show_default=True,
        help=meaning,
    )


def offsets_option(meaning: str) -> Decorator:
    """Add --offsets, received as `offsets`: a tuple of GivenOffsets."""
    return click.option(
        "--offsets",
        "-o",
        metavar="[TOPIC-PARTITION=]FROM:UNTIL",
        type=Offsets(),
        multiple=True,
        help=meaning,
    )


def isolation_level_option(meaning: str, default: Isolation) -> Decorator:
    """Add --isolation-level, received as `isolation_level`."""
    return click.option(
        "--isolation-level",
        type=choice_of(Isolation),
        default=default.value,
        show_default=True,
        help=meaning,
    )


def max_transaction_timeout_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --max-transaction-timeout, received as `max_timeout_ms`."""
    return click.option(
        "--max-transaction-timeout",
        "max_timeout_ms",
        metavar="MINUTES",
        type=click.IntRange(min=0),
        default=15,
        show_default=True,
        callback=minutes_in_ms,
        help="The brokers' transaction.max.timeout.ms, in minutes: an open transaction that was "
        "written to within this time is not called hanging.",
    )(function)


def chroot_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --chroot, received as `chroot`."""
    return click.option(
        "--chroot",
        metavar="PATH",
        callback=lambda _context, _option, path: None if path is None else path.rstrip("/"),
        help="Where the cluster begins, if the ensemble has several; / for the root.",
    )(function)


def zookeeper_options(meaning: str, *, required: bool = False) -> Decorator:
    """Add --zookeeper and --chroot, received as `zookeeper` and `chroot`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        zookeeper = click.option(
            "--zookeeper",
            metavar="DATA_DIR",
            type=GivenPath(),
            multiple=True,
            required=required,
            help=f"{meaning}: dataDir, its folder version-2, or a glob; repeatable, as for "
            "dataLogDir. Of several members of an ensemble the newest counts.",
        )
        return zookeeper(chroot_option(function))

    return decorate


def config_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ConfigSources, received as `configs`."""
    server = click.option(
        "--server-properties",
        metavar="FILE",
        help="The broker's server.properties; settings that it does not name have Kafka's default.",
    )
    topics = click.option(
        "--topic-config",
        metavar="FILE",
        help='Settings of single topics as JSON: {"orders": {"retention.ms": "3600000"}}; null for '
        "none. They win over __cluster_metadata and ZooKeeper.",
    )
    zookeeper = zookeeper_options(
        "Data directories of ZooKeeper's servers, which hold the settings of topics"
    )
    return settings_options(ConfigSources, "configs", server, topics, zookeeper)(function)


def set_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --set, received as `settings`: settings of topics that are tried."""
    return click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        type=TopicSetting(),
        multiple=True,
        callback=lambda context, parameter, given: dict(given),
        help="Plan with this setting of the topics instead of theirs, such as retention.ms=1d or "
        "retention.bytes=10GiB; repeatable. Topics of brokers keep theirs unless --topic names "
        "them.",
    )(function)


def by_option(kinds: Sequence[str], meaning: str) -> Decorator:
    """Add --by, received as `by`: the kinds of rows, the first by default."""
    return click.option(
        "--by", type=click.Choice(kinds), default=kinds[0], show_default=True, help=meaning
    )


def index_interval_option(meaning: str) -> Decorator:
    """Add --index-interval-bytes, received as `index_interval_bytes`."""
    return click.option(
        "--index-interval-bytes",
        metavar="N",
        type=click.IntRange(min=0),
        default=INDEX_INTERVAL_BYTES,
        show_default=True,
        help=f"index.interval.bytes of {meaning}.",
    )


def new_log_dir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --to, received as `target`."""
    return click.option(
        "--to",
        "target",
        metavar="DIR",
        required=True,
        type=GivenPath(),
        help="The new log directory; it must not exist.",
    )(function)


def show_keys_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --show-keys, received as `show_keys`."""
    return click.option(
        "--show-keys",
        is_flag=True,
        help="Show the most frequent keys instead of their hashes: whoever has the page can read "
        "them.",
    )(function)


def output_dir_option(
    meaning: str,
    *,
    default: str | None = None,
    path: GivenPath | None = None,
    required: bool = True,
) -> Decorator:
    """Add --output-dir, received as `output_dir`; where it has no default it is required, or if it
    is not `required`, empty without the option."""
    # click takes default=None for a default, which a required option then has.
    given: dict[str, Any] = {"default": default, "show_default": True}
    return click.option(
        "--output-dir",
        metavar="DIR",
        type=path or GivenPath(),
        help=meaning,
        callback=lambda context, parameter, value: value or "",
        **({"required": required} if default is None else given),
    )


def format_option(formats: Sequence[str], meaning: str, *, default: str | None) -> Decorator:
    """Add --format, received as `table_format`."""
    return click.option(
        "--format",
        "table_format",
        type=click.Choice(formats),
        default=default,
        show_default=default is not None,
        help=meaning,
    )


def output_option(meaning: str) -> Decorator:
    """Add --output, received as `output`, None without it."""
    path = click.Path(dir_okay=False)
    return click.option("--output", metavar="FILE", type=path, help=meaning)


def mode_option(default: Mode) -> Decorator:
    """Add --mode, received as `mode`."""
    return click.option(
        "--mode",
        type=choice_of(Mode),
        default=default.value,
        show_default=True,
        help="What to do about damage: FAILFAST stops at it, PERMISSIVE reads what is intact and "
        "reports the rest, DROPMALFORMED reads what is intact.",
    )


def suppress_option(meaning: str) -> Decorator:
    """Add --suppress, received as `suppress`: a file of identifiers."""
    return click.option("--suppress", metavar="FILE", type=GivenPath(), help=meaning)


def processes_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --processes, received as `processes`."""
    return click.option(
        "--processes",
        metavar="N",
        type=click.IntRange(min=1),
        show_default="all cores, fewer for few bytes",
        help="How many processes read.",
    )(function)


def show_option(noun: str, *, default: int) -> Decorator:
    """Add --show, received as `show`."""
    return click.option(
        "--show",
        metavar="N",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help=f"Print at most N {noun}.",
    )


def fail_on_findings_option(*, default: bool) -> Decorator:
    """Add --fail-on-findings/--no-fail-on-findings, received as `fail_on_findings`."""
    why = "" if default else ", which a scheduler would take for a failure and retry"
    return click.option(
        "--fail-on-findings/--no-fail-on-findings",
        default=default,
        show_default=True,
        help=f"Exit with 1 if there are findings{why}.",
    )


def minutes_in_ms(_context: click.Context, _option: click.Parameter, minutes: int) -> int:
    """Return minutes that an option is in as milliseconds."""
    return minutes * MS_PER_MINUTE


def choice_of(names: type[Enum]) -> click.Choice[str]:
    """Return the type of an option whose values are those of an enum."""
    return click.Choice([each.value for each in names])
