"""The arguments of jobs that read ZooKeeper's files beside log directories."""

from __future__ import annotations

import argparse


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
