"""Which classes are in the jars on a broker's class path. Rule: docs/format.md F1210."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BROKER = "kafka/Kafka.class"


@dataclass(frozen=True, slots=True)
class Jars:
    """The jars in directories, such as `libs/` of Kafka: the paths of the files in them, and the
    jars that Java passes over, because they cannot be read."""

    directories: Sequence[str]
    entries: frozenset[str]
    unreadable: Sequence[str]

    @classmethod
    def in_directories(cls, directories: Iterable[str]) -> Jars:
        """List the jars that are in directories, but not in those below them. Raises OSError for a
        directory that cannot be listed."""
        found, entries, unreadable = [*directories], set[str](), []
        for directory in found:
            for name in sorted(os.listdir(directory)):
                if not name.lower().endswith(".jar"):
                    continue
                path = os.path.join(directory, name)
                try:
                    with zipfile.ZipFile(path) as jar:
                        entries.update(jar.namelist())
                except (OSError, zipfile.BadZipFile, NotImplementedError):
                    unreadable.append(path)
        return cls(found, frozenset(entries), unreadable)

    @property
    def has_kafka(self) -> bool:
        """Whether Kafka's own classes are among them."""
        return _BROKER in self.entries

    def has(self, name: str) -> bool:
        """Return whether a class is in one of them; `name` as Java has it, such as `a.b.C$D`."""
        return f"{name.replace('.', '/')}.class" in self.entries
