"""A znode as clients see it, and the meaning of its ephemeral owner.

Rules: docs/zookeeper.md F400 and F401.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Acl(NamedTuple):
    """One entry of an access control list; `perms` is the sum of ZooKeeper's permission bits."""

    perms: int
    scheme: str
    id: str


# The list of a znode that names none: anyone may do anything.
OPEN_ACL_UNSAFE = (Acl(31, "world", "anyone"),)
READ_ACL_UNSAFE = (Acl(1, "world", "anyone"),)


class Znode(NamedTuple):
    """A znode and its stat. `data` is null for a znode made without any; `cversion` is the one that
    clients see (F401); times are milliseconds since 1970; `ephemeral_owner` is signed."""

    path: str
    data: bytes | None
    acl: tuple[Acl, ...]
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    children: int


class OwnerKind(Enum):
    """When a znode ends, by its ephemeral owner."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    CONTAINER = "container"
    TTL = "ttl"


CONTAINER_OWNER = -(1 << 63)
_TTL_PREFIX = 0xFF0000
_OLDEST_TTL_PREFIX = 0x800000
_TTL_BITS = 40
_LARGEST_TTL_MS = (1 << _TTL_BITS) - 1


def owner_kind(ephemeral_owner: int) -> OwnerKind:
    """Return what the owner is: no one, a session, or the mark of a container or of a znode with a
    time to live (F400)."""
    if ephemeral_owner == 0:
        return OwnerKind.PERSISTENT
    if ephemeral_owner == CONTAINER_OWNER:
        return OwnerKind.CONTAINER
    prefix = (ephemeral_owner & (1 << 64) - 1) >> _TTL_BITS
    return OwnerKind.TTL if prefix in (_TTL_PREFIX, _OLDEST_TTL_PREFIX) else OwnerKind.EPHEMERAL


def ttl_ms(ephemeral_owner: int) -> int | None:
    """Return how long a znode with a time to live stays without a change, in milliseconds; None for
    all others."""
    if owner_kind(ephemeral_owner) is not OwnerKind.TTL:
        return None
    return ephemeral_owner & _LARGEST_TTL_MS


def ttl_owner(ttl: int) -> int:
    """Return the owner that ZooKeeper 3.5.4 and later gives a znode with a time to live, in
    milliseconds."""
    return (_TTL_PREFIX << _TTL_BITS | ttl & _LARGEST_TTL_MS) - (1 << 64)
