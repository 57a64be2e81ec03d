"""The arguments of the job that moves offsets."""

from __future__ import annotations

import argparse
import time

from kafkalog.coordination.groups.offsets_replicas import OffsetsReplicas
from kafkalog.coordination.zookeeper.offset_migration import COMMIT_INTERVAL_MS, Move
from kafkalog.coordination.zookeeper.zookeeper_commands import Shell
from kafkalog.messages.commit_records import COMMIT_FORMS
from kafkalog.spark.jobs.job import count
from kafkalog.spark.jobs.lag.lag_arguments import add_name_arguments, add_retention_argument
from kafkalog.spark.jobs.lag.zookeeper_arguments import add_zookeeper_arguments
from kafkalog.spark.jobs.zookeeper.offset_judgement import Judgement

MTIME, NOW = COMMIT_TIMES = ("mtime", "now")


def add_migration_arguments(parser: argparse.ArgumentParser) -> None:
    """What is compared, what is refused, and what is written."""
    add_zookeeper_arguments(parser, "data directories of ZooKeeper's servers", required=True)
    add_name_arguments(parser)
    _add_writing(parser)
    _add_refusals(parser)
    parser.add_argument(
        "--commit-interval-ms",
        metavar="MS",
        type=count,
        default=COMMIT_INTERVAL_MS,
        help="auto.commit.interval.ms of the old consumers: commits no further apart can be of one "
        f"round (default: {COMMIT_INTERVAL_MS})",
    )
    add_retention_argument(parser)


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--write-segments",
        metavar="DIR",
        help="move offsets to Kafka: write segments of __consumer_offsets to this new directory, "
        "to be placed into the log directories of stopped brokers, see docs/migration.md",
    )
    parser.add_argument(
        "--write-zookeeper-commands",
        metavar="FILE",
        help="move offsets to ZooKeeper: write commands for its shell to this new file",
    )
    parser.add_argument(
        "--broker-version",
        choices=list(COMMIT_FORMS),
        help="brokers that are to load the segments: this release or a later one (default: as old "
        "as the last messages in the logs of __consumer_offsets are)",
    )
    parser.add_argument(
        "--commit-time",
        choices=COMMIT_TIMES,
        default=MTIME,
        help="time of the moved commits, from which their retention counts: that of the znode, or "
        f"now (default: {MTIME})",
    )
    parser.add_argument(
        "--offsets-partitions",
        metavar="N",
        type=_positive,
        help="partitions of __consumer_offsets (default: as many as the znodes or the log "
        "directories say)",
    )
    parser.add_argument(
        "--zookeeper-shell",
        choices=[shell.value for shell in Shell],
        default=Shell.FROM_3_5.value,
        help="release of the shell: before 3.5 it takes versions differently (default: "
        f"{Shell.FROM_3_5.value})",
    )


def _add_refusals(parser: argparse.ArgumentParser) -> None:
    for name, meaning in (
        ("--allow-rewind", "move a group also where it goes back by that"),
        ("--allow-active-groups", "move a group also while it has members"),
        ("--allow-unknown-topics", "move also what is for topics that are nowhere"),
        ("--allow-unknown-cluster", "compare also where a cluster id is not known on either side"),
    ):
        parser.add_argument(name, action="store_true", help=meaning)


def judgement(args: argparse.Namespace, replicas: OffsetsReplicas) -> Judgement:
    """What the arguments say of refusals and times, and the replicas that there are."""
    allowed = {
        Move.REWIND: args.allow_rewind,
        Move.ACTIVE: args.allow_active_groups,
        Move.UNKNOWN_TOPIC: args.allow_unknown_topics,
    }
    now_ms = time.time_ns() // 1_000_000
    expired = now_ms - args.offsets_retention * 60_000
    return Judgement(
        frozenset(move for move, is_allowed in allowed.items() if is_allowed),
        args.commit_interval_ms,
        expired if args.commit_time == MTIME else None,
        replicas,
    )


def directions(args: argparse.Namespace) -> list[str]:
    """Columns of table `offset_migration` that say what becomes of the moves asked for; to Kafka
    where nothing is to be written."""
    asked = {"to_kafka": args.write_segments, "to_zookeeper": args.write_zookeeper_commands}
    return [column for column, path in asked.items() if path] or ["to_kafka"]


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of partitions")
    return int(text)
