"""The distributions, built once as `make dist` builds them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import ROOT


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation nothing is downloaded.
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (built,) = distributions.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (built,) = distributions.glob("*.tar.gz")
    return built
