from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def inputs(unpacked: Callable[[str], Path]) -> list[Path]:
    """The copies of the log directories of three brokers: tests/golden/README.md, set
    restore44."""
    return sorted((unpacked("restore44.logs") / "snapshots").glob("*/data"))
