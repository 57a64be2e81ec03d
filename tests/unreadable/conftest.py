"""The library that fails reads, built once."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.disks.failing_disk import FailingDisk, compiled, forked_commands
from tests.support.repository import SHOP


@pytest.fixture(scope="session")
def failing_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("failing-reads"))


@pytest.fixture(scope="session")
def commands(failing_library: Path) -> Iterator[subprocess.Popen[str]]:
    with forked_commands(failing_library) as process:
        yield process


@pytest.fixture
def disk(failing_library: Path, commands: subprocess.Popen[str]) -> FailingDisk:
    return FailingDisk(failing_library, commands)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A copy of the log directory among the examples."""
    example = SHOP
    return Path(shutil.copytree(example, tmp_path / "shop-week"))
