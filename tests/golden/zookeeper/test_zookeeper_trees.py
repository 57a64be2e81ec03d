"""Replayed trees equal what a client of the live ensemble listed (F401, F407, F413 to F415)."""

import base64
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.storage.files.files import InputFile
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.replay import TreeAt, tree_at
from kafkalog.zookeeper.snapshot import Snapshot
from kafkalog.zookeeper.tree_walk import znode_sizes, znodes
from kafkalog.zookeeper.znode import Znode
from tests.support.repository import Unpack

SETS = ("kafka08", "kafka010", "kafka39zk")


def listed(root: Path) -> dict[str, dict[str, Any]]:
    """The listing by path; `text` says nothing that `data` does not."""
    lines = (root / "golden" / "znodes.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        row.pop("text")
    return {row["path"]: row for row in rows}


def moment(listing: dict[str, dict[str, Any]]) -> int:
    """The last transaction that the listing knows of: nothing was changed while it was taken."""
    return max(max(row["mzxid"], row["pzxid"]) for row in listing.values())


def as_listed(znode: Znode) -> dict[str, Any]:
    data = None if znode.data is None else base64.b64encode(znode.data).decode()
    acl = ", ".join(f"{perms},s{{'{scheme},'{name}}}\n" for perms, scheme, name in znode.acl)
    return {
        "path": znode.path,
        "data": data,
        "ephemeralOwner": f"{znode.ephemeral_owner:#x}",
        "version": znode.version,
        "cversion": znode.cversion,
        "aversion": znode.aversion,
        "czxid": znode.czxid,
        "mzxid": znode.mzxid,
        "pzxid": znode.pzxid,
        "ctime": znode.ctime_ms,
        "mtime": znode.mtime_ms,
        "numChildren": znode.children,
        "acl": f"[{acl}]",
    }


def tree(data_dir: DataDir, until: int | None) -> tuple[TreeAt, list[ZooKeeperFinding]]:
    findings: list[ZooKeeperFinding] = []
    return tree_at(data_dir, until, findings.append), findings


def data_dir_of(root: Path) -> DataDir:
    (data_dir,) = find_data_dirs([str(root / "zookeeper-live")])
    return data_dir


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("start", ["newest snapshot", "oldest snapshot", "first log"])
def test_trees_equal_the_listing_of_the_live_ensemble(
    name: str, start: str, unpacked: Unpack
) -> None:
    root = unpacked(f"{name}.zookeeper")
    data_dir = data_dir_of(root)
    kept = {
        "newest snapshot": data_dir.snapshots[-1:],
        "oldest snapshot": data_dir.snapshots[:1],
        "first log": (),
    }
    expected = listed(root)
    found, findings = tree(replace(data_dir, snapshots=kept[start]), moment(expected))
    assert {znode.path: as_listed(znode) for znode in znodes(found)} == expected
    assert {finding.fault for finding in findings} <= {ZooKeeperFault.NO_SNAPSHOT}


@pytest.mark.parametrize("name", SETS)
def test_a_replay_from_any_snapshot_comes_to_the_same(name: str, unpacked: Unpack) -> None:
    # Some of them are fuzzy: they hold changes that come again in the logs.
    data_dir = data_dir_of(unpacked(f"{name}.zookeeper"))
    whole, _ = tree(data_dir, None)
    expected = set(znodes(whole))
    fuzzy = 0
    for snapshot in data_dir.snapshots:
        replayed, findings = tree(replace(data_dir, snapshots=(snapshot,)), None)
        assert set(znodes(replayed)) == expected
        assert replayed.changed.sessions == whole.changed.sessions
        assert findings == []
        assert replayed.snapshot is not None
        fuzzy += replayed.snapshot.end_zxid > snapshot.zxid
    assert fuzzy > 0 or name == "kafka39zk"


def test_a_fuzzy_snapshot_needs_the_transactions_that_it_has_in_part(unpacked: Unpack) -> None:
    # F407
    data_dir = data_dir_of(unpacked("kafka08.zookeeper"))
    assert data_dir.snapshots[0].zxid == 0x15
    alone, findings = tree(replace(data_dir, snapshots=data_dir.snapshots[:1], logs=()), None)
    assert [finding.fault for finding in findings] == [ZooKeeperFault.FUZZY]
    assert alone.snapshot is not None and alone.snapshot.end_zxid == 0x16


@pytest.mark.parametrize("name", SETS)
def test_sessions_are_those_of_the_ephemeral_nodes_and_more(name: str, unpacked: Unpack) -> None:
    root = unpacked(f"{name}.zookeeper")
    expected = listed(root)
    owners = {int(row["ephemeralOwner"], 16) for row in expected.values()} - {0}
    found, _ = tree(data_dir_of(root), moment(expected))
    assert owners <= set(found.changed.sessions)


@pytest.mark.parametrize("name", SETS)
def test_sizes_add_up(name: str, unpacked: Unpack) -> None:
    root = unpacked(f"{name}.zookeeper")
    expected = listed(root)
    found, _ = tree(data_dir_of(root), moment(expected))
    sizes = {size.path: size for size in znode_sizes(found)}
    assert set(sizes) == set(expected)
    for path, size in sizes.items():
        prefix = "/" if path == "/" else f"{path}/"
        below = [row for other, row in expected.items() if other.startswith(prefix)]
        below = [row for row in below if row["path"] != path]
        own = len(base64.b64decode(expected[path]["data"] or ""))
        assert size.data_bytes == own
        assert size.children == expected[path]["numChildren"]
        assert size.descendants == len(below)
        assert size.recursive_data_bytes == own + sum(
            len(base64.b64decode(row["data"] or "")) for row in below
        )


def test_a_subtree_is_the_node_and_all_below_it(unpacked: Unpack) -> None:
    root = unpacked("kafka08.zookeeper")
    expected = listed(root)
    found, _ = tree(data_dir_of(root), moment(expected))
    paths = {znode.path for znode in znodes(found, b"/consumers")}
    assert paths == {path for path in expected if f"{path}/".startswith("/consumers/")}


def test_a_damaged_newest_snapshot_gives_way_to_the_one_before(
    unpacked: Unpack, tmp_path: Path
) -> None:
    # F417: as ZooKeeper does, which the listing is the judge of.
    root = unpacked("kafka08.zookeeper")
    copy = tmp_path / "copy"
    shutil.copytree(root / "zookeeper-live", copy)
    newest = copy / "version-2" / "snapshot.13a"
    content = bytearray(newest.read_bytes())
    content[5000] ^= 1
    newest.write_bytes(content)
    (data_dir,) = find_data_dirs([str(copy)])
    found, findings = tree(data_dir, None)
    whole, _ = tree(data_dir_of(root), None)
    assert set(znodes(found)) == set(znodes(whole))
    assert found.snapshot is not None and found.snapshot.zxid == 0x125
    (finding,) = findings
    assert (finding.file, finding.fault) == (str(newest), ZooKeeperFault.MALFORMED)


@pytest.mark.parametrize("name", SETS)
def test_what_clients_see_of_cversion_follows_from_what_is_stored(
    name: str, unpacked: Unpack
) -> None:
    # F401
    data_dir = data_dir_of(unpacked(f"{name}.zookeeper"))
    newest = data_dir.snapshots[-1]
    with InputFile(newest.path) as file:
        stored = {
            node.path.decode() or "/": int.from_bytes(node.stat[36:40], "big")
            for node in Snapshot(file).nodes()
        }
    taken, _ = tree(replace(data_dir, snapshots=(newest,), logs=()), None)
    for znode in znodes(taken):
        assert znode.cversion == 2 * stored[znode.path] - znode.children
