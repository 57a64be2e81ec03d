"""The arguments of jobs that read ZooKeeper's files beside log directories."""

from __future__ import annotations

import argparse

from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperInput, zookeeper_input
from kafkalog.storage.log_dir.read_directories import refuse_tables


def add_zookeeper_arguments(
    parser: argparse.ArgumentParser, meaning: str, *, required: bool = False
) -> None:
    """Where ZooKeeper's files are, and where the cluster begins in the tree."""
    parser.add_argument(
        "--zookeeper",
        metavar="DATA_DIR",
        nargs="+",
        default=[],
        required=required,
        help=f"{meaning}: dataDir, its folder version-2, or dataDir and dataLogDir; of several "
        "members the newest counts",
    )
    parser.add_argument(
        "--chroot",
        metavar="PATH",
        type=lambda path: path.rstrip("/"),
        help="where the cluster begins, of several in the ensemble; / for the root",
    )


def given_zookeeper(args: argparse.Namespace) -> ZookeeperInput | None:
    """What the arguments name, globs resolved; None where they name nothing.

    Raises, before a session is started, LogDirError for what holds no file of ZooKeeper's, and
    OptionError for an output in what is read.
    """
    if not args.zookeeper:
        return None
    given = zookeeper_input(args.zookeeper, args.mode, args.chroot)
    refuse_tables(args.output, given.paths)
    return given
