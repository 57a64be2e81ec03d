"""A task's half of a read of ZooKeeper's files: one server's data directory in the requested
view."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kafkalog.columns.table_rows import TableRow, row_batches
from kafkalog.coordination.zookeeper.kafka_directories import DIRECTORY_VIEWS
from kafkalog.coordination.zookeeper.znode_image import ZnodeImage
from kafkalog.errors import DataLossError
from kafkalog.inspection.zookeeper.cluster_trees import ClusterTree
from kafkalog.inspection.zookeeper.kafka_znodes import (
    cluster_batches,
    cluster_places,
    directory_batches,
)
from kafkalog.inspection.zookeeper.znode_columns import (
    fault_batches,
    history_rows,
    session_batches,
    znode_batches,
    znode_size_batches,
)
from kafkalog.inspection.zookeeper.zookeeper_commits import commit_rows
from kafkalog.views.options.options import Mode
from kafkalog.views.options.zookeeper.zookeeper_options import (
    STATE_VIEWS,
    ZookeeperOptions,
    ZookeeperView,
)
from kafkalog.views.reading.zookeeper_damage import reported_damage
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.log_reading import OnFinding
from kafkalog.zookeeper.moments import zxid_at
from kafkalog.zookeeper.replay import TreeAt, tree_at

# Views that go through the transaction logs, not the tree.
_ROWS_OF_LOGS = {
    ZookeeperView.ZNODE_HISTORY: history_rows,
    ZookeeperView.OFFSET_COMMITS: commit_rows,
}
# Views whose rows are those of `kafkalog metadata`.
_KINDS_OF_STATE = {
    "cluster_topics": "topic",
    "cluster_partitions": "partition",
    "cluster_configs": "config",
    "cluster_acls": "acl",
}
_ADVICE = "mode=PERMISSIVE reads what is sound before it, view=faults lists all damage"


def read_data_dir(
    data_dir: DataDir, options: ZookeeperOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one data directory. Raises CorruptDataError for damage that matters to
    them, as `mode` says, and DataLossError for a moment that the files do not reach."""
    if options.view is ZookeeperView.FAULTS:
        yield from fault_batches(data_dir, columns)
        return
    with reported_damage(data_dir, options.mode, _ADVICE) as report:
        yield from _rows(data_dir, options, columns, report)


def _rows(
    data_dir: DataDir, options: ZookeeperOptions, columns: tuple[str, ...], report: OnFinding
) -> Iterator[pa.RecordBatch]:
    until = options.zxid if options.time_ms is None else zxid_at(data_dir, options.time_ms)
    if options.view in _ROWS_OF_LOGS:
        rows = _ROWS_OF_LOGS[options.view](data_dir, until, options.subtree, report)
        yield from row_batches(options.view.value, rows, data_dir.path, columns)
        return
    tree = tree_at(data_dir, until, report)
    _check_reached(data_dir, tree, options)
    if options.view is ZookeeperView.ZNODES:
        yield from znode_batches(tree, options.subtree, data_dir.path, columns)
    elif options.view is ZookeeperView.ZNODE_SIZES:
        yield from znode_size_batches(tree, options.subtree, data_dir.path, columns)
    elif options.view.value in DIRECTORY_VIEWS:
        view = options.view.value
        yield from directory_batches(tree, options.subtree, view, data_dir.path, columns)
    elif options.view in STATE_VIEWS:
        state = _state_rows(tree, options.view.value, data_dir.path, report)
        yield from row_batches(options.view.value, state, data_dir.path, columns)
    elif options.view is ZookeeperView.CLUSTERS:
        yield from cluster_batches(tree, data_dir.path, columns)
    else:
        yield from session_batches(tree, data_dir.path, columns)


def _state_rows(tree: TreeAt, view: str, path: str, on_finding: OnFinding) -> Iterator[TableRow]:
    """Yield the rows of a view for each cluster in a data directory; secrets are hidden.
    `on_finding` is called with the znodes that cannot be read."""
    for place in cluster_places(tree).values():
        found = ZnodeImage.of(ClusterTree(path, tree, place).facts())
        for znode, detail in found.unreadable:
            what = f"{place.chroot}{znode}: {detail}"
            on_finding(ZooKeeperFinding(path, None, ZooKeeperFault.MALFORMED, what))
        constants = {
            "cluster_id": place.cluster_id,
            "chroot": place.chroot,
            "as_of_zxid": tree.zxid,
        }
        for row in found.rows(_KINDS_OF_STATE[view]):
            yield {**constants, **row}


def _check_reached(data_dir: DataDir, tree: TreeAt, options: ZookeeperOptions) -> None:
    """Raise DataLossError for a zxid that is later than all files. One between two leaders' is not;
    nor is one after damage that the user lets pass."""
    requested = options.zxid
    if requested is None or options.mode is not Mode.FAILFAST:
        return
    last = max(tree.zxid, *(file.zxid for file in (*data_dir.snapshots, *data_dir.logs)))
    if requested > last:
        raise DataLossError(
            f"{data_dir.path} ends at zxid {last:#x}, before the requested {requested:#x}: request "
            "an earlier one, or none to get the last; mode=PERMISSIVE takes what there is"
        )
