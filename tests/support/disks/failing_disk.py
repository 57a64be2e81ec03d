"""Processes that read files as from a dying disk: a preloaded C library fails their reads."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kafkalog.storage.files.read_around import PAGE_BYTES

SOURCE = Path(__file__).with_name("failing_reads.c")
_COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(
    _COMPILER is None, reason="no C compiler: the library that fails reads is not built"
)


def compiled(directory: Path, source: Path = SOURCE) -> Path:
    """A library to preload, built into a directory."""
    library = directory / source.with_suffix(".so").name
    assert _COMPILER is not None
    command = [_COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


@dataclass
class FailingDisk:
    """What of which file cannot be read."""

    library: Path
    rules: list[str] = field(default_factory=list)

    def fail_pages(self, path: Path, *pages: int) -> None:
        """Let reads of these pages of a file fail with EIO."""
        for page in pages:
            first = page * PAGE_BYTES
            self.rules.append(f"{path.resolve()} {first} {first + PAGE_BYTES - 1}")

    def fail_open(self, path: Path, how: str = "open") -> None:
        """Let opening a file or a directory fail: with EIO, or EACCES if `denied`."""
        self.rules.append(f"{path.resolve()} {how}")

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LD_PRELOAD": str(self.library),
            "FAILING_READS": "\n".join(self.rules),
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command that reads from this disk."""
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=250
        )

    def kafkalog(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `kafkalog` on this disk."""
        return self.run(sys.executable, "-m", "kafkalog", *map(str, arguments))

    def job(self, name: str, arguments: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a Spark job on this disk."""
        return self.run(sys.executable, f"jobs/{name}.py", *map(str, arguments))
