"""Owners of znodes (F400, F401), by the values that ZooKeeper's EphemeralTypeTest and the issue
ZOOKEEPER-2901 give."""

import json

import pytest

from kafkalog.zookeeper.znode import OwnerKind, owner_kind, ttl_ms, ttl_owner
from tests.support.repository import Unpack


def signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@pytest.mark.parametrize(
    ("owner", "kind", "ttl"),
    [
        (0, OwnerKind.PERSISTENT, None),
        (0x8000000000000000, OwnerKind.CONTAINER, None),
        (0xFF00000000000001, OwnerKind.TTL, 1),
        (0xFF0000FFFFFFFFFF, OwnerKind.TTL, 0xFFFFFFFFFF),
        (0x8000000000000001, OwnerKind.TTL, 1),  # as 3.5.3 wrote it
        (0x100003CE0D40000, OwnerKind.EPHEMERAL, None),
        (0x800003CE0D400000, OwnerKind.EPHEMERAL, None),  # a session of server 128
        (0xFF00010000000001, OwnerKind.EPHEMERAL, None),  # a feature that no release has
    ],
)
def test_owners_say_what_becomes_of_a_znode(owner: int, kind: OwnerKind, ttl: int | None) -> None:
    # F400
    assert owner_kind(signed(owner)) is kind
    assert ttl_ms(signed(owner)) == ttl


def test_the_owner_of_a_time_to_live_is_the_one_newer_releases_write() -> None:
    assert ttl_owner(1) == signed(0xFF00000000000001)


@pytest.mark.parametrize("name", ["kafka08", "kafka010", "kafka39zk"])
def test_the_packed_listings_hold_a_live_ensembles_znodes(name: str, unpacked: Unpack) -> None:
    lines = (unpacked(f"{name}.zookeeper") / "golden" / "znodes.jsonl").read_text().splitlines()
    znodes = {row["path"]: row for row in map(json.loads, lines)}
    # The root counts as a path of one slash, but not as its own child.
    assert znodes["/"]["numChildren"] == sum(path.count("/") == 1 for path in znodes) - 1
    kinds = {owner_kind(int(row["ephemeralOwner"], 16)) for row in znodes.values()}
    assert kinds == {OwnerKind.PERSISTENT, OwnerKind.EPHEMERAL}
