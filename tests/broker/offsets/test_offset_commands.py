"""ZooKeeper's own shell takes the commands that move offsets back to it."""

from pathlib import Path

import pytest

from kafkalog.coordination.zookeeper.zookeeper_commands import OffsetZnode, Shell, offset_commands
from tests.support.broker.zookeeper_server import zookeeper_server

pytestmark = pytest.mark.deep

_OFFSETS = "/consumers/my group/offsets"


def znode(group: str, partition: int, offset: int, version: int | None) -> OffsetZnode:
    return OffsetZnode("", group, "orders", partition, offset, version)


def test_the_shell_moves_what_has_not_changed_and_creates_what_is_missing(tmp_path: Path) -> None:
    # F477
    there = ["/consumers", "/consumers/my group", _OFFSETS, f"{_OFFSETS}/orders"]
    given = [f'create "{path}" ""' for path in there]
    given += [f'create "{_OFFSETS}/orders/{partition}" 5' for partition in range(3)]
    # Since it was read, this one has moved.
    given.append(f'set "{_OFFSETS}/orders/1" 6')
    moved = [
        znode("my group", 0, 42, version=0),
        znode("my group", 1, 42, version=0),
        znode("my group", 3, 43, version=None),
        znode("o'reilly", 0, 44, version=None),
    ]
    commands = offset_commands(moved, there, Shell.FROM_3_5)
    (oldest,) = offset_commands([znode("my group", 2, 45, 9)], there, Shell.BEFORE_3_5)
    with zookeeper_server(tmp_path / "zookeeper", {}) as server:
        server.run([*given, "# a line for readers", *commands, oldest])
        paths = [f'"{_OFFSETS}/orders/{partition}"' for partition in range(4)]
        paths.append("/consumers/o'reilly/offsets/orders/0")
        lines = server.run([f"get {path}" for path in paths])
    # The last but one was set against its version, which a shell of today does not look at there.
    assert [line for line in lines if line.isdecimal()] == ["42", "6", "45", "43", "44"]
