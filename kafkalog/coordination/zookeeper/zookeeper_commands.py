"""Offsets as commands of ZooKeeper's shell, for a person to review.

Rule: docs/migration.md F477.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

_QUOTES = "\"'"
# ZooKeeper takes no path with one of these in it.
_NO_NAMES = frozenset({"", ".", ".."})


class Shell(Enum):
    """Releases of ZooKeeper whose shells take the version of a znode differently."""

    BEFORE_3_5 = "3.4"
    FROM_3_5 = "3.5"


class OffsetZnode(NamedTuple):
    """An offset for /consumers/[group_id]/offsets/[topic]/[partition] below `chroot`, which is
    empty for none. `version` is that of the znode's data as it was read, None where there is no
    such znode."""

    chroot: str
    group_id: str
    topic: str
    partition: int
    committed_offset: int
    version: int | None

    @property
    def parents(self) -> tuple[str, ...]:
        """The znodes above it, the highest first."""
        group = f"{self.chroot}/consumers/{self.group_id}"
        offsets = f"{group}/offsets"
        return f"{self.chroot}/consumers", group, offsets, f"{offsets}/{self.topic}"

    @property
    def path(self) -> str:
        return f"{self.parents[-1]}/{self.partition}"

    @property
    def can_be(self) -> bool:
        """Whether the group can have a znode: a slash in its name would make two of it."""
        return "/" not in self.group_id and self.group_id not in _NO_NAMES


def offset_commands(
    znodes: Iterable[OffsetZnode], existing: Collection[str], shell: Shell
) -> Iterator[str]:
    """Yield a line for each offset, and before it one for each parent that is not among the
    `existing` paths.

    `set` names the version that was read, so that an offset that has moved since stays as it is;
    `create` fails by itself where something is there by now. What the shell does not take, because
    a name has both kinds of quotes or a line break, and what can be no znode, is a line that begins
    with `#`.
    """
    made: set[str] = set()
    for znode in znodes:
        path = _word(znode.path) if znode.can_be else None
        if path is None:
            yield f"# cannot be written in the shell: {znode.path!r} {znode.committed_offset}"
            continue
        if znode.version is not None:
            yield _set(path, znode.committed_offset, znode.version, shell)
            continue
        for parent in znode.parents:
            if parent not in existing and parent not in made:
                made.add(parent)
                yield f'create {_word(parent)} ""'
        yield f"create {path} {znode.committed_offset}"


def _set(path: str, offset: int, version: int, shell: Shell) -> str:
    if shell is Shell.BEFORE_3_5:
        return f"set {path} {offset} {version}"
    return f"set -v {version} {path} {offset}"


def _word(path: str) -> str | None:
    """Return the path as the shell takes it for one word, None if it cannot be made to."""
    if any(character in path for character in "\n\r"):
        return None
    if not any(character.isspace() for character in path):
        return path
    return next((f"{quote}{path}{quote}" for quote in _QUOTES if quote not in path), None)
