"""Files that a broker deletes between their listing and their reading, in this process."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kafkalog.storage.files import local_files
from kafkalog.storage.files.regular_files import open_regular
from tests.support.logs.log_dirs import UNIQUE


def delete_file(path: Path) -> None:
    """As a broker does at last."""
    path.unlink()


def delete_directory(path: Path) -> None:
    """As a broker does with a partition whose topic was deleted."""
    shutil.rmtree(path.parent)


def mark_as_stray(path: Path) -> None:
    """As a broker does at its start with a partition that it does not know."""
    path.parent.rename(path.parent.with_name(f"{path.parent.name}.{UNIQUE}-stray"))


@dataclass
class VanishingFiles:
    """Files below `root` are counted as they are opened; number `number` vanishes just before.
    `path` is the file that has vanished, `was_read` whether it had been opened before."""

    root: Path
    number: int
    vanish: Callable[[Path], None] = delete_file
    path: Path | None = None
    was_read: bool = False
    opened: list[Path] = field(default_factory=list)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Open local files this way until the end of the test."""

        def opened(path: str) -> int:
            self._note(Path(os.path.abspath(path)))
            return open_regular(path)

        monkeypatch.setattr(local_files, "open_regular", opened)

    def _note(self, path: Path) -> None:
        # Files at the top belong to the log directory, which a broker never deletes.
        if self.root not in path.parent.parents or not path.exists():
            return
        if len(self.opened) == self.number:
            self.path, self.was_read = path, path in self.opened
            self.vanish(path)
        self.opened.append(path)
