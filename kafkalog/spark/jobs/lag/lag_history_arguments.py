"""The arguments of the job about lag over time."""

from __future__ import annotations

import argparse
import re
import time

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.commit_events import HistoryMoments
from kafkalog.coordination.groups.lag_status import LagSettings
from kafkalog.spark.jobs.job import add_time_argument, count
from kafkalog.spark.jobs.lag.lag_arguments import add_group_arguments
from kafkalog.spark.jobs.lag.lag_settings import LagHistorySettings, NameFilter
from kafkalog.views.options.options import Isolation

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_BURROW = BurrowSettings()
_LAG = LagSettings()


def argument_duration_ms(text: str) -> int:
    """A length of time on the command line, in milliseconds: such as 30s, 5m, 2h or 1d."""
    found = re.fullmatch(r"([0-9]{1,12})(ms|s|m|h|d)", text)
    if found is None or int(found[1]) == 0:
        allowed = "a number and ms, s, m, h or d, such as 5m"
        raise argparse.ArgumentTypeError(f"{text!r} is no length of time: {allowed}")
    return int(found[1]) * _UNITS_MS[found[2]]


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    """Which groups, which moments, and the thresholds of both kinds of statuses."""
    add_group_arguments(parser)
    add_time_argument(parser, "--since", "begin of the history", None, "the first commit")
    add_time_argument(
        parser, "--until", "end of the history", None, "now, with the logs as they are"
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        type=argument_duration_ms,
        help="a row every 30s, 5m, 2h or 1d, with the commit in effect then, instead of one for "
        "each commit",
    )
    parser.add_argument(
        "--no-progress",
        metavar="TIME",
        type=argument_duration_ms,
        default=_LAG.no_progress_ms,
        help="STOP and STALL: how long a group may leave a record unread without a commit that is "
        "any further (default: 5m, as max.poll.interval.ms)",
    )
    parser.add_argument(
        "--allowed-records",
        metavar="N",
        type=count,
        default=_LAG.allowed_records,
        help=f"as many records left to read are OK (default: {_LAG.allowed_records})",
    )
    _add_burrow_arguments(parser)


def _add_burrow_arguments(parser: argparse.ArgumentParser) -> None:
    for name, unit, meaning in (
        ("intervals", "N", "commits looked back on, by both kinds of statuses"),
        ("allowed-lag", "N", "lag that is OK"),
        ("min-distance", "SECONDS", "a commit sooner than this takes the place of the last one"),
        ("expire-group", "SECONDS", "groups without commits for so long are NOTFOUND"),
        ("offset-refresh", "SECONDS", "how often Burrow would look where a partition ends"),
    ):
        seconds = "_s" if unit == "SECONDS" else ""
        default = getattr(_BURROW, name.replace("-", "_") + seconds)
        parser.add_argument(
            f"--burrow-{name}",
            metavar=unit,
            type=_some if name == "intervals" else count,
            default=default,
            help=f"Burrow's {name}: {meaning} (default: {default})",
        )
    parser.add_argument(
        "--burrow-minimum-complete",
        metavar="SHARE",
        type=_share,
        default=_BURROW.minimum_complete,
        help="Burrow's minimum-complete: with a smaller share of its commits a partition is OK "
        f"(default: {_BURROW.minimum_complete})",
    )


def lag_history_settings(args: argparse.Namespace) -> LagHistorySettings:
    """Return the settings that the arguments name."""
    now_ms = time.time_ns() // 1_000_000
    until_ms = now_ms if args.until is None else args.until
    return LagHistorySettings(
        now_ms,
        HistoryMoments(args.since or 0, until_ms, args.until is None, args.every),
        NameFilter(pattern=args.groups),
        NameFilter(pattern=args.topics),
        read_committed=args.isolation_level == Isolation.READ_COMMITTED.value,
        burrow=BurrowSettings(
            intervals=args.burrow_intervals,
            allowed_lag=args.burrow_allowed_lag,
            minimum_complete=args.burrow_minimum_complete,
            min_distance_s=args.burrow_min_distance,
            expire_group_s=args.burrow_expire_group,
            offset_refresh_s=args.burrow_offset_refresh,
        ),
        lag=LagSettings(args.burrow_intervals, args.allowed_records, args.no_progress),
    )


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return share


def _some(text: str) -> int:
    found = count(text)
    if not 1 <= found <= _MOST_INTERVALS:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 and {_MOST_INTERVALS}")
    return found


_MOST_INTERVALS = 10_000
