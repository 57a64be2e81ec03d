"""The history of ownership in a server's transaction logs: table ownership_history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkalog.columns.table_rows import TableRow
from kafkalog.coordination.zookeeper.ownership_history import (
    CREATE,
    DELETE,
    NOT_LOGGED,
    SESSION_END,
    SET_DATA,
    BrokerPlace,
    Moment,
    Ownership,
    OwnershipReplay,
    Trigger,
    ZnodeChange,
)
from kafkalog.coordination.zookeeper.znode_paths import below_root
from kafkalog.inspection.zookeeper.kafka_znodes import ClusterPlace
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.history import TakenOver, znode_history
from kafkalog.zookeeper.log_reading import OnFinding
from kafkalog.zookeeper.replay import TreeAt, snapshot_tree
from kafkalog.zookeeper.tree_walk import shown_path, znodes

# Of view znode_history those that matter here.
_CHANGES = {"create": CREATE, "set_data": SET_DATA, "delete": DELETE, "close_session": SESSION_END}
# In the paths of all registries.
_PARTS = ("/ids/", "/owners/", "/brokers/topics/")


class _Known(NamedTuple):
    """A znode that is there: when it was made, and its data."""

    czxid: int
    data: bytes | None


def znode_changes(data_dir: DataDir, newest: TreeAt, report: OnFinding) -> Iterator[ZnodeChange]:
    """Yield all that is known to have happened, in order: what the logs have, and without a time,
    where they begin too late or miss something, what the snapshots and at last the newest tree
    have. Damage is reported."""
    known: dict[str, _Known] = {}
    last = 0
    for step in znode_history(data_dir, None, report):
        if isinstance(step, TakenOver):
            yield from _differences(known, snapshot_tree(data_dir, step.snapshot, report))
            continue
        transaction, kind = step.logged.transaction, _CHANGES.get(step.change)
        last = transaction.zxid
        if kind is None or step.path is None:
            continue
        path, session_id = shown_path(step.path), step.ephemeral_owner or transaction.session_id
        if any(part in path for part in _PARTS):
            _know(known, kind, path, _Known(last, step.data))
            yield ZnodeChange(path, kind, step.data, session_id, last, transaction.time_ms)
    # A tree that ends before, at damage, is older than what is known.
    if newest.zxid >= last:
        yield from _differences(known, newest)


def _know(known: dict[str, _Known], change: str, path: str, znode: _Known) -> None:
    if change in (DELETE, SESSION_END):
        known.pop(path, None)
    elif change == CREATE:
        known[path] = znode
    elif path in known:
        known[path] = known[path]._replace(data=znode.data)


def _differences(known: dict[str, _Known], tree: TreeAt) -> Iterator[ZnodeChange]:
    """Yield what changes `known` to what is in a tree. What a fuzzy snapshot has, or lacks, too
    early is left to the later logs."""
    missing = dict(known)
    for znode in znodes(tree):
        path, found = znode.path, _Known(znode.czxid, znode.data)
        if not any(part in path for part in _PARTS):
            continue
        before = missing.pop(path, None)
        if before == found or found.czxid > tree.zxid:
            continue
        is_same = before is not None and before.czxid == found.czxid
        if before is not None and not is_same:
            yield _unlogged(path, NOT_LOGGED)
        known[path] = found
        kind = SET_DATA if is_same else CREATE
        yield _unlogged(path, kind, found.data, znode.ephemeral_owner)
    if tree.snapshot is None or tree.snapshot.end_zxid <= tree.zxid:
        for path in missing:
            del known[path]
            yield _unlogged(path, NOT_LOGGED)


def _unlogged(path: str, kind: str, data: bytes | None = None, session_id: int = 0) -> ZnodeChange:
    return ZnodeChange(path, kind, data, session_id, None, None)


def replayed_ownerships(
    data_dir: DataDir, newest: TreeAt, places: dict[str, ClusterPlace], report: OnFinding
) -> tuple[dict[str, list[Ownership]], dict[str, list[BrokerPlace]]]:
    """Return the ownerships of each cluster by its root, those that ended first, and where its
    brokers were registered."""
    replays = {root: OwnershipReplay() for root in places}
    ownerships: dict[str, list[Ownership]] = {root: [] for root in places}
    for change in znode_changes(data_dir, newest, report):
        found = below_root(change.path, places)
        if found is not None:
            ended = replays[found.chroot].take(change._replace(path=found.path))
            ownerships[found.chroot] += ended
    for root, replay in replays.items():
        ownerships[root] += replay.still_held()
    return ownerships, {root: replay.broker_places for root, replay in replays.items()}


def ownership_row(ownership: Ownership) -> TableRow:
    """Return a row of the table, all but the cluster."""
    place = ownership.place
    return {
        "group_id": ownership.group_id,
        "topic": place.topic,
        "broker_id": place.partition.broker_id,
        "partition": place.partition.partition,
        "owner": ownership.owner,
        "owner_session_id": ownership.session_id,
        **_moment("claimed", ownership.claimed),
        "unowned_ms": ownership.unowned_ms,
        **_trigger("claim", ownership.claim_trigger),
        **_moment("released", ownership.released),
        "release": ownership.release,
        **_trigger("release", ownership.release_trigger),
    }


def _moment(name: str, moment: Moment | None) -> TableRow:
    if moment is None:
        return {}
    return {f"{name}_zxid": moment.zxid, f"{name}_ms": moment.time_ms}


def _trigger(name: str, trigger: Trigger | None) -> TableRow:
    if trigger is None:
        return {}
    return {
        f"{name}_cause": trigger.cause.value,
        f"{name}_cause_name": trigger.name,
        f"{name}_cause_ms": trigger.at.time_ms,
    }
