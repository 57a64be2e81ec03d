"""One cluster for all tests of this directory, and what is shipped to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.spark.packing import pack
from tests.support.free_ports import free_ports
from tests.support.standalone_cluster import StandaloneCluster


@pytest.fixture(scope="session")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that one of the workers does not see."""
    return tmp_path_factory.mktemp("hidden")


@pytest.fixture(scope="session")
def cluster(hidden: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), hidden, free_ports(2)) as found:
        yield found


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that `make package` makes."""
    directory = tmp_path_factory.mktemp("dist")
    pack(directory)
    return directory
