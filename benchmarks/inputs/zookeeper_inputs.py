"""A snapshot as a large Kafka cluster of ZooKeeper's time leaves it: consumers with their offsets
and owners, topics with their partitions and settings.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kafkalog.zookeeper.digest import DIGEST_MASK, DIGEST_VERSION, node_digest
from kafkalog.zookeeper.snapshot import TreeDigest
from tests.support.zookeeper.zookeeper_files import Node, node_bytes, snapshot_bytes

ZXID = 0x500000000
PARTITIONS = 10
_TOPICS_OF_A_GROUP = 30
_TIME_MS = 1_700_000_000_000
_SESSION = 0x100003CE0D40000
# Nodes of each topic with its settings, and of each group.
_NODES_OF_A_TOPIC = 3 + 2 * PARTITIONS
_NODES_OF_A_GROUP = 5 + 2 * _TOPICS_OF_A_GROUP * (1 + PARTITIONS)


class Written(NamedTuple):
    """The snapshot's path, its nodes and the bytes of their data."""

    path: Path
    nodes: int
    data_bytes: int


def write_snapshot(folder: Path, znodes: int) -> Written:
    """A snapshot of at least so many nodes with digest and last zxid, kept from the last time."""
    path = folder / f"zookeeper-{znodes}" / "version-2" / f"snapshot.{ZXID:x}"
    sizes = path.with_name("sizes.json")
    if sizes.exists():
        return Written(path, *json.loads(sizes.read_text()))
    path.parent.mkdir(parents=True, exist_ok=True)
    count = data_bytes = digest = 0
    # Header, one session and no list of access: what the test's writer puts before the nodes.
    begin = snapshot_bytes([], {_SESSION: 18_000})[: 16 + 4 + 12 + 4]
    checksum = zlib.adler32(begin)
    with path.open("wb") as file:
        file.write(begin)
        for node in _nodes(znodes):
            stored = node_bytes(node)
            checksum = zlib.adler32(stored, checksum)
            digest += node_digest(node.path, node.data, stored[-60:])
            file.write(stored)
            count += 1
            data_bytes += len(node.data or b"")
        tree = TreeDigest(ZXID, DIGEST_VERSION, digest & DIGEST_MASK)
        file.write(_ending(checksum, tree))
    sizes.write_text(json.dumps([count, data_bytes]))
    return Written(path, count, data_bytes)


def _ending(checksum: int, tree: TreeDigest) -> bytes:
    """All behind the nodes, each part with the seal that follows it."""
    ending = b""
    end = struct.pack(">i", 1) + b"/"
    for part in (end, struct.pack(">qiQ", *tree), struct.pack(">q", ZXID)):
        ending += part
        ending += struct.pack(">q", zlib.adler32(ending, checksum)) + end
    return ending


def _nodes(znodes: int) -> Iterator[Node]:
    """Depth first, as a server writes them: a fifth of the nodes are of topics."""
    topics = max(znodes // 5 // _NODES_OF_A_TOPIC, 1)
    groups = max((znodes - topics * _NODES_OF_A_TOPIC) // _NODES_OF_A_GROUP + 1, 1)
    yield _node("", b"")
    yield _node("/brokers")
    yield _node("/brokers/topics")
    for topic in range(topics):
        yield from _topic(topic)
    yield _node("/config")
    yield _node("/config/topics")
    for topic in range(topics):
        yield _node(f"/config/topics/{_name(topic)}", b'{"version":1,"config":{}}')
    yield _node("/consumers")
    for group in range(groups):
        yield from _group(group, topics)


def _topic(topic: int) -> Iterator[Node]:
    path = f"/brokers/topics/{_name(topic)}"
    replicas = {str(partition): [1, 2, 3] for partition in range(PARTITIONS)}
    yield _node(path, json.dumps({"version": 1, "partitions": replicas}).encode())
    yield _node(f"{path}/partitions")
    state = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'
    for partition in range(PARTITIONS):
        yield _node(f"{path}/partitions/{partition}")
        yield _node(f"{path}/partitions/{partition}/state", state)


def _group(group: int, topics: int) -> Iterator[Node]:
    path = f"/consumers/team-{group % 7}.service-{group:06d}"
    member = f"service-{group:06d}_host-{group % 97:03d}-1700000000000-1a2b3c4d"
    yield _node(path)
    yield _node(f"{path}/ids")
    subscription = b'{"version":1,"subscription":{"orders":1},"pattern":"static"}'
    yield _node(f"{path}/ids/{member}", subscription, owner=_SESSION)
    for kind in ("offsets", "owners"):
        yield _node(f"{path}/{kind}")
        for number in range(_TOPICS_OF_A_GROUP):
            topic = f"{path}/{kind}/{_name((group * 13 + number) % max(topics, number + 1))}"
            yield _node(topic)
            for partition in range(PARTITIONS):
                if kind == "offsets":
                    yield _node(f"{topic}/{partition}", str(group * 1000 + partition).encode())
                else:
                    yield _node(f"{topic}/{partition}", f"{member}-0".encode(), owner=_SESSION)


def _name(topic: int) -> str:
    return f"events.domain-{topic % 11}.entity-{topic:05d}"


def _node(path: str, data: bytes | None = None, owner: int = 0) -> Node:
    time = _TIME_MS + len(path)
    return Node(path.encode(), data, -1, 7, 8, time, time, 1, 3, 0, owner, 9)
