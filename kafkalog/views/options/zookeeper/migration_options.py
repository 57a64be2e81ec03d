"""The options of command and job migrate-offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from kafkalog.coordination.groups.lag_question import ALL_NAMES, ChosenNames
from kafkalog.coordination.zookeeper.offset_migration import COMMIT_INTERVAL_MS, Move
from kafkalog.coordination.zookeeper.zookeeper_commands import Shell
from kafkalog.messages.commit_records import COMMIT_FORMS
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.lag_options import chosen_name_options, offsets_retention_option
from kafkalog.views.options.parameter_types import GivenPath

_MTIME, _NOW = "mtime", "now"


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """The options, as they were given."""

    chosen: ChosenNames = ALL_NAMES
    zookeeper: tuple[str, ...] = ()
    chroot: str | None = None
    write_segments: str | None = None
    write_zookeeper_commands: str | None = None
    broker_version: str | None = None
    commit_time: str = _MTIME
    offsets_partitions: int | None = None
    broker_id: int | None = None
    zookeeper_shell: str = Shell.FROM_3_5.value
    allow_rewind: bool = False
    allow_active_groups: bool = False
    allow_unknown_topics: bool = False
    allow_unknown_cluster: bool = False
    commit_interval_ms: int = COMMIT_INTERVAL_MS
    retention_ms: int = 0

    @property
    def keeps_commit_times(self) -> bool:
        """Whether moved commits have the times of their znodes."""
        return self.commit_time == _MTIME

    @property
    def directions(self) -> list[str]:
        """The columns of table `offset_migration` that say what becomes of the moves that are
        requested; to Kafka where nothing is to be written."""
        paths = {"to_kafka": self.write_segments, "to_zookeeper": self.write_zookeeper_commands}
        return [column for column, path in paths.items() if path] or ["to_kafka"]

    @property
    def allowed(self) -> frozenset[Move]:
        """The refusals that do not hold."""
        allowed = {
            Move.REWIND: self.allow_rewind,
            Move.ACTIVE: self.allow_active_groups,
            Move.UNKNOWN_TOPIC: self.allow_unknown_topics,
        }
        return frozenset(move for move, is_allowed in allowed.items() if is_allowed)


def migration_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, received as `request`."""
    return shared.settings_options(
        MigrationRequest,
        "request",
        shared.zookeeper_options("The data directories of ZooKeeper's servers", required=True),
        chosen_name_options,
        *_WRITING,
        *_REFUSALS,
        click.option(
            "--commit-interval-ms",
            metavar="MS",
            type=click.IntRange(min=0),
            default=COMMIT_INTERVAL_MS,
            show_default=True,
            help="auto.commit.interval.ms of the old consumers: commits that are at most this far "
            "apart can belong to one round.",
        ),
        offsets_retention_option,
    )(function)


_WRITING = (
    click.option(
        "--write-segments",
        metavar="DIR",
        type=GivenPath(),
        help="Move offsets to Kafka: write segments of __consumer_offsets to this new directory, "
        "to be placed into the log directories of stopped brokers, see docs/migration.md.",
    ),
    click.option(
        "--write-zookeeper-commands",
        metavar="FILE",
        type=GivenPath(),
        help="Move offsets to ZooKeeper: write commands for its shell to this new file.",
    ),
    click.option(
        "--broker-version",
        type=click.Choice(list(COMMIT_FORMS)),
        help="The oldest release of the brokers that are to load the segments (default: as old as "
        "the last messages in the logs of __consumer_offsets).",
    ),
    click.option(
        "--commit-time",
        type=click.Choice([_MTIME, _NOW]),
        default=_MTIME,
        show_default=True,
        help="The time of the moved commits, from which their retention counts: that of the znode, "
        "or now.",
    ),
    click.option(
        "--offsets-partitions",
        metavar="N",
        type=click.IntRange(1, 2**31 - 1),
        help="The number of partitions of __consumer_offsets (default: from the znodes or the log "
        "directories).",
    ),
    click.option(
        "--broker-id",
        metavar="ID",
        type=click.IntRange(0, 2**31 - 1),
        help="The broker of log directories that name none, as before Kafka 0.8.2 (default: the "
        "only broker that the znodes name).",
    ),
    click.option(
        "--zookeeper-shell",
        type=click.Choice([shell.value for shell in Shell]),
        default=Shell.FROM_3_5.value,
        show_default=True,
        help="The release of the shell: before 3.5 it takes versions differently.",
    ),
)
_REFUSALS = tuple(
    click.option(name, is_flag=True, help=meaning)
    for name, meaning in (
        ("--allow-rewind", "Move a group even if this takes it back."),
        ("--allow-active-groups", "Move a group even while it has members."),
        ("--allow-unknown-topics", "Move offsets of topics that are found on neither side too."),
        ("--allow-unknown-cluster", "Compare even if a cluster id is unknown on either side."),
    )
)


def audited_log_dir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --log-dir, received as `log_dirs`: those that an audit of ZooKeeper compares with."""
    return click.option(
        "--log-dir",
        "log_dirs",
        metavar="LOG_DIR",
        type=GivenPath(),
        multiple=True,
        help="A broker's log directory: compare offsets with its logs, topics and cluster ids with "
        "what is on disk; repeatable.",
    )(function)
