"""Bytes that tasks leave in files for the tasks of a later step. They are not rows of the JVM, and
do not go through the first process.

Reasons: docs/decisions/0093.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar

from kafkalog.lake.output_directory import OutputDirectory

_Place = TypeVar("_Place")


class Piece(NamedTuple):
    """Bytes for one place of a later step: where they are in a file of the folder."""

    path: str
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class PassingFolder:
    """A folder for such files in the directory of a table, which all tasks reach. Readers of the
    table skip it, for its name begins with `_`. Every method but `remove` raises OSError as the
    file system does."""

    path: str
    name: str

    @classmethod
    def of_run(cls, path: str) -> PassingFolder:
        """Return a folder of its own for a run that writes to the table at a path. It is not there
        before a task writes to it."""
        return cls(path, f"_passed-on-{uuid.uuid4()}")

    def pass_on(self, found: Iterable[tuple[_Place, bytes]]) -> list[tuple[_Place, Piece]]:
        """Write bytes for places to a new file; return where they are. A second attempt of a task
        writes another file, and what counts is what the first process hears of."""
        path, position = f"{self.name}/{uuid.uuid4()}", 0
        pieces = []
        with OutputDirectory(self.path).create(path) as file:
            for place, data in found:
                file.write(data)
                pieces.append((place, Piece(path, position, len(data))))
                position += len(data)
        return pieces

    def passed(self, pieces: Iterable[Piece]) -> Iterator[bytes]:
        """Yield the bytes of some pieces, one piece at a time."""
        directory = OutputDirectory(self.path)
        for path, own in groupby(pieces, attrgetter("path")):
            with directory.open(path) as file:
                for piece in own:
                    yield file.read_at(piece.size, piece.position)

    def remove(self) -> None:
        """Remove the folder with its files, as far as the file system does: what stays is in no
        table."""
        with suppress(OSError):
            OutputDirectory(self.path).delete_folder(self.name)
