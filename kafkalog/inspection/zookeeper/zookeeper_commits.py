"""Offsets that groups commit to ZooKeeper, as rows of view `offset_commits`.

Rules: docs/zookeeper.md F448, F490 and F491.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kafkalog.columns.table_rows import TableRow
from kafkalog.coordination.groups.offset_commits import Effect
from kafkalog.coordination.zookeeper.kafka_directories import CONSUMER_OFFSETS_VIEW, kafka_rows
from kafkalog.coordination.zookeeper.znode_paths import below_root
from kafkalog.inspection.zookeeper.kafka_znodes import cluster_places
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.history import changes
from kafkalog.zookeeper.log_reading import OnFinding, all_entries, logs_from, once, unreported
from kafkalog.zookeeper.replay import TreeAt, oldest_tree, tree_at
from kafkalog.zookeeper.tree_walk import is_below, shown_path, znodes

# In the paths of all committed offsets.
_OFFSETS = "/offsets/"
_WRITES = ("create", "set_data")
_POSITION = {
    "committed_offset": None,
    "reason": "unsupported",
    "detail": "what Kafka 0.7 commits is a position in bytes, not an offset",
}


class HistoryBegin(NamedTuple):
    """The transaction from which on all commits are known, and its time; None for all times."""

    zxid: int
    time_ms: int | None


class _Write(NamedTuple):
    """The data that a path got; `file` is null if only the tree has it."""

    path: str
    data: bytes | None
    zxid: int
    time_ms: int
    file: str | None
    is_deletion: bool


def history_begin(data_dir: DataDir) -> HistoryBegin:
    """Return how far back all commits are known, except those that damage hides."""
    tree = oldest_tree(data_dir, unreported)
    if tree is None:
        return HistoryBegin(0, None)
    later = replace(data_dir, logs=tuple(logs_from(data_dir.logs, tree.zxid + 1)))
    for logged in all_entries(later, unreported):
        if logged.transaction.zxid > tree.zxid:
            return HistoryBegin(logged.transaction.zxid, logged.transaction.time_ms)
    newest = max((node.mtime_ms for node in znodes(tree)), default=None)
    return HistoryBegin(tree.zxid, newest)


def commit_rows(
    data_dir: DataDir, until: int | None, subtree: bytes, report: OnFinding
) -> Iterator[TableRow]:
    """Yield every commit up to the transaction `until` in the files: those in the oldest snapshot,
    in the logs, and those in the tree at last that damage or a gap hides in the logs. A deletion is
    a tombstone.

    All columns but input_path; none for what brokers know alone. Each damage is reported once.
    """
    report = once(report)
    newest = tree_at(data_dir, until, report)
    places = cluster_places(newest)
    for write in _writes(data_dir, newest, until, subtree, report):
        place = below_root(write.path, places)
        if place is None:
            continue
        for row in kafka_rows(place.path, write.data, CONSUMER_OFFSETS_VIEW):
            yield _commit(write, places[place.chroot].cluster_id, row.values)


def _commit(write: _Write, cluster_id: str | None, values: TableRow) -> TableRow:
    columns = {} if write.is_deletion else dict(values)
    if columns.pop("broker_id", None) is not None:
        columns |= _POSITION
    is_read = write.is_deletion or columns.get("reason") is None
    return {
        **columns,
        **{name: values.get(name) for name in ("group_id", "topic", "partition")},
        "cluster_id": cluster_id,
        "file": write.file,
        "record_offset": write.zxid,
        "record_timestamp_ms": write.time_ms,
        "is_tombstone": write.is_deletion,
        "commit_timestamp_ms": None if write.is_deletion else write.time_ms,
        "is_transactional": False,
        "effect": Effect.APPLIED.value if is_read else None,
        "effective_offset": write.zxid if is_read else None,
        "effective_timestamp_ms": write.time_ms if is_read else None,
    }


def _writes(
    data_dir: DataDir, newest: TreeAt, until: int | None, subtree: bytes, report: OnFinding
) -> Iterator[_Write]:
    oldest = oldest_tree(data_dir, report)
    last: dict[str, _Write] = {}
    for write in _in_tree(oldest, subtree) if oldest is not None else ():
        last[write.path] = write
        yield write
    for write in _in_logs(data_dir, until, subtree, report):
        known = last.get(write.path)
        if known is None or write.zxid != known.zxid or write.is_deletion:
            yield write
        if known is None or write.zxid > known.zxid:
            last[write.path] = write
    yield from _hidden(newest, subtree, last)


def _hidden(newest: TreeAt, subtree: bytes, last: dict[str, _Write]) -> Iterator[_Write]:
    """Yield what is otherwise at last than the last writes say. When something was deleted is not
    known: the time is that of the last write of any offset before the tree."""
    ended_ms = max(
        (write.time_ms for write in last.values() if write.zxid <= newest.zxid), default=0
    )
    for write in _in_tree(newest, subtree):
        known = last.pop(write.path, None)
        if known is None or known.zxid < write.zxid:
            yield write
            ended_ms = max(ended_ms, write.time_ms)
    for write in last.values():
        if not write.is_deletion and write.zxid <= newest.zxid:
            yield _Write(write.path, None, newest.zxid, ended_ms, None, is_deletion=True)


def _in_tree(tree: TreeAt, subtree: bytes) -> Iterator[_Write]:
    for node in znodes(tree, subtree):
        if _OFFSETS in node.path:
            yield _Write(node.path, node.data, node.mzxid, node.mtime_ms, None, is_deletion=False)


def _in_logs(
    data_dir: DataDir, until: int | None, subtree: bytes, report: OnFinding
) -> Iterator[_Write]:
    for change in changes(data_dir, until, report):
        path = change.path
        if path is None or _OFFSETS.encode() not in path or not is_below(path, subtree):
            continue
        transaction, is_write = change.logged.transaction, change.change in _WRITES
        if is_write or change.change in ("delete", "close_session"):
            yield _Write(
                shown_path(path),
                change.data,
                transaction.zxid,
                transaction.time_ms,
                change.logged.file,
                is_deletion=not is_write,
            )
