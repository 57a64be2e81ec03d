"""The library that fails reads, built once."""

import shutil
from pathlib import Path

import pytest

from tests.support.disks.failing_disk import FailingDisk, compiled
from tests.support.repository import SHOP


@pytest.fixture(scope="session")
def failing_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("failing-reads"))


@pytest.fixture
def disk(failing_library: Path) -> FailingDisk:
    return FailingDisk(failing_library)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A copy of the log directory among the examples."""
    example = SHOP
    return Path(shutil.copytree(example, tmp_path / "shop-week"))
