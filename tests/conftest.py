"""What many tests need: real brokers' files, and one Spark session."""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "golden" / "data"

settings.register_profile(
    "usual", deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("usual"), max_examples=25)
settings.register_profile("deep", settings.get_profile("usual"), max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder with the contents of an archive in tests/golden/data, unpacked once."""
    done: dict[str, Path] = {}

    def unpack(name: str) -> Path:
        if name not in done:
            done[name] = tmp_path_factory.mktemp(name)
            with tarfile.open(DATA / f"{name}.tar.xz") as archive:
                archive.extractall(done[name], filter="data")
        return done[name]

    return unpack


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with the project's settings, without Delta."""
    from pyspark.sql import SparkSession

    import kafkalog
    from kafkalog.spark.session import default_settings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in default_settings().items():
        if "jars" not in key and "delta" not in value:
            builder = builder.config(key, value)
    test_settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.pyspark.worker.logging.enabled": "true",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2-test.properties'}"
        ),
    }
    for key, value in test_settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    kafkalog.register(session)
    yield session
    session.stop()
