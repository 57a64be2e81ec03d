"""The arguments of the jobs about consumer lag."""

from __future__ import annotations

import argparse
import re
import time

from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.spark.jobs.job import add_time_argument, count
from kafkalog.spark.jobs.lag.lag_settings import ConsumerLagSettings, NameFilter
from kafkalog.spark.jobs.lag.zookeeper_arguments import add_zookeeper_arguments
from kafkalog.views.options.options import Isolation


def add_name_arguments(parser: argparse.ArgumentParser) -> None:
    """Which groups and topics."""
    for name in ("groups", "topics"):
        parser.add_argument(
            f"--{name}",
            metavar="REGEX",
            type=_pattern,
            help=f"only {name} in whose name this is found (default: all)",
        )


def add_retention_argument(parser: argparse.ArgumentParser) -> None:
    """When brokers drop commits."""
    parser.add_argument(
        "--offsets-retention",
        metavar="MINUTES",
        type=count,
        default=OFFSETS_RETENTION_MINUTES,
        help="the brokers' offsets.retention.minutes, after which they drop the commits of groups "
        f"without members (default: {OFFSETS_RETENTION_MINUTES}, a week)",
    )


def add_group_arguments(parser: argparse.ArgumentParser) -> None:
    """Which groups and topics, and what a consumer of them reads."""
    add_name_arguments(parser)
    add_zookeeper_arguments(
        parser,
        "data directories of ZooKeeper's servers, for groups that commit there",
    )
    parser.add_argument(
        "--isolation-level",
        choices=[level.value for level in Isolation],
        default=Isolation.READ_UNCOMMITTED.value,
        help="what the consumers read: read_committed counts aborted records, and what is beyond "
        "the last stable offset, apart (default: read_uncommitted)",
    )


def add_lag_arguments(parser: argparse.ArgumentParser) -> None:
    """Those and at which moment, and what counts as stale and as too much."""
    add_group_arguments(parser)
    everything = "all that is on disk, with ages as of now"
    add_time_argument(parser, "--as-of", "a past moment", None, everything)
    add_retention_argument(parser)
    parser.add_argument(
        "--max-lag",
        metavar="RECORDS",
        type=count,
        help="more records to read than this in a partition are a finding (default: none is)",
    )


def consumer_lag_settings(args: argparse.Namespace) -> ConsumerLagSettings:
    """Return the settings that the arguments name."""
    return ConsumerLagSettings(
        time.time_ns() // 1_000_000,
        NameFilter(pattern=args.groups),
        NameFilter(pattern=args.topics),
        read_committed=args.isolation_level == Isolation.READ_COMMITTED.value,
        as_of_ms=args.as_of,
        retention_ms=args.offsets_retention * 60_000,
        max_lag=args.max_lag,
    )


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text
