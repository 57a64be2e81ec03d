"""The cluster that log directories belong to, by ZooKeeper's files: its rows of the views of format
`zookeeper`, read by this process. Rule: docs/migration.md F485."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster, cluster_of_log_dirs
from kafkalog.inspection.groups.commit_reach import LogReach
from kafkalog.inspection.zookeeper.zookeeper_commits import history_begin
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.log_dir.read_directories import refuse_tables
from kafkalog.views.options.options import Mode
from kafkalog.views.options.zookeeper.zookeeper_options import ZookeeperOptions, ZookeeperView
from kafkalog.views.reading.zookeeper_reading import read_data_dir
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs
from kafkalog.zookeeper.data_dir_check import data_dir_findings


@dataclass(frozen=True, slots=True)
class ZookeeperInput:
    """Which files of ZooKeeper to read, `paths` without globs, and the data directories that these
    are of; what to do about damage, and where in the tree the cluster begins if it is not the only
    one there."""

    paths: tuple[str, ...]
    data_dirs: tuple[DataDir, ...]
    mode: str
    chroot: str | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values that column input_path can have."""
        return tuple(data_dir.path for data_dir in self.data_dirs)

    def rows(
        self, view: ZookeeperView, *columns: str, at_ms: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a view of all data directories, now or at a past time. Raises as
        `read_data_dir` does."""
        names = columns or tuple(arrow_schema(view.value).names)
        options = ZookeeperOptions(self.paths, view, names, Mode(self.mode), time_ms=at_ms)
        for data_dir in self.data_dirs:
            for batch in read_data_dir(data_dir, options, names):
                yield from batch.to_pylist()


def zookeeper_input(
    patterns: Sequence[str], mode: str, chroot: str | None = None
) -> ZookeeperInput:
    """Return the files that paths and globs name. Raises LogDirError for a path without files of
    ZooKeeper's."""
    data_dirs = tuple(find_data_dirs(patterns))
    paths = tuple(path for pattern in patterns for path in matching_paths(pattern))
    return ZookeeperInput(paths, data_dirs, mode, chroot)


def readable_zookeeper(
    patterns: Sequence[str], mode: str, chroot: str | None, *, output_dir: str
) -> ZookeeperInput | None:
    """Return ZooKeeper's files that paths and globs name, None without any path.

    Call it before a session is started. Raises LogDirError for a path without files of
    ZooKeeper's, and OptionError where `output_dir` lies in the input.
    """
    if not patterns:
        return None
    given = zookeeper_input(patterns, mode, chroot)
    refuse_tables(output_dir, given.paths)
    return given


class ZookeeperCluster:
    """The one cluster in ZooKeeper's files that log directories with these ids belong to."""

    def __init__(
        self,
        given: ZookeeperInput,
        log_dir_ids: Collection[str | None],
        *,
        allow_unknown: bool = True,
    ) -> None:
        """Raises OptionError and LogDirError where no cluster or several can be meant."""
        self._given = given
        found = {
            EnsembleCluster(*(row[name] for name in EnsembleCluster._fields))
            for row in given.rows(ZookeeperView.CLUSTERS, *EnsembleCluster._fields)
        }
        cluster = cluster_of_log_dirs(
            sorted(found, key=str), log_dir_ids, chroot=given.chroot, allow_unknown=allow_unknown
        )
        known = [cluster.cluster_id, *log_dir_ids]
        # Old brokers do not write it into their log directories.
        self.cluster = cluster._replace(
            cluster_id=next((each for each in known if each is not None), None)
        )

    def rows(self, view: ZookeeperView, at_ms: int | None = None) -> list[dict[str, Any]]:
        """Return the cluster's rows of a view with column chroot, now or at a past time."""
        return [
            {**row, "cluster_id": row["cluster_id"] or self.cluster.cluster_id}
            for row in self._given.rows(view, at_ms=at_ms)
            if row["input_path"] == self.cluster.input_path and row["chroot"] == self.cluster.chroot
        ]

    def commits(self, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the cluster's rows of view `offset_commits`."""
        given, cluster = self._given, self.cluster
        options = ZookeeperOptions(
            *(given.paths, ZookeeperView.OFFSET_COMMITS, columns, Mode(given.mode)),
            subtree=f"{cluster.chroot}/consumers".encode(),
        )
        for batch in read_data_dir(self._data_dir, options, columns):
            if cluster.cluster_id is not None and "cluster_id" in columns:
                place = columns.index("cluster_id")
                known = batch.column(place).fill_null(cluster.cluster_id)
                batch = batch.set_column(place, "cluster_id", known)
            yield batch

    def reach(self) -> LogReach:
        """Return how far back commits are known, and how many damaged places hide some."""
        damaged = sum(each.fault.is_damage for each in data_dir_findings(self._data_dir))
        return LogReach(None, history_begin(self._data_dir).time_ms, damaged)

    @property
    def _data_dir(self) -> DataDir:
        path = self.cluster.input_path
        (found,) = (each for each in self._given.data_dirs if each.path == path)
        return found

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of all znodes in the cluster's data directory, those of other clusters too."""
        rows = self._given.rows(ZookeeperView.ZNODES, "input_path", "path")
        return frozenset(
            row["path"] for row in rows if row["input_path"] == self.cluster.input_path
        )
