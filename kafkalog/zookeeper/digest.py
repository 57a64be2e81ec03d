"""The digest of a node and of a tree. Rule: docs/zookeeper.md F406."""

from __future__ import annotations

from zlib import crc32

# The only version whose rule is known; a digest of another cannot be checked.
DIGEST_VERSION = 2
DIGEST_MASK = (1 << 64) - 1
_OWN_TREE = b"/zookeeper/"
# Where pzxid begins in a stored stat, and in the bytes that are digested.
_PZXID = 52
_PZXID_DIGESTED = 16


def node_digest(path: bytes, data: bytes | None, stat: bytes) -> int:
    """Return the digest of one node: the root's path is empty, `stat` are the 60 bytes as
    stored."""
    if path.startswith(_OWN_TREE):
        return 0
    value = crc32(path)
    if data:
        value = crc32(data, value)
    ordered = stat[:_PZXID_DIGESTED] + stat[_PZXID:] + stat[_PZXID_DIGESTED:_PZXID]
    return crc32(ordered, value)
