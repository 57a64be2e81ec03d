"""What jobs say, and take, that read ZooKeeper's files and log directories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import Row

from kafkalog.errors import LogDirError
from kafkalog.spark.job import refuse_inside
from kafkalog.storage.log_dir_names import LogDirNames, log_dir_names


def given_log_dirs(args: argparse.Namespace) -> list[LogDirNames]:
    """What is in the log directories of --log-dirs. Raises LogDirError for a path that is no
    directory, OptionError for an output in one."""
    for path in args.log_dirs:
        if not log_dir_names([path]):
            raise LogDirError(f"{path}: there is no such directory on this machine")
    found = log_dir_names(args.log_dirs)
    refuse_inside("--output", args.output, [log_dir.path for log_dir in found])
    return found


def members_words(members: Sequence[Row]) -> list[str]:
    """Which clusters are where, and which of several members is taken; `members` has input_path,
    zxid, made, cluster_id and chroot."""
    words, taken = [], set[tuple[str, str]]()
    for row in sorted(members, key=lambda row: (row.zxid, row.input_path), reverse=True):
        cluster = row.cluster_id or row.made, row.chroot
        place = f"cluster {row.cluster_id or 'without an id'} at {row.chroot or '/'}"
        note = ", not the newest" if cluster in taken else ""
        words.append(f"{place}, as of zxid {row.zxid:#x}: {row.input_path}{note}")
        taken.add(cluster)
    return words
