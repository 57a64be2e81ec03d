"""Processes that read files as from a dying disk: a preloaded C library fails their reads."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kafkalog.storage.files.read_around import PAGE_BYTES
from tests.support.forks import Ended
from tests.support.repository import ROOT

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


@contextmanager
def forked_commands(library: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with the library, whose forks run `kafkalog`."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.disks.forked_commands"],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library), "KAFKALOG_KERNELS": "stored"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@dataclass
class FailingDisk:
    """What of which file cannot be read."""

    library: Path
    commands: subprocess.Popen[str]
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
    def _settings(self) -> dict[str, str]:
        return {"FAILING_READS": "\n".join(self.rules)}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command that reads from this disk."""
        return subprocess.run(
            command,
            env={**os.environ, "LD_PRELOAD": str(self.library), **self._settings},
            capture_output=True,
            text=True,
            timeout=250,
        )

    def kafkalog(self, *arguments: str | Path) -> Ended:
        """Run `kafkalog` on this disk."""
        asked, answered = self.commands.stdin, self.commands.stdout
        assert asked is not None and answered is not None
        print(json.dumps([[*map(str, arguments)], self._settings]), file=asked, flush=True)
        return Ended(*json.loads(answered.readline()))

    def job(self, name: str, arguments: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a Spark job on this disk."""
        return self.run(sys.executable, f"jobs/{name}.py", *map(str, arguments))
