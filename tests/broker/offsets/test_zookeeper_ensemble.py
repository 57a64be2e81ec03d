"""Three real servers: leaders change, and one is away for so long that it takes over a snapshot
(F407, F412, F416, F422)."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs
from kafkalog.zookeeper.data_dir_check import data_dir_findings
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.tree_walk import znodes
from kafkalog.zookeeper.znode import Znode
from tests.support.broker.zookeeper_server import ZookeeperServer, running, write_settings
from tests.support.free_ports import free_ports

pytestmark = pytest.mark.deep

IDS = (1, 2, 3)
# So that leaders keep no more transactions for others than those in memory, 500 at least.
PROPERTIES = {"snapshotSizeFactor": "-1", "snapCount": "100000"}
QUORUM = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class Ensemble:
    """Three servers that can be started and stopped one by one."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(9)
        peers = [
            f"server.{number}=127.0.0.1:{ports[3 * number - 2]}:{ports[3 * number - 1]}"
            for number in IDS
        ]
        self.folders = {number: folder / str(number) for number in IDS}
        self._ports = {number: ports[3 * number - 3] for number in IDS}
        self._running: dict[int, ExitStack] = {}
        for number in IDS:
            limits = ("initLimit=50", "syncLimit=50")
            write_settings(self.folders[number], self._ports[number], *limits, *peers)
            (self.folders[number] / "data").mkdir()
            (self.folders[number] / "data" / "myid").write_text(str(number))

    def start(self, number: int) -> ZookeeperServer:
        stack, port = ExitStack(), self._ports[number]
        stack.enter_context(running(self.folders[number], PROPERTIES, port, main_class=QUORUM))
        self._running[number] = stack
        return ZookeeperServer(port)

    def stop(self, number: int) -> None:
        self._running.pop(number).close()

    def data_dir(self, number: int) -> DataDir:
        (data_dir,) = find_data_dirs([str(self.folders[number] / "data")])
        return data_dir


@contextmanager
def ensemble(folder: Path) -> Iterator[Ensemble]:
    servers = Ensemble(folder)
    try:
        yield servers
    finally:
        for number in list(servers._running):
            servers.stop(number)


def refuse(finding: ZooKeeperFinding) -> None:
    raise AssertionError(finding)


def tree_of(data_dir: DataDir, until: int | None = None) -> tuple[int, dict[str, Znode]]:
    found = tree_at(data_dir, until, refuse)
    # Each server sets the configuration for itself when it starts.
    own = "/zookeeper/config"
    return found.zxid, {znode.path: znode for znode in znodes(found) if znode.path != own}


def created(prefix: str, count: int) -> list[str]:
    return [f"create /{prefix}{number} {prefix}" for number in range(count)]


def test_every_server_of_an_ensemble_has_the_tree_up_to_its_last_transaction(
    tmp_path: Path,
) -> None:
    with ensemble(tmp_path) as servers:
        shells = {number: servers.start(number) for number in IDS}
        shells[2].run(created("a", 5))
        # The first is away; what it missed comes as a snapshot.
        servers.stop(1)
        shells[2].run(created("b", 600))
        shells[1] = servers.start(1)
        shells[1].run(created("c", 3))
        # The leader goes, and the next one begins an epoch of its own.
        (leader,) = (number for number in (2, 3) if shells[number].is_leader())
        other = 5 - leader
        servers.stop(leader)
        shells[other].run(created("d", 5))
        listing = shells[other].listing()
        shells[1].run(created("e", 1))
        for number in (1, other):
            servers.stop(number)
    last, newest = tree_of(servers.data_dir(other))
    assert last >> 32 == 2
    shown = {path: znode for path, znode in newest.items() if path != "/e0"}
    listed = {path: int(row.stat["mZxid"], 16) for path, row in listing.items()}
    assert listed == {path: znode.mzxid for path, znode in shown.items()} | {"/zookeeper/config": 0}
    assert tree_of(servers.data_dir(1)) == (last, newest)
    behind, older = tree_of(servers.data_dir(leader))
    assert behind < last
    assert tree_of(servers.data_dir(other), until=behind) == (behind, older)
    assert data_dir_findings(servers.data_dir(2)) == data_dir_findings(servers.data_dir(3)) == []
    assert [finding.fault for finding in data_dir_findings(servers.data_dir(1))] == [
        ZooKeeperFault.NOT_LOGGED
    ]
