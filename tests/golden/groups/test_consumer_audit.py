"""The audit of real ensembles: the owners that ZooKeeper's own log formatter prints, and what is
known of the fixtures' groups. Rules: F444, F449, F451, F452, F457, F461, F464."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.coordination.zookeeper.consumer_audit import group_audit
from kafkalog.coordination.zookeeper.found_cluster import FoundCluster, FoundZnode
from kafkalog.coordination.zookeeper.ownership_history import (
    CREATE,
    DELETE,
    NOT_LOGGED,
    SESSION_END,
    SET_DATA,
    Ownership,
    OwnershipReplay,
    ZnodeChange,
)
from kafkalog.inspection.zookeeper.consumer_audit_rows import audit_rows
from kafkalog.inspection.zookeeper.ownership_rows import znode_changes
from kafkalog.storage.log_dir.log_dir_names import log_dir_names
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.replay import tree_at
from tests.support.golden.znodes import data_of, listing
from tests.support.repository import Unpack
from tests.support.zookeeper.clusters import found_cluster

SETS = ("kafka08", "kafka010")
_LINE = re.compile(r".*? session 0x([0-9a-f]+) cxid 0x\w+ zxid 0x([0-9a-f]+) (\w+) ?'?(.*)")
_REGISTRIES = ("/ids/", "/owners/", "/brokers/topics/")
_KINDS = {"create": CREATE, "setData": SET_DATA, "delete": DELETE}


def cluster_of(folder: Path) -> FoundCluster:
    return found_cluster(
        FoundZnode(
            znode["path"],
            data_of(znode),
            int(znode["ephemeralOwner"], 16),
            znode["ctime"],
            znode["mtime"],
        )
        for znode in listing(folder)
    )


@pytest.mark.parametrize("name", SETS)
def test_live_groups_own_what_they_are_assigned(unpacked: Unpack, name: str) -> None:
    cluster = cluster_of(unpacked(f"{name}.zookeeper"))
    assert len(cluster.groups) == 5
    told = {}
    for group_id, group in cluster.groups.items():
        audited = group_audit(group_id, group, cluster, None)
        assert [finding for part in audited.partitions for finding in part.findings] == []
        told[group_id.partition(".")[2]] = [finding.finding for finding in audited.findings]
        if group.owners:
            assert {part.strategy for part in audited.partitions} <= {
                "range",
                "range or roundrobin",
            }
    # By the README of the fixtures: g-old-gone left and its offsets stay; c2 of g-old-zk has its
    # share of multi-3 (3 partitions) and none of codec-none (1 partition).
    assert told.pop("g-old-gone") == ["group_without_members"]
    assert set(map(tuple, told.values())) == {()}


def changes(folder: Path) -> Iterator[ZnodeChange]:
    """What ZooKeeper's LogFormatter printed of the transaction logs, in the order of the zxids."""
    lines = [
        match
        for path in (folder / "golden" / "zk").glob("log.*.txt")
        for line in path.read_text().splitlines()
        if (match := _LINE.fullmatch(line))
    ]
    ephemeral: dict[str, int] = {}
    for match in sorted(lines, key=lambda match: int(match[2], 16)):
        session, zxid = int(match[1], 16), int(match[2], 16)
        path, _, rest = match[4].partition(",")
        if match[3] == "closeSession":
            for owned in [path for path, owner in ephemeral.items() if owner == session]:
                del ephemeral[owned]
                yield ZnodeChange(owned, SESSION_END, None, session, zxid, zxid)
        elif match[3] in _KINDS:
            if ",T," in rest:
                ephemeral[path] = session
            if match[3] == "delete":
                ephemeral.pop(path, None)
            data = bytes.fromhex(rest[1:].partition(",")[0]) if rest.startswith("#") else None
            yield ZnodeChange(path, _KINDS[match[3]], data, session, zxid, zxid)


@pytest.mark.parametrize("name", [*SETS, "kafka39zk"])
def test_changes_are_those_that_the_formatter_printed(unpacked: Unpack, name: str) -> None:
    folder = unpacked(f"{name}.zookeeper")
    printed = list(changes(folder)) if name != "kafka39zk" else []
    (data_dir,) = find_data_dirs([str(folder / "zookeeper-live")])
    found = list(znode_changes(data_dir, tree_at(data_dir, None, refuse), refuse))
    # The tree at last has nothing that the logs do not tell.
    assert found and all(change.zxid is not None for change in found)

    def comparable(change: ZnodeChange) -> tuple[int, str, str, bytes]:
        return change.zxid or 0, change.path, change.change, change.data or b""

    if printed:
        last = max(change.zxid or 0 for change in printed)
        told = [comparable(each) for each in found if (each.zxid or 0) <= last]
        registries = [each for each in printed if any(part in each.path for part in _REGISTRIES)]
        assert sorted(told) == sorted(map(comparable, registries))
    # From a snapshot on, the end is the same.
    late = replace(data_dir, snapshots=data_dir.snapshots[-1:], logs=data_dir.logs[1:])
    states: list[dict[str, bytes | None]] = []
    for each in (data_dir, late):
        state: dict[str, bytes | None] = {}
        for change in znode_changes(each, tree_at(each, None, refuse), refuse):
            if change.change in (DELETE, SESSION_END, NOT_LOGGED):
                state.pop(change.path, None)
            else:
                state[change.path] = change.data
        states.append(state)
    assert states[0] == states[1]


def refuse(finding: ZooKeeperFinding) -> None:
    raise AssertionError(finding)


@pytest.mark.parametrize("name", SETS)
def test_the_audit_of_the_files_finds_what_is_known(unpacked: Unpack, name: str) -> None:
    (data_dir,) = find_data_dirs([str(unpacked(f"{name}.zookeeper") / "zookeeper-live")])
    names = log_dir_names([str(unpacked(f"{name}.logs") / "log-dirs")])
    assert len(names[0].partitions) > 10
    rows = list(audit_rows(data_dir, names, refuse))
    prefix = "o8." if name == "kafka08" else "old."
    assert [row.values for row in rows if row.table == "consumer_findings"] == [
        {},
        {
            "finding": "group_without_members",
            "group_id": f"{prefix}g-old-gone",
            "detail": "1 offset and no consumer",
            **dict.fromkeys(["topic", "partition", "broker_id", "consumer_id"]),
            "other_cluster_id": None,
        },
    ]
    history = [row.values for row in rows if row.table == "ownership_history"]
    # multi-3 and codec-none were c1's alone, until c2 came and was given partition 2.
    group = f"{prefix}g-old-zk"
    of_group = [row for row in history if row["group_id"] == group]
    assert [row["claim_cause_name"] for row in of_group] == [
        *[f"{group}_{prefix}c1"] * 4,
        *[f"{group}_{prefix}c2"] * 4,
    ]
    assert [row.get("release") for row in of_group] == ["released"] * 4 + [None] * 4


@pytest.mark.parametrize("name", SETS)
def test_the_history_ends_with_the_owners_of_the_listing(unpacked: Unpack, name: str) -> None:
    folder = unpacked(f"{name}.zookeeper")
    replay = OwnershipReplay()
    ended = [ownership for change in changes(folder) for ownership in replay.take(change)]
    held = {(each.group_id, each.place): each for each in replay.still_held()}
    cluster = cluster_of(folder)
    assert {key: (each.owner, each.session_id) for key, each in held.items()} == {
        (group_id, place): (owner.owner, owner.session_id)
        for group_id, group in cluster.groups.items()
        for place, owner in group.owners.items()
    }
    # The consumers came one after another: whoever has or had anything was set off by somebody of
    # its own group.
    every: list[Ownership] = [*ended, *held.values()]
    assert {each.claim_trigger.cause.value for each in every if each.claim_trigger} == {
        "member_joined"
    }
    assert all(each.claim_trigger for each in every)
    second = [each for each in held.values() if each.owner.endswith("c2-0")]
    assert len(second) == 1
    assert second[0].claim_trigger and second[0].claim_trigger.name.endswith("c2")
    assert second[0].unowned_ms is not None
