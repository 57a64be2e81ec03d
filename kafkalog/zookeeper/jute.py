"""Values as ZooKeeper's jute lays them out in bytes. Rule: docs/zookeeper.md F402."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from kafkalog.wire.java_text import decoded
from kafkalog.zookeeper.faults import ZooKeeperFault, corrupt
from kafkalog.zookeeper.znode import Acl

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
# The most items of a vector: a server takes requests of 1 MB unless jute.maxbuffer is set, and an
# item has several bytes.
MOST_ITEMS = 256 * 1024
_Item = TypeVar("_Item")


class JuteReader:
    """Reads values from the front of a buffer, whose first byte is at `start` in its file.

    Every method raises CorruptDataError if the buffer ends too early.
    """

    def __init__(self, data: bytes, start: int = 0) -> None:
        self.data = data
        self.position = 0
        self._start = start

    @property
    def left(self) -> int:
        """How many bytes are not read yet."""
        return len(self.data) - self.position

    @property
    def place(self) -> int:
        """The position in the file of what comes next."""
        return self._start + self.position

    def _taken(self, size: int) -> int:
        position = self.position
        if size > len(self.data) - position:
            raise corrupt(
                ZooKeeperFault.MALFORMED,
                f"{size} bytes are needed, {self.left} are left",
                self.place,
            )
        self.position = position + size
        return position

    def read_int(self) -> int:
        """Return a number of 32 bits."""
        value: int = _INT.unpack_from(self.data, self._taken(4))[0]
        return value

    def read_long(self) -> int:
        """Return a number of 64 bits."""
        value: int = _LONG.unpack_from(self.data, self._taken(8))[0]
        return value

    def read_bool(self) -> bool:
        """Return a byte that is 1 for true."""
        return self.data[self._taken(1)] == 1

    def read_buffer(self) -> bytes | None:
        """Return bytes with their length before them; null for a length of -1."""
        size = self.read_int()
        if size == -1:
            return None
        if size < 0:
            raise corrupt(ZooKeeperFault.MALFORMED, f"a length of {size}", self.place - 4)
        position = self._taken(size)
        return self.data[position : position + size]

    def read_name(self) -> bytes:
        """Return the bytes of a string that cannot be null, such as a path."""
        place = self.place
        value = self.read_buffer()
        if value is None:
            raise corrupt(ZooKeeperFault.MALFORMED, "a string that is null", place)
        return value

    def read_vector(self, item: Callable[[], _Item]) -> list[_Item] | None:
        """Items with their number before them; null for a number of -1. Each item takes at least
        one byte, so a number greater than the bytes left is refused before anything is read, and so
        is one above MOST_ITEMS."""
        count = self.read_int()
        if count == -1:
            return None
        if not 0 <= count <= min(self.left, MOST_ITEMS):
            detail = f"{count} items in {self.left} bytes, {MOST_ITEMS} is the most that is read"
            raise corrupt(ZooKeeperFault.MALFORMED, detail, self.place - 4)
        return [item() for _ in range(count)]

    def read_acl(self) -> Acl:
        """Return one entry of an access control list."""
        perms = self.read_int()
        return Acl(perms, decoded(self.read_name()), decoded(self.read_name()))

    def read_acls(self) -> tuple[Acl, ...]:
        """Return an access control list; a null one is empty."""
        return tuple(self.read_vector(self.read_acl) or ())
