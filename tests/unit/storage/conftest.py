"""A place and a machine for logs that tests write."""

from pathlib import Path

import pytest

from tests.unit.storage.written_logs import Machine


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"
