"""What ZooKeeper's files hold as Arrow record batches of the requested columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import fixed_width, of_values, record_batch
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.table_rows import ROWS_PER_BATCH, TableRow, row_batches
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.data_dir_check import data_dir_findings
from kafkalog.zookeeper.history import changes
from kafkalog.zookeeper.log_reading import OnFinding
from kafkalog.zookeeper.replay import TreeAt
from kafkalog.zookeeper.tree_walk import ZnodeSize, is_below, shown_path, znode_sizes, znodes
from kafkalog.zookeeper.znode import Acl, Znode, owner_kind, ttl_ms

# Data is at most 1 MB a node unless a server's settings allow more: a batch ends when it has so
# much.
_BYTES_PER_BATCH = 16 << 20
# About what an entry of an access control list takes as a row's.
_BYTES_PER_ACL = 64

# The values of each field of some rows.
ZnodeFields = Mapping[str, Sequence[Any]]

_kind_of = lru_cache(lambda owner: owner_kind(owner).value)


def znode_batches(
    tree: TreeAt, subtree: bytes, input_path: str, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield view `znodes`."""
    for rows in _bounded(znodes(tree, subtree)):
        by_field = dict(zip(Znode._fields, zip(*rows, strict=True), strict=True))
        yield _batch("znodes", by_field, len(rows), input_path, columns)


def znode_size_batches(
    tree: TreeAt, subtree: bytes, input_path: str, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield view `znode_sizes`."""
    sizes = znode_sizes(tree, subtree)
    while rows := list(islice(sizes, ROWS_PER_BATCH)):
        by_field = dict(zip(ZnodeSize._fields, zip(*rows, strict=True), strict=True))
        yield _batch("znode_sizes", by_field, len(rows), input_path, columns)


def _bounded(rows: Iterable[Znode]) -> Iterator[list[Znode]]:
    held: list[Znode] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row.data or b"") + _BYTES_PER_ACL * len(row.acl)
        if len(held) == ROWS_PER_BATCH or size >= _BYTES_PER_BATCH:
            yield held
            held, size = [], 0
    if held:
        yield held


def _batch(
    table: str, by_field: ZnodeFields, count: int, input_path: str, columns: tuple[str, ...]
) -> pa.RecordBatch:
    schema = arrow_schema(table, columns)
    arrays: dict[str, pa.Array] = {}
    for field in schema:
        if field.name == "input_path":
            indices = fixed_width(np.zeros(count, dtype=np.int32), pa.int32())
            names = of_values([input_path], pa.string())
            arrays[field.name] = names.take(indices)
        elif field.name in _DERIVED:
            arrays[field.name] = _DERIVED[field.name](by_field, field.type)
        elif pa.types.is_integer(field.type):
            arrays[field.name] = fixed_width(np.array(by_field[field.name]), field.type)
        else:
            arrays[field.name] = of_values(by_field[field.name], field.type)
    return record_batch(arrays, schema, count)


def _owner_kinds(by_field: ZnodeFields, data_type: pa.DataType) -> pa.Array:
    return of_values([_kind_of(owner) for owner in by_field["ephemeral_owner"]], data_type)


def _ttls(by_field: ZnodeFields, data_type: pa.DataType) -> pa.Array:
    return of_values([ttl_ms(owner) for owner in by_field["ephemeral_owner"]], data_type)


def _acls(by_field: ZnodeFields, data_type: pa.DataType) -> pa.Array:
    """Return a few lists stand for nearly all nodes: each becomes Arrow once."""
    codes: dict[tuple[Acl, ...], int] = {}
    numbers = [codes.setdefault(acl, len(codes)) for acl in by_field["acl"]]
    different = pa.array([[entry._asdict() for entry in acl] for acl in codes], type=data_type)
    return different.take(fixed_width(np.array(numbers, dtype=np.int32), pa.int32()))


_DERIVED: dict[str, Callable[[ZnodeFields, pa.DataType], pa.Array]] = {
    "owner_kind": _owner_kinds,
    "ttl_ms": _ttls,
    "acl": _acls,
}


def session_batches(
    tree: TreeAt, input_path: str, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Return view `sessions`."""
    rows: Iterator[TableRow] = (
        {"session_id": session_id, "timeout_ms": timeout_ms}
        for session_id, timeout_ms in sorted(tree.changed.sessions.items())
    )
    return row_batches("zookeeper_sessions", rows, input_path, columns)


def fault_batches(data_dir: DataDir, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Return view `faults`."""
    rows: Iterator[TableRow] = (
        {
            "file": finding.file,
            "position": finding.position,
            "fault": finding.fault.value,
            "is_damage": finding.fault.is_damage,
            "detail": finding.detail,
        }
        for finding in data_dir_findings(data_dir)
    )
    return row_batches("zookeeper_faults", rows, data_dir.path, columns)


def history_rows(
    data_dir: DataDir, until: int | None, subtree: bytes, report: OnFinding
) -> Iterator[TableRow]:
    """Yield view `znode_history`; of a subtree without the rows of sessions that have no path."""
    for change in changes(data_dir, until, report):
        path = change.path
        if subtree and (path is None or not is_below(path, subtree)):
            continue
        transaction = change.logged.transaction
        yield {
            "path": None if path is None else shown_path(path),
            "zxid": transaction.zxid,
            "time_ms": transaction.time_ms,
            "session_id": transaction.session_id,
            "cxid": transaction.cxid,
            "operation": change.operation,
            "change": change.change,
            "data": change.data,
            "version": change.version,
            "ephemeral_owner": change.ephemeral_owner,
            "file": change.logged.file,
            "position": change.logged.position,
        }
