"""The history of ownership in a server's transaction logs: table ownership_history."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.columns.kafka_znodes import ClusterPlace
from kafkalog.columns.table_rows import TableRow
from kafkalog.coordination.ownership_history import (
    CREATE,
    DELETE,
    SESSION_END,
    SET_DATA,
    BrokerPlace,
    Moment,
    Ownership,
    OwnershipReplay,
    Trigger,
    ZnodeChange,
)
from kafkalog.coordination.znode_paths import below_root
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.history import changes
from kafkalog.zookeeper.log_reading import Report
from kafkalog.zookeeper.replay import oldest_tree
from kafkalog.zookeeper.tree_walk import shown_path, znodes

# Of view znode_history those that matter here.
_CHANGES = {
    "create": CREATE,
    "set_data": SET_DATA,
    "delete": DELETE,
    "close_session": SESSION_END,
}


def znode_changes(data_dir: DataDir, report: Report) -> Iterator[ZnodeChange]:
    """All that is known to have happened, in order: first, without a time, what the oldest
    snapshot has, unless the logs begin with the first transaction. Damage is reported."""
    start = 0
    tree = oldest_tree(data_dir, report)
    if tree is not None:
        start = tree.zxid
        for znode in znodes(tree):
            yield ZnodeChange(znode.path, CREATE, znode.data, znode.ephemeral_owner, None, None)
    for change in changes(data_dir, None, report):
        transaction, kind = change.logged.transaction, _CHANGES.get(change.change)
        if kind is None or change.path is None or transaction.zxid <= start:
            continue
        yield ZnodeChange(
            shown_path(change.path),
            kind,
            change.data,
            change.ephemeral_owner or transaction.session_id,
            transaction.zxid,
            transaction.time_ms,
        )


def replayed_ownerships(
    data_dir: DataDir, places: dict[str, ClusterPlace], report: Report
) -> tuple[dict[str, list[Ownership]], dict[str, list[BrokerPlace]]]:
    """The ownerships of each cluster by its root, those that ended first, and where its brokers
    were registered."""
    replays = {root: OwnershipReplay() for root in places}
    ownerships: dict[str, list[Ownership]] = {root: [] for root in places}
    for change in znode_changes(data_dir, report):
        found = below_root(change.path, places)
        if found is not None:
            ended = replays[found.chroot].take(change._replace(path=found.path))
            ownerships[found.chroot] += ended
    for root, replay in replays.items():
        ownerships[root] += replay.still_held()
    return ownerships, {root: replay.broker_places for root, replay in replays.items()}


def ownership_row(ownership: Ownership) -> TableRow:
    """A row of the table, all but the cluster."""
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
