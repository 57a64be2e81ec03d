"""The options of commands and jobs about consumer lag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

import click

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.lag_status import LagSettings
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import Decorator
from kafkalog.views.options.options import Isolation
from kafkalog.views.options.parameter_types import Duration

if TYPE_CHECKING:
    from kafkalog.inspection.lag.chosen_rows import ChosenNames

_BURROW = BurrowSettings()
_LAG = LagSettings()
_MOST_INTERVALS = 10_000


@dataclass(frozen=True, slots=True)
class _GroupRequest:
    """The options that all have, as they were given."""

    groups: tuple[str, ...]
    group_pattern: str | None
    topics: tuple[str, ...]
    topic_pattern: str | None
    zookeeper: tuple[str, ...]
    chroot: str | None
    isolation_level: str

    @property
    def chosen(self) -> ChosenNames:
        """The groups and topics that rows are of."""
        from kafkalog.inspection.lag.chosen_rows import ChosenNames

        return ChosenNames(
            *(frozenset(self.groups), self.group_pattern),
            *(frozenset(self.topics), self.topic_pattern),
        )

    @property
    def read_committed(self) -> bool:
        """Whether consumers read committed records alone."""
        return self.isolation_level == Isolation.READ_COMMITTED.value


@dataclass(frozen=True, slots=True)
class LagRequest(_GroupRequest):
    """The options of command groups and job consumer-lag, as they were given."""

    as_of: int | None
    offsets_retention: int
    max_lag: int | None


@dataclass(frozen=True, slots=True)
class HistoryRequest(_GroupRequest):
    """The options of the job lag-history, as they were given, without Burrow's."""

    from_ms: int | None
    until_ms: int | None
    every_ms: int | None
    no_progress_ms: int
    allowed_records: int


def _group_options() -> tuple[Decorator, ...]:
    return (
        shared.chosen_name_options,
        shared.zookeeper_options(
            "Data directories of ZooKeeper's servers, for groups that commit there"
        ),
        shared.isolation_level_option(
            "What the consumers read: read_committed counts aborted records, and those beyond the "
            "last stable offset, separately.",
            Isolation.READ_UNCOMMITTED,
        ),
    )


def lag_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of command groups and job consumer-lag, received as `request`."""
    return shared.settings_options(
        LagRequest,
        "request",
        *_group_options(),
        shared.as_of_option(
            "Show the lag at a past time, instead of all that is on disk with ages of now"
        ),
        shared.offsets_retention_option,
        click.option(
            "--max-lag",
            metavar="RECORDS",
            type=click.IntRange(min=0),
            help="More records to read in a partition are a finding (default: no limit).",
        ),
    )(function)


def history_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the job lag-history, received as `request`, and Burrow's as `burrow`."""
    history = shared.settings_options(
        HistoryRequest,
        "request",
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
    )
    return history(shared.settings_options(BurrowSettings, "burrow", *_burrow_options())(function))


def _refuse_nan(_context: click.Context, _option: click.Parameter, share: float) -> float:
    if isnan(share):
        raise click.BadParameter("nan is not a number")
    return share


def _burrow_options() -> list[Decorator]:
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
