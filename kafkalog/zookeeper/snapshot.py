"""A snapshot, from its beginning to its last seal. Rules: docs/zookeeper.md F403 to F407."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kafkalog.storage.files.files import InputFile
from kafkalog.wire.java_text import decoded
from kafkalog.zookeeper.faults import ZooKeeperFault, corrupt
from kafkalog.zookeeper.jute import MOST_ITEMS
from kafkalog.zookeeper.snapshot_input import SnapshotInput, snapshot_chunks
from kafkalog.zookeeper.znode import OPEN_ACL_UNSAFE, Acl

SNAPSHOT_MAGIC = 0x5A4B534E
SNAPSHOT_FILE_VERSION = 2
OPEN_ACL_NUMBER = -1
STAT_BYTES = 60
# No server has so many sessions, or entries in its access control lists; a few compressed bytes can
# say so.
MOST_SESSIONS = 1 << 20
MOST_ACLS = MOST_ITEMS
# Nor so long a path: a tree one node wide would take the square of its depth.
MOST_PATH_BYTES = 16 * 1024
_LENGTH = struct.Struct(">i")
_LENGTH_OF = _LENGTH.unpack_from
_ACL_OF = struct.Struct(">q").unpack_from
# What follows a node's data: the number of its access control list, and its stat.
_ENDING_BYTES = 8 + STAT_BYTES
_SEAL_PATH = b"/"
_SEAL_BYTES = 8 + 4 + len(_SEAL_PATH)
_LAST_ZXID_BYTES = 8 + _SEAL_BYTES
# A node with a path and data of usual sizes.
_USUAL_BYTES = 1024
# Behind the tree come at most a digest, a zxid and two seals; a digest of version 1 is a string.
_LONGEST_ENDING = 256


class StoredNode(NamedTuple):
    """A node as stored in a snapshot. `depth` is 0 for the root, whose path is empty; `stat` are
    the 60 bytes of its stat, `acl` the number of its access control list in the cache."""

    depth: int
    path: bytes
    data: bytes | None
    acl: int
    stat: bytes


class TreeDigest(NamedTuple):
    """The digest of all nodes after the transaction `zxid`; zxid 0 says that there is none."""

    zxid: int
    version: int
    digest: int


class Snapshot:
    """Reads an opened snapshot once, from front to end: `nodes` has to be exhausted before the
    digest and the last zxid are known.

    Any method may raise CorruptDataError, its position the one in the decompressed file.
    """

    def __init__(self, file: InputFile) -> None:
        self._input = SnapshotInput(snapshot_chunks(file))
        self._read_header()
        self.sessions = self._sessions()
        self.acls = self._acls()
        self.digest: TreeDigest | None = None
        self.last_zxid: int | None = None

    def _read_header(self) -> None:
        magic, version = self._input.read_int(), self._input.read_int()
        if magic != SNAPSHOT_MAGIC:
            raise corrupt(ZooKeeperFault.MAGIC, f"magic {magic & 0xFFFFFFFF:#x}, not ZKSN", 0)
        if version != SNAPSHOT_FILE_VERSION:
            detail = f"version {version}, known is {SNAPSHOT_FILE_VERSION}"
            raise corrupt(ZooKeeperFault.VERSION, detail, 4)
        self._input.read_long()  # the database's id, which no reader looks at

    def _count(self, most: int) -> int:
        count = self._input.read_int()
        if not 0 <= count <= most:
            raise corrupt(ZooKeeperFault.MALFORMED, f"{count} items", self._input.place - 4)
        return count

    def _sessions(self) -> dict[int, int]:
        read_long, read_int = self._input.read_long, self._input.read_int
        return {read_long(): read_int() for _ in range(self._count(MOST_SESSIONS))}

    def _acls(self) -> dict[int, tuple[Acl, ...]]:
        cache: dict[int, tuple[Acl, ...]] = {OPEN_ACL_NUMBER: OPEN_ACL_UNSAFE}
        left = MOST_ACLS
        for _ in range(self._count(left)):
            number = self._input.read_long()
            cache[number] = tuple(self._acl() for _ in range(self._count(left)))
            left -= len(cache[number])
        return cache

    def _acl(self) -> Acl:
        perms, read_buffer = self._input.read_int(), self._input.read_buffer
        return Acl(perms, decoded(read_buffer()), decoded(read_buffer()))

    def nodes(self) -> Iterator[StoredNode]:
        """Yield all nodes, each before those below it, and check the seal after the last."""
        # The paths above the next node, each with a slash at its end.
        above: list[bytes] = []
        window = self._input
        while True:
            node = _read_node(window, above)
            if node is None:
                break
            yield node
        if not above:
            raise corrupt(ZooKeeperFault.MALFORMED, "a tree without a root", window.place)
        self._check_seal()
        self._read_ending()

    def _check_seal(self) -> None:
        place, expected = self._input.place, self._input.checksum()
        found, path = self._input.read_long(), self._input.read_buffer()
        if found != expected or path != _SEAL_PATH:
            detail = f"the seal says {found:#x} {path!r}, the bytes before it give {expected:#x}"
            raise corrupt(ZooKeeperFault.SEAL, detail, place)

    def _read_ending(self) -> None:
        """What newer releases write after the tree; all of it may be missing (F405)."""
        if self._left() not in (0, _LAST_ZXID_BYTES):
            self._read_digest()
            self._check_seal()
        if self._left():
            self.last_zxid = self._input.read_long()
            self._check_seal()
        if self._left():
            raise corrupt(ZooKeeperFault.MALFORMED, "bytes after the last seal", self._input.place)

    def _left(self) -> int:
        self._input.holds(_LONGEST_ENDING)
        return len(self._input.data) - self._input.position

    def _read_digest(self) -> None:
        zxid, version = self._input.read_long(), self._input.read_int()
        place = self._input.place
        if version >= 2:
            digest = self._input.read_long()
        else:
            text = self._input.read_buffer()
            try:
                digest = int(text, 16)
            except ValueError:
                detail = f"{text[:40]!r} is not a digest"
                raise corrupt(ZooKeeperFault.MALFORMED, detail, place) from None
        self.digest = TreeDigest(zxid, version, digest)


def _read_node(window: SnapshotInput, above: list[bytes]) -> StoredNode | None:
    """Return the next node, None at the end of the tree. Keeps `above` as the paths above the one
    that may follow."""
    # Check the window once for all parts of a usual node; request other parts as they come.
    window.holds(_USUAL_BYTES)
    held = len(window.data) - window.position
    if held < 4:
        window.require(4)
    (length,) = _LENGTH_OF(window.data, window.position)
    if not 0 <= length <= MOST_PATH_BYTES:
        raise corrupt(ZooKeeperFault.MALFORMED, f"a path of {length} bytes", window.place)
    # Behind the end of the tree there is a seal, which is longer than the length of data.
    if held < 8 + length:
        window.require(8 + length)
    path = window.data[window.position + 4 : window.position + 4 + length]
    if path == _SEAL_PATH:
        window.position += 4 + length
        return None
    depth = _depth(path, above, window.place)
    (size,) = _LENGTH_OF(window.data, window.position + 4 + length)
    if size < -1:
        raise corrupt(ZooKeeperFault.MALFORMED, f"data of {size} bytes", window.place)
    needed = 8 + length + max(size, 0) + _ENDING_BYTES
    if held < needed:
        window.require(needed)
    data, begin = window.data, window.position + 8 + length
    window.position += needed
    end = window.position
    above.append(path + b"/")
    value = None if size == -1 else data[begin : end - _ENDING_BYTES]
    return StoredNode(
        depth, path, value, _ACL_OF(data, end - _ENDING_BYTES)[0], data[end - STAT_BYTES : end]
    )


def _depth(path: bytes, above: list[bytes], place: int) -> int:
    """Return the depth of a node, and cut `above` to the paths above it."""
    while len(above) > 1 and not path.startswith(above[-1]):
        above.pop()
    name = path.rfind(b"/") + 1
    parent = above[-1] if above else b""
    # The root alone has no name.
    if path[:name] != parent or (len(path) > name) != bool(above):
        detail = f"node {decoded(path)!r} does not follow its parent"
        raise corrupt(ZooKeeperFault.MALFORMED, detail, place)
    return len(above)
