"""What jobs say, and take, that read ZooKeeper's files and log directories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster
from kafkalog.errors import LogDirError
from kafkalog.storage.log_dir.log_dir_names import LogDirNames, log_dir_names
from kafkalog.storage.log_dir.read_directories import refuse_tables


def given_log_dirs(args: argparse.Namespace) -> list[LogDirNames]:
    """What is in the log directories of --log-dirs. Raises LogDirError for a path that is no
    directory, OptionError for an output in one."""
    for path in args.log_dirs:
        if not log_dir_names([path]):
            raise LogDirError(f"{path}: there is no such directory on this machine")
    found = log_dir_names(args.log_dirs)
    refuse_tables(args.output, [log_dir.path for log_dir in found])
    return found


def members_words(clusters: Sequence[Sequence[EnsembleCluster]]) -> list[str]:
    """Which clusters are where, and which of several members is taken: `clusters` have their
    members, the newest first."""
    words = []
    for cluster in clusters:
        for member in cluster:
            place = f"cluster {member.cluster_id or 'without an id'} at {member.chroot or '/'}"
            note = "" if member is cluster[0] else ", not the newest"
            words.append(f"{place}, as of zxid {member.zxid:#x}: {member.input_path}{note}")
    return words
