"""The options of commands and jobs about consumer lag."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

import click

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.coordination.groups.lag_question import ChosenNames, LagHistoryQuestion, LagQuestion
from kafkalog.coordination.groups.lag_status import HistoryMoments, LagSettings
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.contradictions import refuse_inverted_times
from kafkalog.views.options.options import Isolation
from kafkalog.views.options.parameter_types import Duration

_BURROW = BurrowSettings()
_LAG = LagSettings()
_MOST_INTERVALS = 10_000


def chosen_name_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --group, --group-pattern, --topic and --topic-pattern, received as `chosen`."""
    options = (
        *(shared.group_option, shared.group_pattern_option),
        *(shared.topic_option(), shared.topic_pattern_option()),
    )
    return shared.settings_options(_chosen_names, "chosen", *options)(function)


def _chosen_names(
    groups: Sequence[str],
    group_pattern: str | None,
    topics: Sequence[str],
    topic_pattern: str | None,
) -> ChosenNames:
    return ChosenNames(frozenset(groups), group_pattern, frozenset(topics), topic_pattern)


def read_committed_option(meaning: str) -> shared.Decorator:
    """Add the --isolation-level of consumers, received as `read_committed`, a bool."""
    return click.option(
        "--isolation-level",
        "read_committed",
        type=shared.choice_of(Isolation),
        default=Isolation.READ_UNCOMMITTED.value,
        show_default=True,
        callback=lambda context, option, given: given == Isolation.READ_COMMITTED.value,
        help=meaning,
    )


def offsets_retention_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --offsets-retention, received as `retention_ms`."""
    return click.option(
        "--offsets-retention",
        "retention_ms",
        metavar="MINUTES",
        type=click.IntRange(min=0),
        default=OFFSETS_RETENTION_MINUTES,
        show_default=True,
        callback=shared.minutes_in_ms,
        help="The brokers' offsets.retention.minutes, after which they remove the commits of "
        "groups without members.",
    )(function)


def _lag_question(
    *,
    chosen: ChosenNames,
    as_of: int | None,
    read_committed: bool,
    retention_ms: int,
    max_lag: int | None,
) -> LagQuestion:
    return LagQuestion(
        time.time_ns() // 1_000_000, as_of, read_committed, retention_ms, chosen, max_lag
    )


def _history_question(
    *,
    chosen: ChosenNames,
    read_committed: bool,
    from_ms: int | None,
    until_ms: int | None,
    every_ms: int | None,
    no_progress_ms: int,
    allowed_records: int,
    burrow: BurrowSettings,
) -> LagHistoryQuestion:
    refuse_inverted_times(from_ms, until_ms)
    now_ms = time.time_ns() // 1_000_000
    end_ms = now_ms if until_ms is None else until_ms
    return LagHistoryQuestion(
        now_ms,
        HistoryMoments(from_ms or 0, end_ms, until_ms is None, every_ms),
        *(from_ms, chosen, read_committed, burrow),
        LagSettings(burrow.intervals, allowed_records, no_progress_ms),
    )


def _group_options() -> tuple[shared.Decorator, ...]:
    return (
        chosen_name_options,
        shared.zookeeper_options(
            "Data directories of ZooKeeper's servers, for groups that commit there"
        ),
        read_committed_option(
            "What the consumers read: read_committed counts aborted records, and those beyond the "
            "last stable offset, separately."
        ),
    )


def lag_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of command groups and job consumer-lag, received as `question`, and
    `zookeeper` and `chroot`."""
    return shared.settings_options(
        _lag_question,
        "question",
        *_group_options(),
        shared.as_of_option(
            "Show the lag at a past time, instead of all that is on disk with ages of now"
        ),
        offsets_retention_option,
        click.option(
            "--max-lag",
            metavar="RECORDS",
            type=click.IntRange(min=0),
            help="More records to read in a partition are a finding (default: no limit).",
        ),
    )(function)


def history_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of lag-history, received as `question`, and `zookeeper` and `chroot`. Raise
    OptionError for a range that ends before it begins."""
    return shared.settings_options(
        _history_question,
        "question",
        *_group_options(),
        shared.from_time_option("Begin of the history instead of the first commit"),
        shared.until_time_option("End of the history instead of now, with the logs as they are"),
        click.option(
            "--every",
            "every_ms",
            metavar="DURATION",
            type=Duration(least_ms=1),
            help="A row every 30s, 5m, 2h or 1d, with the commit in effect then, instead of one "
            "for each commit.",
        ),
        click.option(
            "--no-progress",
            "no_progress_ms",
            metavar="DURATION",
            type=Duration(),
            default=_LAG.no_progress_ms,
            help="STOP and STALL: how long a group may leave a record unread without a commit that "
            "is any further (default: 5m, as max.poll.interval.ms).",
        ),
        click.option(
            "--allowed-records",
            metavar="N",
            type=click.IntRange(min=0),
            default=_LAG.allowed_records,
            show_default=True,
            help="At most this many records left to read are OK.",
        ),
        shared.settings_options(BurrowSettings, "burrow", *_burrow_options()),
    )(function)


def _refuse_nan(_context: click.Context, _option: click.Parameter, share: float) -> float:
    if isnan(share):
        raise click.BadParameter("nan is not a number")
    return share


def _burrow_options() -> list[shared.Decorator]:
    numbers = [
        click.option(
            f"--burrow-{name}",
            parameter,
            metavar="SECONDS" if parameter.endswith("_s") else "N",
            type=click.IntRange(*limits),
            default=getattr(_BURROW, parameter),
            show_default=True,
            help=f"Burrow's {name}: {meaning}.",
        )
        for name, parameter, limits, meaning in (
            (
                *("intervals", "intervals", (1, _MOST_INTERVALS)),
                "the number of commits that both kinds of statuses look back on",
            ),
            ("allowed-lag", "allowed_lag", (0, None), "lag that is OK"),
            (
                *("min-distance", "min_distance_s", (0, None)),
                "a commit that follows sooner replaces the last one",
            ),
            (
                *("expire-group", "expire_group_s", (0, None)),
                "groups without commits for this time are NOTFOUND",
            ),
            (
                *("offset-refresh", "offset_refresh_s", (0, None)),
                "how often Burrow would read where a partition ends",
            ),
        )
    ]
    complete = click.option(
        "--burrow-minimum-complete",
        "minimum_complete",
        metavar="SHARE",
        type=click.FloatRange(0, 1),
        callback=_refuse_nan,
        default=_BURROW.minimum_complete,
        show_default=True,
        help="Burrow's minimum-complete: a partition with a smaller share of its commits is OK.",
    )
    return [*numbers, complete]
