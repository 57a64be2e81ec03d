"""The arguments of the jobs about consumer lag."""

from __future__ import annotations

import argparse
import re

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.spark.jobs.job import add_time_argument, count
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


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


def matching(rows: DataFrame, column: str, pattern: str | None) -> DataFrame:
    """The rows in whose column the pattern is found, all of them without one."""
    return rows if pattern is None else rows.where(F.col(column).rlike(pattern))
