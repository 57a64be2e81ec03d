"""The library that fails reads, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unreadable.failing_disk import FailingDisk, compiled


@pytest.fixture(scope="session")
def failing_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("failing-reads"))


@pytest.fixture
def disk(failing_library: Path) -> FailingDisk:
    return FailingDisk(failing_library)
