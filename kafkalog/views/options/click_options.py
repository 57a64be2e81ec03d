"""Options that commands and jobs share, as click decorators: each has one name and one meaning.

The table of names is in CONTRIBUTING.md. A decorator's docstring names the parameter that the
function receives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from enum import Enum
from functools import wraps
from typing import Any, NamedTuple

import click

from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.views.options.options import Isolation, Mode, Shutdown
from kafkalog.words import (
    DURATIONS_ALLOWED,
    TIMES_ALLOWED,
    given_duration_ms,
    given_time_ms,
    printable_lines,
)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

# What a PATH is, for the end of a help text.
PATHS_MEANING = """\
\b
PATH is a broker's log directory, a partition directory, a .log file, or a glob
of these: a local path, or a URI such as s3://bucket/path with credentials in the
environment.
"""
_OFFSETS = re.compile(
    r"(?:(?P<place>[^=]*)=)?(?P<first>[0-9]{0,19})(?P<colon>:?)(?P<end>[0-9]{0,19})"
)


class GivenOffsets(NamedTuple):
    """The value of `--offsets`: from `first` up to, not including, `end`, None for either side that
    is empty; of one partition, or of every partition where `topic_partition` is None."""

    topic_partition: TopicPartition | None
    first: int | None
    end: int | None


class Time(click.ParamType[int]):
    """A time, in milliseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return given_time_ms(value, _warn)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Duration(click.ParamType[int]):
    """A duration such as 30s, 5m, 2h or 1d, in milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        length_ms = given_duration_ms(value)
        if not length_ms:
            self.fail(f"{value!r} is not a duration: {DURATIONS_ALLOWED}", param, ctx)
        return length_ms


class GivenPath(click.Path):
    """A path that is not empty: that would mean the current directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("got an empty path, such as of a variable that is not set", param, ctx)
        return super().convert(value, param, ctx)


class Pattern(click.ParamType[str]):
    """A regular expression, as text."""

    name = "regex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            re.compile(value)
        except re.error as error:
            self.fail(f"{value!r} is not a valid regular expression: {error}", param, ctx)
        return str(value)


class Topic(click.ParamType[str]):
    """A topic by its exact name."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value or "," in value:
            self.fail(f"{value!r} is not the name of a topic: repeat --topic for each", param, ctx)
        return str(value)


class Offsets(click.ParamType[GivenOffsets]):
    """`FROM:UNTIL`, `FROM:`, `:UNTIL` or one offset, after `TOPIC-PARTITION=` or alone."""

    name = "offsets"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenOffsets:
        if isinstance(value, GivenOffsets):
            return value
        found = _OFFSETS.fullmatch(value)
        is_whole = found is not None and bool(found["place"] and found["colon"])
        if found is None or not (found["first"] or found["end"] or is_whole):
            allowed = "FROM:UNTIL, FROM:, :UNTIL or one offset, or TOPIC-PARTITION= and one of them"
            self.fail(f"{value!r} is not {allowed}", param, ctx)
        first = int(found["first"]) if found["first"] else None
        end = int(found["end"]) if found["end"] else None
        if first is not None and not found["colon"]:
            end = first + 1
        place = None if found["place"] is None else topic_partition(found["place"])
        if place is None and found["place"] is not None:
            self.fail(f"{value!r} does not begin with TOPIC-PARTITION=, as orders-0=", param, ctx)
        # Of several partitions one can have no offsets to read.
        least = 1 if place is None else 0
        if (LARGEST_OFFSET if end is None else end) - (first or 0) < least:
            self.fail(f"{value!r}: FROM is not below UNTIL, which is not included", param, ctx)
        if end is not None and end > LARGEST_OFFSET:
            self.fail(f"{value!r}: UNTIL is not at most {LARGEST_OFFSET}", param, ctx)
        return GivenOffsets(place, first, end)


def topic_partition(text: str) -> TopicPartition | None:
    """Return the topic and the partition of `orders-0`, None for another text."""
    found = re.fullmatch(r"(.+)-([0-9]{1,9})", text)
    return None if found is None else (found[1], int(found[2]))


def _warn(message: str) -> None:
    click.echo(printable_lines(message), err=True)


def settings_options(settings: type, parameter: str, *options: Decorator) -> Decorator:
    """Add options whose values the function receives as one object: `settings` is a dataclass, and
    those of its fields that options have are filled from them."""
    names = [field.name for field in fields(settings)]

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
    return click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=GivenPath())(
        function
    )


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


def topic_option(
    meaning: str = "Only this topic; repeatable.", *, required: bool = False
) -> Decorator:
    """Add --topic, received as `topics`."""
    return click.option(
        "--topic",
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


def time_option(name: str, parameter: str, meaning: str) -> Decorator:
    """Add an option that is a time, received in milliseconds since 1970."""
    words = f"{meaning}. TIME: 2026-11-21T12:00:00Z for example, {TIMES_ALLOWED}."
    return click.option(name, parameter, metavar="TIME", type=Time(), help=words)


def as_of_option(meaning: str) -> Decorator:
    """Add --as-of, received as `as_of` in milliseconds since 1970, None where it is not given."""
    return time_option("--as-of", "as_of", meaning)


def from_time_option(meaning: str) -> Decorator:
    """Add --from-time, received as `from_ms`."""
    return time_option("--from-time", "from_ms", meaning)


def until_time_option(meaning: str) -> Decorator:
    """Add --until-time, received as `until_ms`."""
    return time_option("--until-time", "until_ms", meaning)


def offsets_option(meaning: str) -> Decorator:
    """Add --offsets, received as `offsets`: a tuple of GivenOffsets."""
    return click.option(
        "--offsets",
        metavar="[TOPIC-PARTITION=]FROM:UNTIL",
        type=Offsets(),
        multiple=True,
        help=meaning,
    )


def isolation_level_option(meaning: str, default: Isolation) -> Decorator:
    """Add --isolation-level, received as `isolation_level`."""
    return click.option(
        "--isolation-level",
        type=_choice(Isolation),
        default=default.value,
        show_default=True,
        help=meaning,
    )


def offsets_retention_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --offsets-retention, received as `offsets_retention` in minutes."""
    return click.option(
        "--offsets-retention",
        metavar="MINUTES",
        type=click.IntRange(min=0),
        default=OFFSETS_RETENTION_MINUTES,
        show_default=True,
        help="The brokers' offsets.retention.minutes, after which they remove the commits of "
        "groups without members.",
    )(function)


def max_transaction_timeout_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --max-transaction-timeout, received as `max_transaction_timeout` in minutes."""
    return click.option(
        "--max-transaction-timeout",
        metavar="MINUTES",
        type=click.IntRange(min=0),
        default=15,
        show_default=True,
        help="The brokers' transaction.max.timeout.ms, in minutes: an open transaction that was "
        "written to within this time is not called hanging.",
    )(function)


def config_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --server-properties and --topic-config, received as `server_properties` and
    `topic_config`."""
    server = click.option(
        "--server-properties",
        metavar="FILE",
        help="The broker's server.properties; settings that it does not name have Kafka's default.",
    )
    topics = click.option(
        "--topic-config",
        metavar="FILE",
        help='Settings of single topics, as JSON: {"orders": {"retention.ms": "3600000"}}.',
    )
    return server(topics(function))


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


def shutdown_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --shutdown, received as `shutdown`."""
    return click.option(
        "--shutdown",
        type=_choice(Shutdown),
        default=Shutdown.AS_FOUND.value,
        show_default=True,
        help="How the broker stopped before this start: as .kafka_cleanshutdown says, or as given.",
    )(function)


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


def mode_option(default: Mode) -> Decorator:
    """Add --mode, received as `mode`."""
    return click.option(
        "--mode",
        type=_choice(Mode),
        default=default.value,
        show_default=True,
        help="What to do about damage: FAILFAST stops at it, PERMISSIVE reads what is intact and "
        "reports the rest, DROPMALFORMED reads what is intact.",
    )


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


def _choice(names: type[Enum]) -> click.Choice[str]:
    return click.Choice([each.value for each in names])
