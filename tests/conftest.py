"""What many tests need: real brokers' files, and one Spark session."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from kafkalog.spark.class_archive import NO_ARCHIVE, archive_options
from tests.support.repository import DATA, ROOT, delta_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# All Spark sessions of tests: small queries end before the second compiler pays for itself, two
# cores have no room for a parallel garbage collector, and the archive saves loading classes.
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{_SMALL_JVM} {archive_options() or NO_ARCHIVE}")
# Tests of these folders share what takes long to start or to build: one worker runs them.
_SHARED_BY_FOLDER = {"airflow", "broker", "browser", "cluster", "packaging", "remote"}
_NEED_A_SESSION = ("tests/jobs/", "tests/spark/")
# Those of other folders that need a session in `make test`, and run where it is.
_WITH_THE_SESSION = (
    *_NEED_A_SESSION,
    "tests/docs/test_documents_run.py::test_what_the_readme_shows",
    "tests/docs/test_testing_page.py::test_the_example_passes",
)

# `make test-all`: new examples every time; one that fails says how to try it again.
settings.register_profile(
    "deep",
    deadline=None,
    max_examples=1000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make test`: the same examples every time, so that no change is refused by chance.
settings.register_profile(
    "usual", settings.get_profile("deep"), max_examples=50, derandomize=True, database=None
)
settings.register_profile("quick", settings.get_profile("usual"), max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker of pytest-xdist a file at a time, or a folder that shares something."""
    from xdist.scheduler import LoadFileScheduling

    class FolderScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(_WITH_THE_SESSION):
                return "session"
            file = nodeid.split("::", 1)[0]
            _, folder, *_ = file.split("/")
            return folder if folder in _SHARED_BY_FOLDER else file

    return FolderScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a Spark session, by its folder. All that shares one comes first: it is the
    longest work that only one worker can do, and would end alone."""
    for item in items:
        if item.nodeid.startswith(_NEED_A_SESSION):
            item.add_marker("spark")
    items.sort(key=lambda item: not item.nodeid.startswith(_WITH_THE_SESSION))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking at all modules and tests again and again."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture
def ended_by_hang_up() -> Iterator[None]:
    """SIGHUP ends this process and its children, also where `nohup` runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with the project's settings; with Delta where its jars are there."""
    from pyspark.sql import SparkSession

    import kafkalog
    from kafkalog.spark.session import default_settings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("tests")
    jars = delta_jars()
    for key, value in default_settings().items():
        if "jars" not in key and (jars or "delta" not in value):
            builder = builder.config(key, value)
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    test_settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
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


@pytest.fixture
def worker_logs(spark: SparkSession) -> Iterator[None]:
    """Keeps what planning and tasks log, for `spark.tvf.python_worker_logs`. Spark reads all that
    it has kept, so that tests that do not look there are run without."""
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    yield
    spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")
