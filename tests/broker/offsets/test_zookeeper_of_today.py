"""The files of a real ZooKeeper 3.9, in the forms that no older one wrote, hold the tree that its
own shell lists (F400, F404 to F406, F409, F414)."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kafkalog.storage.files.files import InputFile
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs
from kafkalog.zookeeper.data_dir_check import data_dir_findings
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.history import changes
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.snapshot import Snapshot
from kafkalog.zookeeper.tree_walk import znodes
from kafkalog.zookeeper.znode import OwnerKind, Znode, owner_kind, ttl_ms
from tests.support.broker.zookeeper_server import ListedZnode, zookeeper_server

# Java's system properties, and what snapshots have for them: suffix, digest, last zxid.
FORMS: dict[str, tuple[dict[str, str], tuple[str, bool, bool]]] = {
    "gz": ({"snapshot.compression.method": "gz"}, (".gz", True, True)),
    "snappy-no-digest": (
        {"snapshot.compression.method": "snappy", "digest.enabled": "false"},
        (".snappy", False, True),
    ),
    "no-last-zxid": ({"serializeLastProcessedZxid.enabled": "false"}, ("", True, False)),
    "seal-only": (
        {"digest.enabled": "false", "serializeLastProcessedZxid.enabled": "false"},
        ("", False, False),
    ),
}
EVERYWHERE = {"extendedTypesEnabled": "true", "snapCount": "8"}
MADE = [
    "create /app",
    "create /app/kept first",
    "create -s /app/numbered- one",
    "create -c /app/container",
    "create /app/container/child text",
    "create -t 600000 /app/ttl",
    "create -e /app/ended",
    "set /app/kept second",
    "setAcl /app/kept world:anyone:r,ip:127.0.0.1:cdrwa",
    "create /app/gone x",
    "delete /app/gone",
    "delete /app/none",
    "create /app/kept again",
    "create /app/ünï ürî",
]
LATER = ["set /app/kept third", "create /app/later", "delete /app/container/child"]


def as_listed(znode: Znode) -> ListedZnode:
    def time(time_ms: int) -> str:
        return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")

    is_session = owner_kind(znode.ephemeral_owner) is OwnerKind.EPHEMERAL
    stat: dict[str, Any] = {
        "cZxid": f"{znode.czxid:#x}",
        "ctime": time(znode.ctime_ms),
        "mZxid": f"{znode.mzxid:#x}",
        "mtime": time(znode.mtime_ms),
        "pZxid": f"{znode.pzxid:#x}",
        "cversion": str(znode.cversion),
        "dataVersion": str(znode.version),
        "aclVersion": str(znode.aversion),
        # Clients see no owner of containers and of znodes with a time to live.
        "ephemeralOwner": f"{znode.ephemeral_owner if is_session else 0:#x}",
        "dataLength": str(len(znode.data or b"")),
        "numChildren": str(znode.children),
    }
    data = "null" if znode.data is None else znode.data.decode()
    return ListedZnode(
        data, stat, tuple((perms, scheme, name) for perms, scheme, name in znode.acl)
    )


def refuse(finding: ZooKeeperFinding) -> None:
    raise AssertionError(finding)


def tree_of(data_dir: DataDir) -> dict[str, Znode]:
    return {znode.path: znode for znode in znodes(tree_at(data_dir, None, refuse))}


@pytest.mark.deep
@pytest.mark.parametrize("form", FORMS)
def test_files_in_every_form_hold_the_tree_that_the_shell_lists(form: str, tmp_path: Path) -> None:
    properties, expected_form = FORMS[form]
    properties = {**properties, **EVERYWHERE}
    with zookeeper_server(tmp_path, properties) as server:
        server.run(MADE)
        server.kill_session("create -e /app/killed", done="Created /app/killed")
    # It begins with a snapshot of what it found.
    with zookeeper_server(tmp_path, properties) as server:
        server.run(LATER)
        listing = server.listing()
    (data_dir,) = find_data_dirs([str(tmp_path / "data")])
    found = tree_of(data_dir)
    assert {path: as_listed(znode) for path, znode in found.items()} == listing
    assert {"/app/ended", "/app/killed", "/app/gone"}.isdisjoint(listing)
    assert ttl_ms(found["/app/ttl"].ephemeral_owner) == 600_000
    assert owner_kind(found["/app/container"].ephemeral_owner) is OwnerKind.CONTAINER
    assert tree_of(replace(data_dir, snapshots=data_dir.snapshots[:1])) == found
    assert data_dir_findings(data_dir) == []
    assert form_of(data_dir) == expected_form
    ended = {
        change.path
        for change in changes(data_dir, None, refuse)
        if change.change == "close_session"
    }
    assert {b"/app/ended", b"/app/killed"} <= ended


def form_of(data_dir: DataDir) -> tuple[str, bool, bool]:
    newest = data_dir.snapshots[-1].path
    with InputFile(newest) as file:
        snapshot = Snapshot(file)
        assert sum(1 for _ in snapshot.nodes()) > 5
    suffix = Path(newest).suffix if newest.endswith((".gz", ".snappy")) else ""
    return suffix, snapshot.digest is not None, snapshot.last_zxid is not None
